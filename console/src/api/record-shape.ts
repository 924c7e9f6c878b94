/**
 * The shape of an object's records: the columns with their rules (including reference columns), the links, and the other objects whose
 * records refer to it. It comes from the live schema, or from the OpenAPI document if the person may not read the schema.
 */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { isApiError } from "./errors";
import { fieldRights } from "./field-lists";
import { isJsonObject, type JsonObject, type JsonValue } from "./json";
import { openApiQuery } from "./openapi";
import { dataObjectsQuery, schemaQuery } from "./schema-live";
import { useCan, usePermissions } from "./session";
import type { Field, FieldType, Permissions, Relationship, Schema } from "./types";
import { USERS, USERS_OBJECT } from "./users-object";

export interface Reference {
  /** The relationship's name: `project` of the column `project_id`. */
  relation: string;
  target: string;
  /** Whether each target may have only one record that refers to it. */
  isOneToOne: boolean;
}

export interface Column extends Field {
  /** Set on columns that hold the id of another record. */
  reference?: Reference;
  /** Set on columns that no grant of this person allows to change. */
  isReadOnly?: true;
}

/** A many_to_many relation, seen from this object. */
export interface LinkKey {
  key: string;
  target: string;
  /** Set if no grant allows this person to link. */
  isReadOnly?: true;
}

/** Another object whose records hold the id of a record of this object. */
export interface ReverseKey {
  /** `<object>_by_<relation>`. */
  key: string;
  object: string;
  relation: string;
  /** The column that holds this id: `<relation>_id`. */
  column: string;
  isSingle: boolean;
  /** The effect on these records when a record of this object is deleted. Undefined if the person may not read the schema. */
  onDelete?: Relationship["onDelete"];
}

export interface RecordShape {
  object: string;
  label: string;
  description?: string | undefined;
  columns: Column[];
  /** The columns that the server sets on every record, as far as this person may read them. */
  system: SystemColumn[];
  links: LinkKey[];
  reverse: ReverseKey[];
  uniqueTogether: string[][];
  /** Whether the shape lacks fields that this person may not use. */
  isPartial?: boolean;
}

/** A relation of an object to others, with the key that `expand` and conditions use. */
export interface RelationKey {
  key: string;
  /** The name for people. For a reference it is the relation's name, for records of another object it is that object's name. */
  label: string;
  target: string;
  /** Whether a record can have several related records. */
  isMany: boolean;
}

/** Every relation of an object: first its references, then its links, then the records that refer to it. */
export function relationsOf({ columns, links, reverse }: RecordShape): RelationKey[] {
  const references = columns.flatMap(({ reference }) => (reference === undefined ? [] : [{ key: reference.relation, label: reference.relation, target: reference.target, isMany: false }]));
  const many = links.map(({ key, target }) => ({ key, label: key, target, isMany: true }));
  const taken = new Set([...references, ...many].map(({ label }) => label));
  const back = reverse.map(({ key, object, relation, isSingle }) => {
    const isClear = !taken.has(object) && reverse.filter((other) => other.object === object).length === 1;
    return { key, label: isClear ? object : `${object} by ${relation}`, target: object, isMany: !isSingle };
  });
  return [...references, ...many, ...back];
}

export const SYSTEM_COLUMNS = ["id", "created_at", "updated_at", "created_by", "updated_by"] as const;
export type SystemColumn = (typeof SYSTEM_COLUMNS)[number];

/** The columns that the server sets on every record of an object. For users, only the id is shown. */
const systemOf = (object: string): SystemColumn[] => (object === USERS ? ["id"] : [...SYSTEM_COLUMNS]);

export function columnLabel(column: Pick<Column, "name" | "label">): string {
  return column.label ?? column.name;
}

/** The shape of an object, from the schema. Undefined if there is no such object. */
export function shapeOf(schema: Pick<Schema, "objects" | "relationships">, name: string): RecordShape | undefined {
  const found = name === USERS ? USERS_OBJECT : schema.objects.find((object) => object.name === name);
  if (found === undefined) return undefined;
  const columns: Column[] = [...found.fields];
  const links: LinkKey[] = [];
  const reverse: ReverseKey[] = [];
  for (const { name: relation, kind, source, target, required, onDelete } of schema.relationships) {
    if (kind === "many_to_many") {
      if (source === name) links.push({ key: relation, target });
      else if (target === name) links.push({ key: relation, target: source });
      continue;
    }
    // `holder` has the reference column. `other` is the object that it refers to.
    const [holder, other] = kind === "one_to_many" ? [target, source] : [source, target];
    const isOneToOne = kind === "one_to_one";
    if (holder === name) {
      columns.push({
        name: `${relation}_id`,
        type: "uuid",
        required: required === true,
        isUnique: isOneToOne,
        reference: { relation, target: other, isOneToOne },
      });
    }
    if (other === name)
      reverse.push({ key: `${holder}_by_${relation}`, object: holder, relation, column: `${relation}_id`, isSingle: isOneToOne, onDelete: onDelete ?? "restrict" });
  }
  return {
    object: name,
    label: found.label ?? name,
    description: found.description,
    columns,
    system: systemOf(name),
    links,
    reverse,
    uniqueTogether: found.constraints?.uniqueTogether ?? [],
  };
}

/**
 * The shape with only the fields that this person's grants allow to read, or to set on a new record. The server treats other fields as
 * unknown in this person's requests, so no request may select them, sort by them or filter by them. Users cannot be written as records.
 */
export function shapeFor(shape: RecordShape, permissions: Permissions, use: "read" | "create" = "read"): RecordShape {
  const seen = new Map<string, ReturnType<typeof fieldRights>>();
  const may = (object: string, of: "read" | "create" | "update", name: string): boolean => {
    if (!seen.has(object)) seen.set(object, fieldRights(permissions, object));
    return seen.get(object)?.(of, name) ?? true;
  };
  const { object } = shape;
  const marked = <Named extends Column | LinkKey>(each: Named, name: string): Named => (object !== USERS && (use === "create" || may(object, "update", name)) ? each : { ...each, isReadOnly: true });
  const columns = shape.columns.flatMap((column) => (may(object, use, column.name) ? [marked(column, column.name)] : []));
  const system = shape.system.filter((name) => may(object, "read", name));
  const kept = new Set<string>([...columns, ...system.map((name) => ({ name }))].map(({ name }) => name));
  return {
    ...shape,
    columns,
    system,
    links: shape.links.flatMap((link) => (may(object, "read", link.key) ? [marked(link, link.key)] : [])),
    reverse: shape.reverse.filter((key) => may(key.object, "read", key.column)),
    uniqueTogether: shape.uniqueTogether.filter((group) => group.every((name) => kept.has(name))),
    isPartial: columns.length < shape.columns.length,
  };
}

/** The shape without the fields that a record lacks. The server leaves out fields that the person may not read. */
export function shapeOfRecord(shape: RecordShape, lacking: ReadonlySet<string>): RecordShape {
  if (lacking.size === 0) return shape;
  return { ...shape, columns: shape.columns.filter(({ name }) => !lacking.has(name)), system: shape.system.filter((name) => !lacking.has(name)), isPartial: true };
}

/** The name of an object's records in the OpenAPI document and in GraphQL: `OrderLine` for `order_line`. */
export const typeName = (object: string) =>
  object
    .split("_")
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join("");

const member = (value: JsonValue | undefined, key: string): JsonValue | undefined => (isJsonObject(value) ? value[key] : undefined);

/** Makes a field from a JSON Schema of the OpenAPI document, as far as the schema describes it. */
function fieldOf(name: string, described: JsonValue, shownDescription: JsonValue | undefined, isRequired: boolean): Field {
  const outer = isJsonObject(described) ? described : {};
  const inner = Array.isArray(outer.anyOf) ? (outer.anyOf.find((each) => member(each, "type") !== undefined) ?? {}) : outer;
  const given = member(inner, "type");
  const types = Array.isArray(given) ? given : given === undefined ? [] : [given];
  const format = member(inner, "format");
  const options = member(inner, "enum") ?? member(member(inner, "items"), "enum");
  const places = types.includes("number") ? /An amount to (\d+) decimal places\.$/.exec(String(shownDescription ?? ""))?.[1] : undefined;
  const type = ((): FieldType => {
    if (types.length === 0) return "json";
    if (types.includes("array")) return "multi_enum";
    if (types.includes("boolean")) return "boolean";
    if (types.includes("integer")) return format === "int64" ? "big_integer" : "integer";
    if (places !== undefined) return "currency";
    if (types.includes("number")) return format === "double" ? "float" : "decimal";
    if (options !== undefined) return "enum";
    const formats: Record<string, FieldType> = { email: "email", uri: "url", date: "date", "date-time": "datetime", uuid: "uuid" };
    return formats[String(format)] ?? (String(member(inner, "pattern")).startsWith("^[0-9]{2}:") ? "time" : "text");
  })();
  const kept = <Key extends string>(key: Key, value: JsonValue | undefined) => (value === undefined ? {} : { [key]: value });
  return {
    name,
    type,
    required: isRequired || !types.includes("null"),
    ...(typeof outer.description === "string" ? { description: outer.description } : {}),
    ...(type === "currency" ? { scale: Number(places) } : {}),
    ...kept("default", outer.default),
    ...kept("min", member(inner, "minimum") ?? member(inner, "minLength")),
    ...kept("max", member(inner, "maximum") ?? member(inner, "maxLength")),
    ...(type === "enum" || type === "multi_enum" ? { options: Array.isArray(options) ? options.filter((each) => typeof each === "string") : [] } : {}),
  };
}

/** The schema for persons who may not read it. */
const NO_SCHEMA = { objects: [], relationships: [] };

/** The shape of an object, from the OpenAPI document. It is for persons who may use an object but not read the schema. */
export function shapeByOpenApi(document: JsonObject, objects: string[], name: string): RecordShape | undefined {
  const schemas = member(document.components, "schemas");
  const shown = member(member(schemas, typeName(name)), "properties");
  const input = member(member(schemas, `${typeName(name)}CreateInput`), "properties") ?? member(member(schemas, `${typeName(name)}UpdateInput`), "properties");
  if (!isJsonObject(shown)) return name === USERS ? shapeOf(NO_SCHEMA, USERS) : undefined;
  const requiredNames = member(member(schemas, `${typeName(name)}CreateInput`), "required");
  const isRequired = (field: string) => Array.isArray(requiredNames) && requiredNames.includes(field);
  const objectOf = new Map([...objects, USERS].map((object) => [`#/components/schemas/${typeName(object)}`, object]));
  const single = (value: JsonValue) => {
    const options = member(value, "anyOf");
    const reference = Array.isArray(options) ? options.map((each) => member(each, "$ref")).find((each) => each !== undefined) : member(value, "$ref");
    return typeof reference === "string" ? objectOf.get(reference) : undefined;
  };
  const several = (value: JsonValue) => {
    const reference = member(member(value, "items"), "$ref");
    return typeof reference === "string" ? objectOf.get(reference) : undefined;
  };
  const columns: Column[] = [];
  const links: LinkKey[] = [];
  const reverse: ReverseKey[] = [];
  for (const [key, value] of Object.entries(shown)) {
    if ((SYSTEM_COLUMNS as readonly string[]).includes(key)) continue;
    const one = single(value);
    const many = several(value);
    const holder = one ?? many;
    if (holder !== undefined && key.startsWith(`${holder}_by_`)) {
      const relation = key.slice(holder.length + 4);
      reverse.push({ key, object: holder, relation, column: `${relation}_id`, isSingle: one !== undefined });
    } else if (many !== undefined) links.push({ key, target: many });
    else if (one === undefined && member(value, "description") !== "Present with `expand`.") {
      const relation = key.endsWith("_id") ? key.slice(0, -3) : "";
      // If the person may not see the target object, only the description says that the field is a reference.
      const described = /^The id of a record of `(\w+)`/.exec(String(member(value, "description") ?? ""))?.[1];
      const target = relation === "" ? undefined : isJsonObject(shown[relation]) ? (single(shown[relation] ?? null) ?? described) : described;
      const field = fieldOf(key, member(input, key) ?? value, member(value, "description"), isRequired(key));
      columns.push(target === undefined ? field : { ...field, reference: { relation, target, isOneToOne: false } });
    }
  }
  // The document does not have everything that the console knows about users.
  if (name === USERS) return { ...shapeOf(NO_SCHEMA, USERS)!, columns: USERS_OBJECT.fields.filter((field) => field.name in shown), links, reverse };
  const title = member(member(schemas, typeName(name)), "title");
  const system = SYSTEM_COLUMNS.filter((each) => each in shown);
  return { object: name, label: typeof title === "string" ? title : name, columns, system, links, reverse, uniqueTogether: [] };
}

export type RecordShapeOf = (object: string) => RecordShape | undefined;

export interface Shapes {
  /** The shapes with the fields that this person may read. Undefined until they are loaded. */
  of: RecordShapeOf | undefined;
  /** The shapes with the fields that this person may set on a new record. */
  ofNew: RecordShapeOf | undefined;
  /** The shapes with all fields. Screens that grant permissions need them. */
  ofAll: RecordShapeOf | undefined;
  error: unknown;
  refetch: () => void;
}

/** The shapes of all objects, from the schema or from the OpenAPI document. */
export function useShapes(): Shapes {
  const permissions = usePermissions();
  const mayRead = useCan("objects", "read");
  const schema = useQuery({ ...schemaQuery, enabled: mayRead });
  // The permissions may have changed since the console loaded them. A 403 for the schema shows that.
  const byDocument = permissions !== undefined && (!mayRead || (isApiError(schema.error) && schema.error.status === 403));
  const listed = useQuery({ ...dataObjectsQuery, enabled: byDocument });
  const document = useQuery({ ...openApiQuery, enabled: byDocument });
  const ofAll = useMemo<RecordShapeOf | undefined>(() => {
    const [whole, read, names] = [schema.data, document.data, listed.data];
    if (!byDocument) return whole === undefined ? undefined : (object) => shapeOf(whole, object);
    return read === undefined || names === undefined ? undefined : (object) => shapeByOpenApi(read, names.map(({ name }) => name), object);
  }, [byDocument, schema.data, document.data, listed.data]);
  const [of, ofNew] = useMemo(() => {
    if (ofAll === undefined || permissions === undefined) return [undefined, undefined];
    const limited = (use: "read" | "create"): RecordShapeOf => (object) => {
      const shape = ofAll(object);
      return shape === undefined ? undefined : shapeFor(shape, permissions, use);
    };
    return [limited("read"), limited("create")];
  }, [ofAll, permissions]);
  return {
    of,
    ofNew,
    ofAll,
    error: byDocument ? (document.error ?? listed.error) : schema.error,
    refetch: () => {
      if (!byDocument) return void schema.refetch();
      void document.refetch();
      void listed.refetch();
    },
  };
}

/** `data` is null if there is no such object, or if this person may not know of it. */
export function useRecordShape(object: string, { isNew = false }: { isNew?: boolean } = {}): { data: RecordShape | null | undefined; error: unknown; refetch: () => void } {
  const { of: ofRead, ofNew, error, refetch } = useShapes();
  const of = isNew ? ofNew : ofRead;
  const data = useMemo(() => (of === undefined ? undefined : (of(object) ?? null)), [of, object]);
  return { data, error, refetch };
}

/** The columns whose values can identify a record instead of its id. */
export const namingColumns = (columns: Column[]): Column[] => columns.filter(({ isUnique, reference }) => isUnique === true && reference === undefined);

const DISPLAY_NAMES = ["name", "title", "label", "subject", "headline", "display_name", "full_name", "email", "slug", "code", "key"];

/** The column whose value stands for a record: a column with a usual name, or else the first required text, or else the first text. */
export function displayColumn(columns: Column[]): string | undefined {
  const texts = columns.filter(({ type, reference }) => reference === undefined && /^(text|email|url|slug|enum)$/.test(type));
  for (const name of DISPLAY_NAMES) if (texts.some((column) => column.name === name)) return name;
  const plain = texts.filter(({ type }) => type === "text");
  return (plain.find(({ required }) => required) ?? plain[0] ?? texts[0])?.name;
}

/** The text that stands for a record, in one line. Undefined if the record only has its id. */
export function displayValue(record: JsonObject, columns: Column[]): string | undefined {
  const name = displayColumn(columns);
  const value = name === undefined ? undefined : record[name];
  if (typeof value !== "string" || value.trim() === "") return undefined;
  const line = value.replaceAll(/\s+/g, " ").trim();
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}

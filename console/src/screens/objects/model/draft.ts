/**
 * The planned changes of an object, and the steps that apply them. A draft only has the differences, keyed by the names on the server. So
 * it stays correct if somebody else changes the object in the meantime.
 */
import { type Described, describe } from "../../../api/client";
import { printJson, sameJson } from "../../../api/json";
import type { DataObject, Field, FieldChanges, Relationship } from "../../../api/types";
import { type FieldProblems, fieldProblems } from "./fieldProblems";
import { typeInfo } from "./fieldTypes";
import { quantity } from "../../../api/numbers";
import { listed, objectNameProblem, relationNameProblem } from "./names";
import { type RelationDefinition, defaultOnDelete, relationColumns, relationTitle, sides, takenKeys } from "./relations";

/** A column in a group: its name on the server, or the key of a new field or relation. */
export type ColumnRef = string;

export interface NewField {
  /** A key such as `new:1`. */
  key: string;
  field: Field;
}

export interface NewRelation {
  key: string;
  definition: RelationDefinition;
}

export interface Edits {
  /** The name of a new object. */
  name: string;
  label: string | null;
  description: string | null;
  changed: Record<string, FieldChanges>;
  dropped: string[];
  added: NewField[];
  relationsAdded: NewRelation[];
  relationsDropped: string[];
  /** Null means no change. */
  uniqueTogether: ColumnRef[][] | null;
  indexes: ColumnRef[][] | null;
}

/** For `label` and `description`, null means no change, and "" removes the text. */
export const NO_EDITS: Edits = {
  name: "",
  label: null,
  description: null,
  changed: {},
  dropped: [],
  added: [],
  relationsAdded: [],
  relationsDropped: [],
  uniqueTogether: null,
  indexes: null,
};

/** The current state: the object (null if it is new) and all relations of the service. */
export interface Base {
  object: DataObject | null;
  relations: Relationship[];
  /** The names of all objects. */
  objects: string[];
}

export interface DraftField {
  /** The name on the server, or the key of a new field. */
  key: string;
  field: Field;
  before?: Field;
  state: "same" | "new" | "changed" | "dropped";
  problems: FieldProblems;
}

export interface DraftRelation {
  /** The id on the server, or the key of a new relation. */
  key: string;
  definition: RelationDefinition;
  state: "same" | "new" | "dropped";
  problem?: string;
}

export interface Draft {
  name: string;
  nameProblem?: string;
  label: string;
  description: string;
  fields: DraftField[];
  /** The relations of which the object is the source or the target. */
  relations: DraftRelation[];
  uniqueTogether: ColumnRef[][];
  indexes: ColumnRef[][];
  /** The name of a column in the draft. Undefined if the column does not exist or is being dropped. */
  columnName: (ref: ColumnRef) => string | undefined;
  /** The columns that may be in a group. */
  groupColumns: { ref: ColumnRef; name: string }[];
  isValid: boolean;
}

const withoutNulls = (field: Omit<FieldChanges, "name" | "type"> & Field): Field => Object.fromEntries(Object.entries(field).filter(([, value]) => value !== null && value !== undefined)) as unknown as Field;

export function draftOf(base: Base, edits: Edits): Draft {
  const { object } = base;
  const name = object?.name ?? edits.name;
  const ownRelations = base.relations.filter(({ source, target }) => object !== null && (source === name || target === name));
  const dropped = new Set(edits.relationsDropped);
  const relationsNow: RelationDefinition[] = [
    ...base.relations.filter(({ id }) => !dropped.has(String(id))),
    ...edits.relationsAdded.map(({ definition }) => ownNames(definition, object === null ? "" : name, name)),
  ];
  const fields: DraftField[] = (object?.fields ?? []).map((before): DraftField => {
    if (edits.dropped.includes(before.name)) return { key: before.name, field: before, before, state: "dropped", problems: {} };
    const changes = edits.changed[before.name];
    if (changes === undefined) return { key: before.name, field: before, before, state: "same", problems: {} };
    return { key: before.name, field: withoutNulls({ ...before, ...changes } as Omit<FieldChanges, "name" | "type"> & Field), before, state: "changed", problems: {} };
  });
  fields.push(...edits.added.map(({ key, field }): DraftField => ({ key, field, state: "new", problems: {} })));
  const columns = relationColumns(name, relationsNow);
  const names = new Map<string, number>();
  for (const { state, field } of fields) if (state !== "dropped") names.set(field.name, (names.get(field.name) ?? 0) + 1);
  for (const each of fields) {
    if (each.state !== "new" && each.state !== "changed") continue;
    const taken = [...columns, ...((names.get(each.field.name) ?? 0) > 1 ? [each.field.name] : [])];
    each.problems = fieldProblems(each.field, taken);
  }
  const fieldNames = fields.filter(({ state }) => state !== "dropped").map(({ field }) => field.name);
  const relations: DraftRelation[] = [
    ...ownRelations.map(({ id, ...definition }): DraftRelation => ({ key: String(id), definition, state: dropped.has(String(id)) ? "dropped" : "same" })),
    ...edits.relationsAdded.map(({ key, definition }): DraftRelation => {
      const mine = ownNames(definition, object === null ? "" : name, name);
      const others = relationsNow.filter((each) => each !== mine && !(each.name === mine.name && each.source === mine.source && each.target === mine.target && each.kind === mine.kind));
      const twice = edits.relationsAdded.some((each) => each.key !== key && each.definition.name === mine.name);
      const problem =
        relationNameProblem(mine.name, [...takenKeys(mine.source, mine.source === name ? fieldNames : [], others), ...(twice ? [mine.name] : [])]) ??
        (mine.target === "" ? "Choose the other object." : undefined) ??
        (mine.source === "" && object !== null ? "Choose the other object." : undefined) ??
        (fieldNames.includes(`${mine.name}_id`) && sides(mine)?.holder === name ? `There is a field "${mine.name}_id" already.` : undefined);
      return { key, definition: mine, state: "new", ...(problem === undefined ? {} : { problem }) };
    }),
  ];
  const columnName = (ref: ColumnRef): string | undefined => {
    const field = fields.find(({ key }) => key === ref);
    if (field !== undefined) return field.state === "dropped" ? undefined : field.field.name;
    const relation = relations.find(({ key, definition, state }) => state !== "dropped" && (key === ref || (state === "same" && `${definition.name}_id` === ref && sides(definition)?.holder === name)));
    if (relation !== undefined) return `${relation.definition.name}_id`;
    return ["id", "created_at", "updated_at", "created_by", "updated_by"].includes(ref) ? ref : undefined;
  };
  const groupColumns = [
    ...fields.filter(({ state, field }) => state !== "dropped" && field.type !== "json" && field.type !== "multi_enum" && field.name !== "").map(({ key, field }) => ({ ref: key, name: field.name })),
    ...relations
      .filter(({ state, definition }) => state !== "dropped" && sides(definition)?.holder === name && definition.name !== "")
      .map(({ key, state, definition }) => ({ ref: state === "new" ? key : `${definition.name}_id`, name: `${definition.name}_id` })),
    ...["created_at", "updated_at", "created_by", "updated_by"].map((column) => ({ ref: column, name: column })),
  ];
  const nameProblem = object === null ? objectNameProblem(edits.name, base.objects) : undefined;
  const uniqueTogether = edits.uniqueTogether ?? object?.constraints?.uniqueTogether ?? [];
  const indexes = edits.indexes ?? object?.indexes ?? [];
  const isValid =
    nameProblem === undefined &&
    fields.every(({ problems }) => Object.keys(problems).length === 0) &&
    relations.every(({ problem }) => problem === undefined) &&
    (edits.uniqueTogether ?? []).every((group) => group.length >= 2) &&
    (edits.indexes ?? []).every((group) => group.length >= 1);
  return {
    name,
    ...(nameProblem === undefined ? {} : { nameProblem }),
    label: edits.label ?? object?.label ?? "",
    description: edits.description ?? object?.description ?? "",
    fields,
    relations,
    uniqueTogether,
    indexes,
    columnName,
    groupColumns,
    isValid,
  };
}

/** Fills in the names of a new object. Until then, its relations have "" or `SELF` in place of the object's name. */
function ownNames(definition: RelationDefinition, placeholder: string, name: string): RelationDefinition {
  if (definition.source !== placeholder && definition.target !== placeholder) return definition;
  if (placeholder !== "") return definition;
  return { ...definition, source: definition.source === "" ? name : definition.source, target: definition.target === SELF ? name : definition.target };
}

/** Stands for the object itself as the target of a relation while the object has no name. */
export const SELF = "\u0000self";

export interface Step {
  id: string;
  /** The effect of the step: "Add the field due (date)". */
  sentence: string;
  request: Described;
  /** Whether the server can only plan this step after an earlier step has been applied. */
  waits: boolean;
  /** Whether the step removes data that cannot be restored. */
  destructive: boolean;
  /** The key of the field or relation that the step changes. */
  about: string;
  /** Returns the edits that remain after the step has been applied. */
  settle: (edits: Edits) => Edits;
}

const without = <Value>(list: Value[], value: Value): Value[] => list.filter((each) => each !== value);

/** The steps that apply the draft, in an order that works. Obstacles are removed first, and groups of columns are changed last. */
export function stepsOf(base: Base, edits: Edits): Step[] {
  return base.object === null ? creation(base, edits) : changes(base, base.object, edits);
}

function creation(base: Base, edits: Edits): Step[] {
  const draft = draftOf(base, edits);
  const names = (groups: ColumnRef[][]) => groups.map((group) => group.map((ref) => draft.columnName(ref) ?? ref));
  const relational = new Set(edits.relationsAdded.map(({ key }) => key));
  const early = (groups: ColumnRef[][]) => groups.filter((group) => !group.some((ref) => relational.has(ref)));
  const [unique, indexes] = [draft.uniqueTogether, draft.indexes];
  const definition: DataObject = {
    name: draft.name,
    ...(draft.label === "" ? {} : { label: draft.label }),
    ...(draft.description === "" ? {} : { description: draft.description }),
    fields: edits.added.map(({ field }) => field),
    ...(early(unique).length === 0 ? {} : { constraints: { uniqueTogether: names(early(unique)) } }),
    ...(early(indexes).length === 0 ? {} : { indexes: names(early(indexes)) }),
  };
  const steps: Step[] = [
    {
      id: "create_object",
      sentence: `Create the object ${draft.name} with ${quantity(definition.fields.length, "field")}`,
      request: describe("post", "/api/v1/objects", { body: definition }),
      waits: false,
      destructive: false,
      about: "",
      settle: (now) => now,
    },
    ...relationSteps(draft, true),
  ];
  if (early(unique).length !== unique.length || early(indexes).length !== indexes.length)
    steps.push({
      id: "groups",
      sentence: "Set the unique groups and indexes that name relations",
      request: describe("patch", "/api/v1/objects/{name}", { params: { path: { name: draft.name } }, body: { constraints: { uniqueTogether: names(unique) }, indexes: names(indexes) } }),
      waits: true,
      destructive: false,
      about: "groups",
      settle: (now) => now,
    });
  return steps;
}

function relationSteps(draft: Draft, waits: boolean): Step[] {
  return draft.relations
    .filter(({ state }) => state === "new")
    .map(({ key, definition }) => {
      const { required, onDelete, ...rest } = definition;
      const body = { ...rest, ...(required === true ? { required } : {}), onDelete: onDelete ?? defaultOnDelete(definition) };
      return {
        id: `add_relation ${key}`,
        sentence: `Add the relation ${relationTitle(definition)}`,
        request: describe("post", "/api/v1/relationships", { body }),
        waits,
        destructive: false,
        about: key,
        settle: (now: Edits) => ({ ...now, relationsAdded: now.relationsAdded.filter((each) => each.key !== key), ...renamedRefs(now, key, `${definition.name}_id`) }),
      };
    });
}

/** Replaces the key of a new column in groups by the column's name on the server. */
function renamedRefs(edits: Edits, from: ColumnRef, to: ColumnRef): Pick<Edits, "uniqueTogether" | "indexes"> {
  const renamed = (groups: ColumnRef[][] | null) => groups?.map((group) => group.map((ref) => (ref === from ? to : ref))) ?? null;
  return { uniqueTogether: renamed(edits.uniqueTogether), indexes: renamed(edits.indexes) };
}

function changes(base: Base, object: DataObject, edits: Edits): Step[] {
  const draft = draftOf(base, edits);
  const steps: Step[] = [];
  const dropped = draft.fields.filter(({ state }) => state === "dropped").map(({ key }) => key);
  const relationsDropped = draft.relations.filter(({ state }) => state === "dropped");
  const goingColumns = new Set([...dropped, ...relationsDropped.filter(({ definition }) => sides(definition)?.holder === object.name).map(({ definition }) => `${definition.name}_id`)]);
  const [uniqueNow, indexesNow] = [object.constraints?.uniqueTogether ?? [], object.indexes ?? []];
  const stays = (group: string[]) => !group.some((column) => goingColumns.has(column));
  const standing = { unique: uniqueNow.filter(stays), indexes: indexesNow.filter(stays) };
  const inTheWay = standing.unique.length !== uniqueNow.length || standing.indexes.length !== indexesNow.length;
  if (inTheWay)
    steps.push({
      id: "free_columns",
      sentence: `Take ${listed([...goingColumns])} out of unique groups and indexes`,
      request: describe("patch", "/api/v1/objects/{name}", { params: { path: { name: object.name } }, body: { constraints: { uniqueTogether: standing.unique }, indexes: standing.indexes } }),
      waits: false,
      destructive: false,
      about: "groups",
      settle: (now) => now,
    });
  for (const { key, definition } of relationsDropped)
    steps.push({
      id: `drop_relation ${key}`,
      sentence: `Remove the relation ${relationTitle(definition)}`,
      request: describe("delete", "/api/v1/relationships/{id}", { params: { path: { id: Number(key) } } }),
      waits: inTheWay,
      destructive: true,
      about: key,
      settle: (now) => ({ ...now, relationsDropped: without(now.relationsDropped, key) }),
    });
  for (const key of dropped)
    steps.push({
      id: `drop_field ${key}`,
      sentence: `Drop the field ${key}`,
      request: describe("delete", "/api/v1/objects/{name}/fields/{field}", { params: { path: { name: object.name, field: key } } }),
      waits: inTheWay,
      destructive: true,
      about: key,
      settle: (now) => ({ ...now, dropped: without(now.dropped, key) }),
    });
  steps.push(...alterations(draft, object.name, goingColumns));
  for (const { key, field, state } of draft.fields) {
    if (state !== "new") continue;
    steps.push({
      id: `add_field ${key}`,
      sentence: `Add the field ${field.name === "" ? "(without a name)" : field.name} (${typeInfo(field.type).label.toLowerCase()}${field.required === true ? ", required" : ""}${field.isUnique === true ? ", unique" : ""})`,
      request: describe("post", "/api/v1/objects/{name}/fields", { params: { path: { name: object.name } }, body: field }),
      waits: goingColumns.has(field.name) || draft.fields.some(({ before }) => before?.name === field.name),
      destructive: false,
      about: key,
      settle: (now) => ({ ...now, added: now.added.filter((each) => each.key !== key), ...renamedRefs(now, key, field.name) }),
    });
  }
  steps.push(...relationSteps(draft, false));
  const object_ = objectChanges(object, draft, edits, standing, steps.length > 0);
  if (object_ !== null) steps.push(object_);
  return steps;
}

/** A rename to a name that another field still has waits for that field. */
function alterations(draft: Draft, name: string, going: Set<string>): Step[] {
  const waiting = draft.fields.filter(({ state }) => state === "changed");
  const steps: Step[] = [];
  const has = new Set(draft.fields.filter(({ before }) => before !== undefined && !going.has(before.name)).map(({ key }) => key));
  while (waiting.length > 0) {
    const free = waiting.findIndex(({ key, field }) => field.name === key || !has.has(field.name));
    const next = waiting.splice(Math.max(free, 0), 1)[0]!;
    const { key, field, before } = next;
    const body = fieldChanges(before!, field);
    has.delete(key);
    has.add(field.name);
    steps.push({
      id: `alter_field ${key}`,
      sentence: alterationSentence(key, before!, field),
      request: describe("patch", "/api/v1/objects/{name}/fields/{field}", { params: { path: { name, field: key } }, body }),
      waits: steps.some(({ request }) => request.path === `/api/v1/objects/${name}/fields/${field.name}`) || going.has(field.name),
      destructive: false,
      about: key,
      settle: (now) => {
        const { [key]: _, ...changed } = now.changed;
        return { ...now, changed, ...renamedRefs(now, key, field.name) };
      },
    });
  }
  return steps;
}

/** The body of the PATCH request: the differences, with null for removed values. */
export function fieldChanges(before: Field, after: Field): FieldChanges {
  const body: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof Field>) {
    const [was, is] = [before[key], after[key]];
    if (sameJson(was ?? null, is ?? null)) continue;
    body[key] = is ?? (typeof was === "boolean" ? false : null);
  }
  return body as FieldChanges;
}

const WORDS: Partial<Record<keyof Field, string>> = { min: "minimum", max: "maximum" };

function alterationSentence(key: string, before: Field, after: Field): string {
  const parts: string[] = [];
  const body = fieldChanges(before, after);
  if (body.name !== undefined) parts.push(`rename it to ${after.name}`);
  if (body.type !== undefined) parts.push(`make it ${typeInfo(after.type).label.toLowerCase()}`);
  if (body.required !== undefined) parts.push(after.required === true ? "require it" : "make it optional");
  if (body.isUnique !== undefined) parts.push(after.isUnique === true ? "make it unique" : "allow duplicates");
  if (body.indexed !== undefined) parts.push(after.indexed === true ? "index it" : "remove its index");
  const others = Object.keys(body).filter((each) => !["name", "type", "required", "isUnique", "indexed"].includes(each));
  for (const each of others as (keyof Field)[]) {
    const value = after[each];
    const text = value === undefined ? undefined : typeof value === "string" ? value : printJson(value);
    parts.push(text === undefined ? `take its ${WORDS[each] ?? each} away` : text.length <= 40 && !text.includes("\n") ? `set its ${WORDS[each] ?? each} to ${text}` : `change its ${WORDS[each] ?? each}`);
  }
  return `Change the field ${key}: ${listed(parts)}`;
}

function objectChanges(object: DataObject, draft: Draft, edits: Edits, standing: { unique: string[][]; indexes: string[][] }, hasEarlier: boolean): Step | null {
  const body: Record<string, unknown> = {};
  const parts: string[] = [];
  for (const key of ["label", "description"] as const) {
    if (edits[key] === null || edits[key] === (object[key] ?? "")) continue;
    body[key] = edits[key] === "" ? null : edits[key];
    parts.push(key);
  }
  const names = (groups: ColumnRef[][]) => groups.map((group) => group.map(draft.columnName)).filter((group): group is string[] => group.every((name) => name !== undefined));
  const server = (groups: string[][]) => groups.map((group) => group.map((column) => draft.columnName(column) ?? column));
  let waits = false;
  const involvesNew = (groups: ColumnRef[][] | null) => groups?.some((group) => group.some((ref) => ref.startsWith("new:") || draft.columnName(ref) !== ref)) ?? false;
  if (edits.uniqueTogether !== null && !sameJson(names(edits.uniqueTogether), server(standing.unique))) {
    body.constraints = { uniqueTogether: names(edits.uniqueTogether) };
    parts.push("unique groups");
    waits ||= involvesNew(edits.uniqueTogether);
  }
  if (edits.indexes !== null && !sameJson(names(edits.indexes), server(standing.indexes))) {
    body.indexes = names(edits.indexes);
    parts.push("indexes");
    waits ||= involvesNew(edits.indexes);
  }
  if (parts.length === 0) return null;
  return {
    id: "update_object",
    sentence: `Change the ${listed(parts)} of ${object.name}`,
    request: describe("patch", "/api/v1/objects/{name}", { params: { path: { name: object.name } }, body }),
    waits: waits && hasEarlier,
    destructive: false,
    about: parts.some((part) => part === "unique groups" || part === "indexes") ? "groups" : "",
    settle: (now) => ({ ...now, label: null, description: null, uniqueTogether: null, indexes: null }),
  };
}

/** Finds the edits whose field or relation no longer exists on the server, because somebody else dropped it. */
export function lostEdits(base: Base, edits: Edits): { lost: string[]; kept: Edits } {
  if (base.object === null) return { lost: [], kept: edits };
  const fields = new Set(base.object.fields.map(({ name }) => name));
  const relations = new Set(base.relations.map(({ id }) => String(id)));
  const lost = Object.keys(edits.changed).filter((name) => !fields.has(name));
  const gone = edits.dropped.filter((name) => !fields.has(name));
  const cut = edits.relationsDropped.filter((id) => !relations.has(id));
  if (lost.length === 0 && gone.length === 0 && cut.length === 0) return { lost: [], kept: edits };
  return {
    lost,
    kept: {
      ...edits,
      changed: Object.fromEntries(Object.entries(edits.changed).filter(([name]) => fields.has(name))),
      dropped: edits.dropped.filter((name) => fields.has(name)),
      relationsDropped: edits.relationsDropped.filter((id) => relations.has(id)),
    },
  };
}

/** The edits with these values for the field `key`. A value that is equal to the server's value is not an edit. */
export function editField(base: Base, edits: Edits, key: string, patch: FieldChanges): Edits {
  const added = edits.added.findIndex((each) => each.key === key);
  if (added !== -1) {
    const now = edits.added[added]!;
    const field = withoutNulls({ ...now.field, ...patch } as Omit<FieldChanges, "name" | "type"> & Field);
    for (const flag of ["required", "isUnique", "indexed"] as const) if (field[flag] === false) delete field[flag];
    return { ...edits, added: edits.added.with(added, { key, field: { ...field, name: field.name ?? "" } }) };
  }
  const before = base.object?.fields.find(({ name }) => name === key);
  if (before === undefined) return edits;
  const changes: Record<string, unknown> = { ...edits.changed[key], ...patch };
  for (const each of Object.keys(changes)) {
    const was = before[each as keyof Field] ?? (["required", "isUnique", "indexed"].includes(each) ? false : null);
    if (sameJson(was, changes[each] ?? null)) delete changes[each];
  }
  const { [key]: _, ...rest } = edits.changed;
  return { ...edits, changed: Object.keys(changes).length === 0 ? rest : { ...rest, [key]: changes as FieldChanges } };
}

/** The edits that create the same object again after somebody deleted it. */
export function editsFrom(object: DataObject): Edits {
  return {
    ...NO_EDITS,
    name: object.name,
    label: object.label ?? null,
    description: object.description ?? null,
    added: object.fields.map((field, index) => ({ key: `new:${index + 1}`, field })),
  };
}

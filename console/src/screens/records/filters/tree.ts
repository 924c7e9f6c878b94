/**
 * The filter of a view as a tree. Its nodes are tests of fields, groups, and conditions on related records. The tree is parsed from JSON
 * and printed to JSON. The address, a saved view and a request contain this JSON (the parameter `where`). This file does not use React.
 */
import { type JsonObject, type JsonValue, isJsonObject, isLosslessNumber, printJson, readJson, readNumber } from "../../../api/json";
import { isNumberType } from "../../../api/field-rules";
import type { RecordColumn, RecordShape } from "../columns";
import { type Condition, type Operator, operatorNamed, printConditions, takesList, takesNothing } from "./conditions";
import { type Variable, fitsOperator, readVariable } from "./variables";

export const QUANTIFIERS = ["some", "none", "every"] as const;
export type Quantifier = (typeof QUANTIFIERS)[number];

/**
 * A test of one field, of the record itself or of a record behind to-one relations. If `field` is empty, the person has not chosen one yet.
 */
export interface Test extends Condition {
  kind: "test";
  /** The keys of the relations that lead to the field's record. */
  path: string[];
  /** A variable that replaces the value. */
  variable?: Variable;
}

export interface Group {
  kind: "group";
  joined: "and" | "or";
  isNegated: boolean;
  parts: Part[];
}

/** A condition that some, none or all records of a to-many relation meet. */
export interface Related {
  kind: "related";
  /** The keys of relations. The last one is to-many, the others are to-one. */
  path: string[];
  quantifier: Quantifier;
  inner: Group;
}

/** A part that the builder cannot show, unchanged. */
export interface Raw {
  kind: "raw";
  json: JsonObject;
}

export type Part = Test | Group | Related | Raw;

/**
 * The filter in the form of a view: plain conditions, which AND joins, and the JSON text of a condition for everything that they cannot
 * express.
 */
export interface Filter {
  conditions: Condition[];
  where: string;
}

/**
 * The maximum size of a filter in an address with its search, in bytes as the address encodes them. The server refuses a URL of more than
 * 65,534 bytes before it reads the URL. The rest is for the columns and the order. 1,000 ids fit, and no list of a condition takes more items.
 * Exports have the filter in their URL too.
 */
export const FILTER_BYTES_MAX = 48_000;

/** The sentence for a filter that does not fit. */
export const TOO_LONG = "The filter is too long for an address. Take away values or conditions.";

/** The parameters of an address that decide which records and groups it shows. One limit applies to all of them together. */
export type FilterTexts = { [Name in "filter" | "where" | "having" | "q"]?: string | undefined };

/** The size of the parameters, in bytes as the address encodes them. */
export function bytesOf({ filter = "", where = "", having = "", q = "" }: FilterTexts): number {
  return new URLSearchParams({ filter, where, having, q }).toString().length;
}

/** Whether an address can hold the parameters. */
export function fitsTexts(texts: FilterTexts): boolean {
  return bytesOf(texts) <= FILTER_BYTES_MAX;
}

/** Whether an address can hold the filter, beside the search if one is given. */
export function fitsAddress({ conditions, where }: Filter, search?: string): boolean {
  return fitsTexts({ filter: printConditions(conditions), where, q: search });
}

export type ShapeOf = (object: string) => RecordShape | undefined;

export const emptyTest = (): Test => ({ kind: "test", path: [], field: "", operator: "eq", value: "" });
export const groupOf = (parts: Part[], joined: Group["joined"] = "and", isNegated = false): Group => ({ kind: "group", joined, isNegated, parts });
export const testOf = (condition: Condition): Test => ({ kind: "test", path: [], ...condition });

/** The shape of the object at the end of a path of relations. */
export function shapeAt(path: string[], shape: RecordShape | undefined, of: ShapeOf): RecordShape | undefined {
  return path.reduce<RecordShape | undefined>((at, key) => {
    const relation = at?.relations.get(key);
    return relation === undefined ? undefined : of(relation.target);
  }, shape);
}

export function columnOf({ path, field }: Pick<Test, "path" | "field">, shape: RecordShape | undefined, of: ShapeOf): RecordColumn | undefined {
  return shapeAt(path, shape, of)?.byId.get(field);
}

// ---- from JSON

/** Parses the text of a condition. Undefined if it is not a JSON object. */
export function parseWhere(text: string): JsonObject | undefined {
  const value = readJson(text);
  return isJsonObject(value) ? value : undefined;
}

/** The parts of a filter, which AND joins. Undefined if its condition is not a JSON object. */
export function partsOf({ conditions, where }: Filter, shape: RecordShape, of: ShapeOf): Part[] | undefined {
  const plain = conditions.map(testOf);
  if (where === "") return plain;
  const json = parseWhere(where);
  return json === undefined ? undefined : [...plain, ...readWhere(json, shape, of)];
}

export interface ReadOptions {
  /** If true, a test can have a variable as its value. If false, a test with a variable counts as a part that the builder cannot show. */
  takesVariables?: boolean;
}

/** The parts of a condition, which AND joins. */
export function readWhere(json: JsonObject, shape: RecordShape | undefined, of: ShapeOf, { takesVariables = false }: ReadOptions = {}): Part[] {
  return new Reader(of, takesVariables).all(json, shape, []);
}

class Reader {
  constructor(
    private readonly of: ShapeOf,
    private readonly takesVariables: boolean,
  ) {}

  /** `path` has the to-one relations around this object. Each condition behind them becomes a part of its own. */
  all(json: JsonObject, shape: RecordShape | undefined, path: string[]): Part[] {
    return Object.entries(json).flatMap(([key, value]) => this.member(key, value, shape, path) ?? [{ kind: "raw", json: nested(path, { [key]: value }) }]);
  }

  private member(key: string, value: JsonValue, shape: RecordShape | undefined, path: string[]): Part[] | undefined {
    if (key === "_and") return Array.isArray(value) && value.every(isJsonObject) ? value.flatMap((each) => this.all(each, shape, path)) : undefined;
    if (key === "_or") {
      if (!Array.isArray(value) || value.length === 0 || !value.every(isJsonObject)) return undefined;
      const parts = value.map((each) => this.all(each, shape, path));
      return parts.some((each) => each.length === 0) ? undefined : [groupOf(parts.map(together), "or")];
    }
    if (key === "_not") {
      const parts = isJsonObject(value) ? this.all(value, shape, path) : [];
      if (parts.length === 0) return undefined;
      const inner = together(parts);
      return [inner.kind === "group" && !inner.isNegated ? { ...inner, isNegated: true } : groupOf([inner], "and", true)];
    }
    return key.startsWith("_") ? undefined : this.named(key, value, shape, path);
  }

  private named(key: string, value: JsonValue, shape: RecordShape | undefined, path: string[]): Part[] | undefined {
    const dot = key.indexOf(".");
    const first = dot === -1 ? key : key.slice(0, dot);
    const rest = dot === -1 ? undefined : key.slice(dot + 1);
    const column = shape?.byId.get(first);
    const relation = column === undefined ? shape?.relations.get(first) : undefined;
    if (relation === undefined) {
      // An unknown field is shown, so that the person can replace it. An unknown relation becomes a part that the builder cannot show.
      return rest === undefined ? this.field(first, value, path, column) : undefined;
    }
    const target = this.of(relation.target);
    const further = [...path, first];
    if (!relation.isMany) {
      if (rest !== undefined) return this.member(rest, value, target, further);
      return isJsonObject(value) ? this.all(value, target, further) : undefined;
    }
    const asked = isJsonObject(value) ? Object.entries(value) : [];
    if (rest !== undefined || asked.length === 0) return undefined;
    const parts: Part[] = [];
    for (const [quantifier, condition] of asked) {
      if (!(QUANTIFIERS as readonly string[]).includes(quantifier) || !isJsonObject(condition)) return undefined;
      const inner = this.all(condition, target, []);
      const alone = inner.length === 1 ? inner[0]! : undefined;
      parts.push({ kind: "related", path: further, quantifier: quantifier as Quantifier, inner: alone?.kind === "group" ? alone : groupOf(inner) });
    }
    return parts;
  }

  private field(field: string, value: JsonValue, path: string[], column: RecordColumn | undefined): Part[] | undefined {
    const asked = isJsonObject(value) ? Object.entries(value) : [["eq", value] as const];
    if (asked.length === 0) return undefined;
    const parts: Part[] = [];
    for (const [name, operand] of asked) {
      const operator = operatorNamed(name);
      const test = operator === undefined ? undefined : readTest(field, operator, operand, path, this.takesVariables);
      if (test === undefined) {
        // If the field is known, only the JSON of this operator becomes a part that the builder cannot show. If it is unknown, the name may
        // belong to a relation that no longer exists, so all of its JSON becomes such a part. Its operator is written with its first name,
        // because GraphQL knows no other.
        if (column === undefined) return undefined;
        parts.push({ kind: "raw", json: nested(path, { [field]: { [operator ?? name]: operand } }) });
      } else parts.push(test);
    }
    return parts;
  }
}

const together = (parts: Part[]): Part => (parts.length === 1 ? parts[0]! : groupOf(parts));

function readTest(field: string, operator: Operator, operand: JsonValue, path: string[], takesVariables: boolean): Test | undefined {
  const test = (which: Operator, value: Condition["value"]): Test => ({ kind: "test", path, field, operator: which, value });
  if (takesNothing(operator)) return operand === true ? test(operator, null) : undefined;
  const variable = takesVariables ? readVariable(operand) : undefined;
  if (variable !== undefined) return fitsOperator(variable, operator) ? { ...test(operator, takesList(operator) ? [] : ""), variable } : undefined;
  if (operand === null) return operator === "eq" ? test("is_null", null) : operator === "neq" ? test("is_not_null", null) : undefined;
  if (takesList(operator)) {
    const items = Array.isArray(operand) ? operand.map(readScalar) : [undefined];
    return items.every((item) => item !== undefined) ? test(operator, items) : undefined;
  }
  const text = readScalar(operand);
  return text === undefined ? undefined : test(operator, text);
}

/** The text of a single value. Undefined for a variable, such as `$now`. */
function readScalar(value: JsonValue): string | undefined {
  if (typeof value === "string") return value.startsWith("$") ? (value.startsWith("$$") ? value.slice(1) : undefined) : value;
  return typeof value === "number" || typeof value === "boolean" || isLosslessNumber(value) ? String(value) : undefined;
}

// ---- to JSON

/** Objects that are the value of a to-one relation. If they have only one member, they can be written with a dot. */
type ToOne = WeakSet<JsonObject>;

export interface PrintOptions {
  /** Prints a condition for GraphQL, whose names have no dots: without dots, and with every operator. */
  isExplicit?: boolean;
}

/** Prints parts as one condition, joined with AND. */
export function printParts(parts: Part[], shape: RecordShape | undefined, of: ShapeOf, options: PrintOptions = {}): JsonObject {
  const printer = new Printer(of, options.isExplicit === true);
  const json = printer.and(parts, shape);
  return options.isExplicit === true ? json : (printer.dotted(json) as JsonObject);
}

class Printer {
  private readonly toOne: ToOne = new WeakSet();
  constructor(
    private readonly of: ShapeOf,
    private readonly isExplicit: boolean,
  ) {}

  and(parts: Part[], shape: RecordShape | undefined): JsonObject {
    let all: JsonObject = {};
    const apart: JsonObject[] = [];
    for (const part of parts) {
      const piece = this.one(part, shape);
      const joined = this.joined(all, piece);
      if (joined === undefined) apart.push(piece);
      else all = joined;
    }
    if (apart.length === 0) return all;
    return { ...all, _and: [...(Array.isArray(all._and) ? all._and : []), ...apart] };
  }

  private one(part: Part, shape: RecordShape | undefined): JsonObject {
    switch (part.kind) {
      case "raw":
        return part.json;
      case "test":
        return this.below(part.path, { [part.field]: this.operand(part, columnOf(part, shape, this.of)) });
      case "group":
        return this.group(part, shape);
      case "related": {
        const key = part.path.at(-1)!;
        return this.below(part.path.slice(0, -1), { [key]: { [part.quantifier]: this.group(part.inner, shapeAt(part.path, shape, this.of)) } });
      }
    }
  }

  private group({ joined, isNegated, parts }: Group, shape: RecordShape | undefined): JsonObject {
    const inner = joined === "and" ? this.and(parts, shape) : this.or(parts, shape);
    return isNegated ? { _not: inner } : inner;
  }

  private or(parts: Part[], shape: RecordShape | undefined): JsonObject {
    if (parts.length === 1) return this.one(parts[0]!, shape);
    // If all parts are about the same related record, they go below one key. The key then counts only once.
    const key = firstStep(groupOf(parts));
    if (key !== undefined) return this.below([key], this.or(parts.map(withoutStep), shapeAt([key], shape, this.of)));
    return { _or: parts.map((part) => this.one(part, shape)) };
  }

  private operand({ operator, value, variable }: Test, column: RecordColumn | undefined): JsonValue {
    const scalar = (text: string): JsonValue => {
      if (column?.type === "boolean" && (text === "true" || text === "false")) return text === "true";
      if (column !== undefined && isNumberType(column.type)) return readNumber(text) ?? text;
      return text.startsWith("$") ? `$${text}` : text;
    };
    if (takesNothing(operator)) return { [operator]: true };
    const given = variable ?? (Array.isArray(value) ? value.map(scalar) : scalar(value ?? ""));
    return operator === "eq" && !this.isExplicit ? given : { [operator]: given };
  }

  private below(path: string[], json: JsonObject): JsonObject {
    return path.reduceRight((inner, key) => {
      this.toOne.add(inner);
      return { [key]: inner };
    }, json);
  }

  /** Merges both objects into one with the same meaning. Undefined if they have conditions on the same key that cannot be merged. */
  private joined(one: JsonObject, other: JsonObject): JsonObject | undefined {
    const all = { ...one };
    for (const [key, value] of Object.entries(other)) {
      const there = all[key];
      if (key === "_and" && !Array.isArray(value)) return undefined;
      if (there === undefined) all[key] = value;
      else if (key === "_and" && Array.isArray(there) && Array.isArray(value)) all[key] = [...there, ...value];
      // Two conditions on related records may be met by different records, so they are not merged.
      else if (key.startsWith("_") || (QUANTIFIERS as readonly string[]).includes(key)) return undefined;
      else if (isJsonObject(there) && isJsonObject(value)) {
        const inner = this.joined(there, value);
        if (inner === undefined) return undefined;
        if (this.toOne.has(there)) this.toOne.add(inner);
        all[key] = inner;
      } else return undefined;
    }
    return all;
  }

  /** Uses a dot for each to-one relation that has only one member. */
  dotted(json: JsonValue): JsonValue {
    if (Array.isArray(json)) return json.map((each) => this.dotted(each));
    if (!isJsonObject(json)) return json;
    return Object.fromEntries(
      Object.entries(json).map(([key, value]) => {
        let [name, inner] = [key, value];
        while (isJsonObject(inner) && this.toOne.has(inner)) {
          const [only, ...more] = Object.entries(inner);
          if (only === undefined || more.length > 0 || only[0].startsWith("_")) break;
          [name, inner] = [`${name}.${only[0]}`, only[1]];
        }
        return [name, this.dotted(inner)];
      }),
    );
  }
}

/** The to-one relation that all fields of a part are behind. */
function firstStep(part: Part): string | undefined {
  if (part.kind === "test") return part.path[0];
  if (part.kind === "related") return part.path.length > 1 ? part.path[0] : undefined;
  if (part.kind === "raw") return undefined;
  const [first, ...more] = part.parts.map(firstStep);
  return more.every((each) => each === first) ? first : undefined;
}

function withoutStep(part: Part): Part {
  if (part.kind === "group") return { ...part, parts: part.parts.map(withoutStep) };
  return part.kind === "raw" ? part : { ...part, path: part.path.slice(1) };
}

const nested = (path: string[], json: JsonObject): JsonObject => path.reduceRight((inner, key) => ({ [key]: inner }), json);

/**
 * The filter in the form of a view. If plain conditions can express everything, it uses only them, so that addresses and requests stay
 * short.
 */
export function filterOf(parts: Part[], shape: RecordShape, of: ShapeOf): Filter {
  const plain = parts.map((part): Condition | undefined => (part.kind === "test" && part.path.length === 0 && part.variable === undefined ? { field: part.field, operator: part.operator, value: part.value } : undefined));
  if (plain.every((each) => each !== undefined)) return { conditions: plain, where: "" };
  return { conditions: [], where: printJson(printParts(parts, shape, of)) };
}

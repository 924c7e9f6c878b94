/**
 * The filter of a view as a tree: tests of fields, groups of them, and what is asked of related records. It is read from the condition
 * that the address, a saved view and a request hold as JSON (the parameter `where`), and printed to one. It knows nothing of React.
 */
import { type JsonObject, type JsonValue, isJsonObject, isLosslessNumber, parseJson, printJson, readNumber } from "../../../api/json";
import { isNumberType } from "../../../api/field-rules";
import type { RecordColumn, RecordShape } from "../columns";
import { type Condition, type Operator, operatorNamed, takesList, takesNothing } from "./conditions";
import { type Variable, fitsOperator, readVariable } from "./variables";

export const QUANTIFIERS = ["some", "none", "every"] as const;
export type Quantifier = (typeof QUANTIFIERS)[number];

/** One field, of the record or behind to-one relations. An empty `field` is not chosen yet. */
export interface Test extends Condition {
  kind: "test";
  /** Keys of the relations that lead to the field's record. */
  path: string[];
  /** Stands for the value. */
  variable?: Variable;
}

export interface Group {
  kind: "group";
  joined: "and" | "or";
  isNegated: boolean;
  parts: Part[];
}

/** What some, none or all records of a to-many relation meet. */
export interface Related {
  kind: "related";
  /** Keys of relations: the last one leads to many records, those before it to one. */
  path: string[];
  quantifier: Quantifier;
  inner: Group;
}

/** What the builder cannot show, as it is. */
export interface Raw {
  kind: "raw";
  json: JsonObject;
}

export type Part = Test | Group | Related | Raw;

/** The filter as a view keeps it: plain conditions that are ANDed, and the JSON text of a condition for all that they cannot say. */
export interface Filter {
  conditions: Condition[];
  where: string;
}

export type ShapeOf = (object: string) => RecordShape | undefined;

export const emptyTest = (): Test => ({ kind: "test", path: [], field: "", operator: "eq", value: "" });
export const groupOf = (parts: Part[], joined: Group["joined"] = "and", isNegated = false): Group => ({ kind: "group", joined, isNegated, parts });
export const testOf = (condition: Condition): Test => ({ kind: "test", path: [], ...condition });

/** The shape that a path of relations leads to. */
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

/** The object that a condition's text holds; undefined where it holds none. */
export function parseWhere(text: string): JsonObject | undefined {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The parts of a filter, which are ANDed; undefined where its condition is not a JSON object. */
export function partsOf({ conditions, where }: Filter, shape: RecordShape, of: ShapeOf): Part[] | undefined {
  const plain = conditions.map(testOf);
  if (where === "") return plain;
  const json = parseWhere(where);
  return json === undefined ? undefined : [...plain, ...readWhere(json, shape, of)];
}

export interface ReadOptions {
  /** Variables are values of tests. Without it, a test with a variable is a part that is not understood. */
  takesVariables?: boolean;
}

/** The parts of a condition, which are ANDed. */
export function readWhere(json: JsonObject, shape: RecordShape | undefined, of: ShapeOf, { takesVariables = false }: ReadOptions = {}): Part[] {
  return new Reader(of, takesVariables).all(json, shape, []);
}

class Reader {
  constructor(
    private readonly of: ShapeOf,
    private readonly takesVariables: boolean,
  ) {}

  /** `path` are the to-one relations around this object: what is asked behind them is asked of each field by itself. */
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
      // A field that is gone is shown, so that it can be replaced; a relation that is gone is not understood.
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
        // An operator of a field that is known stands alone in its JSON; all else may be a relation that is gone.
        if (column === undefined) return undefined;
        parts.push({ kind: "raw", json: nested(path, { [field]: { [name]: operand } }) });
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

/** The text of one value. A variable, such as `$now`, has none. */
function readScalar(value: JsonValue): string | undefined {
  if (typeof value === "string") return value.startsWith("$") ? (value.startsWith("$$") ? value.slice(1) : undefined) : value;
  return typeof value === "number" || typeof value === "boolean" || isLosslessNumber(value) ? String(value) : undefined;
}

// ---- to JSON

/** Objects that stand for a to-one relation: alone they can be written with a dot. */
type ToOne = WeakSet<JsonObject>;

export interface PrintOptions {
  /** As GraphQL's names allow it: without dots, and with every operator. */
  isExplicit?: boolean;
}

/** The condition of parts that are ANDed. */
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
    // What all of them ask of one related record stands below its key, which counts once then.
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

  /** Both in one object, where that says the same; undefined where they ask something of the same key that cannot be joined. */
  private joined(one: JsonObject, other: JsonObject): JsonObject | undefined {
    const all = { ...one };
    for (const [key, value] of Object.entries(other)) {
      const there = all[key];
      if (key === "_and" && !Array.isArray(value)) return undefined;
      if (there === undefined) all[key] = value;
      else if (key === "_and" && Array.isArray(there) && Array.isArray(value)) all[key] = [...there, ...value];
      // Two questions to related records may be answered by different ones.
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

  /** With a dot where a relation has one member only. */
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

/** The to-one relation that all of a part is behind. */
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

/** As a view keeps it: plain conditions as long as they say all, so that such addresses and requests stay short. */
export function filterOf(parts: Part[], shape: RecordShape, of: ShapeOf): Filter {
  const plain = parts.map((part): Condition | undefined => (part.kind === "test" && part.path.length === 0 && part.variable === undefined ? { field: part.field, operator: part.operator, value: part.value } : undefined));
  if (plain.every((each) => each !== undefined)) return { conditions: plain, where: "" };
  return { conditions: [], where: printJson(printParts(parts, shape, of)) };
}

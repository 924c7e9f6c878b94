/** The conditions of a view. This file converts them for the URL, saved views, chips and requests. */
import type { RecordColumn } from "../columns";
import { isNumberType, isTextType } from "../../../api/field-rules";
import { ALIASES, OPERANDS, OPERATORS, type Operand, type Operator } from "../../../api/operators";
import type { FieldType } from "../../../api/types";

export type { Operator };

export interface Condition {
  field: string;
  operator: Operator;
  /** The value for the API: a text, a list for `in` and `nin`, or null for the two operators about null. */
  value: string | string[] | null;
}

const NAMES = Object.keys(OPERATORS) as Operator[];

/** The operator with this name or alias, in upper or lower case, as on the server. */
export function operatorNamed(name: string): Operator | undefined {
  const small = name.toLowerCase();
  return NAMES.find((each) => each === small) ?? (Object.hasOwn(ALIASES, small) ? ALIASES[small] : undefined);
}

const OPTIONS: FieldType[] = ["enum", "multi_enum"];

/** Whether the comparison makes no sense to people, such as which of two ids is greater, or whether a boolean is in a list. */
function isOdd(operand: Operand, column: RecordColumn): boolean {
  if (column.relation !== undefined) return operand === "ordered" || operand === "text";
  return column.type === "boolean" && (operand === "ordered" || operand === "list");
}

/** The most useful operators of a column. The others follow in the order of the API. */
function likeliest(column: RecordColumn): Operator[] {
  if (column.relation === undefined && isTextType(column.type)) return ["ilike", "eq", "neq", "like", "in", "nin"];
  if (column.relation === undefined && OPTIONS.includes(column.type)) return ["eq", "neq", "in", "nin", "ilike", "like"];
  return ["eq", "neq"];
}

/** The operators that the server accepts for a column and that make sense to people. The most useful ones come first. */
export function operatorsOf(column: RecordColumn): Operator[] {
  const takes = (operator: Operator) => (OPERANDS[OPERATORS[operator]] as FieldType[]).includes(column.type);
  const first = likeliest(column);
  const rest = NAMES.filter((operator) => !first.includes(operator));
  return [...first, ...rest].filter((operator) => takes(operator) && !isOdd(OPERATORS[operator], column));
}

const TIMES: FieldType[] = ["date", "time", "datetime"];

/** The words for an operator in a chip. */
export function operatorLabel(operator: Operator, column: RecordColumn): string {
  const isTime = TIMES.includes(column.type);
  const isNumber = isNumberType(column.type);
  const list = column.type === "multi_enum";
  switch (operator) {
    case "eq":
      return list ? "has" : isNumber ? "=" : "is";
    case "neq":
      return list ? "has not" : isNumber ? "≠" : "is not";
    case "gt":
      return isTime ? "is after" : ">";
    case "gte":
      return isTime ? "is at or after" : "≥";
    case "lt":
      return isTime ? "is before" : "<";
    case "lte":
      return isTime ? "is at or before" : "≤";
    case "ilike":
      return "contains";
    case "like":
      return "contains (same case)";
    case "in":
      return list ? "has any of" : "is any of";
    case "nin":
      return list ? "has none of" : "is none of";
    case "is_null":
      return "is null";
    case "is_not_null":
      return "is not null";
  }
}

export function takesNothing(operator: Operator): boolean {
  return OPERATORS[operator] === "nothing";
}

export function takesList(operator: Operator): boolean {
  return OPERATORS[operator] === "list";
}

/** The value to keep when the operator changes. */
export function converted(value: Condition["value"], operator: Operator): Condition["value"] {
  if (takesNothing(operator)) return null;
  if (takesList(operator)) return Array.isArray(value) ? value : value === null || value === "" ? [] : [value];
  return Array.isArray(value) ? (value[0] ?? "") : (value ?? "");
}

/** Whether a condition is complete and can be sent. */
export function isWhole({ operator, value }: Condition, column: RecordColumn | undefined): boolean {
  if (takesNothing(operator)) return true;
  if (takesList(operator)) return Array.isArray(value) && value.length > 0;
  if (typeof value !== "string") return false;
  // Only text columns can be compared with an empty text.
  return value !== "" || (column !== undefined && isTextType(column.type) && OPERATORS[operator] !== "text");
}

/** Parses the conditions in the URL: `[["status","eq","open"]]`. Entries that are not conditions are left out. */
export function readConditions(text: string | undefined): Condition[] {
  if (text === undefined) return [];
  try {
    return conditionsOf(JSON.parse(text));
  } catch {
    return [];
  }
}

/** Whether the value is a list of conditions, each with a value if it needs one. `conditionsOf` leaves out everything else. */
export function areConditions(raw: unknown): boolean {
  return Array.isArray(raw) && raw.every(isCondition);
}

/** The same for the text in the URL. */
export function isReadable(text: string): boolean {
  try {
    return areConditions(JSON.parse(text));
  } catch {
    return false;
  }
}

function isCondition(raw: unknown): boolean {
  if (!Array.isArray(raw)) return false;
  const [field, operator, value] = raw as unknown[];
  if (typeof field !== "string" || !NAMES.includes(operator as Operator)) return false;
  if (takesNothing(operator as Operator)) return true;
  // An empty list, or an empty text, is readable: the person can fill it in.
  return takesList(operator as Operator) ? Array.isArray(value) && value.every((item) => typeof item === "string") : typeof value === "string";
}

export function conditionsOf(raw: unknown): Condition[] {
  if (!Array.isArray(raw)) return [];
  return raw.flatMap((each: unknown): Condition[] => {
    if (!Array.isArray(each)) return [];
    const [field, operator, value] = each as unknown[];
    if (typeof field !== "string" || !NAMES.includes(operator as Operator)) return [];
    const given = Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : typeof value === "string" ? value : null;
    return [{ field, operator: operator as Operator, value: converted(given, operator as Operator) }];
  });
}

export function compactConditions(conditions: Condition[]): (string | string[])[][] {
  return conditions.map(({ field, operator, value }) => (value === null ? [field, operator] : [field, operator, value]));
}

export function printConditions(conditions: Condition[]): string | undefined {
  return conditions.length === 0 ? undefined : JSON.stringify(compactConditions(conditions));
}

/** Prints a list for a query parameter. Items with commas or quotes are put in quotes. */
export function printList(items: string[]): string {
  return items.map((item) => (/[",]/.test(item) || item === "" ? `"${item.replaceAll('"', '""')}"` : item)).join(",");
}

/** The text that a query parameter reads as null. */
const NULL = "null";

/** Whether a query parameter would mean something else: its value, or an item of its list, is the text `null`. */
export function meansNull({ operator, value }: Condition): boolean {
  return OPERATORS[operator] !== "text" && (Array.isArray(value) ? value.includes(NULL) : value === NULL);
}

/** The condition as a query parameter: `status[eq]=open`. It must not be one for which `meansNull` is true. */
export function conditionParameter({ field, operator, value }: Condition): [string, string] {
  return [`${field}[${operator}]`, value === null ? "true" : Array.isArray(value) ? printList(value) : value];
}

/** The first condition that an editor shows for a column. */
export function initial(column: RecordColumn | undefined): Condition | null {
  const operator = column === undefined ? undefined : operatorsOf(column)[0];
  return column === undefined || operator === undefined ? null : { field: column.id, operator, value: converted("", operator) };
}

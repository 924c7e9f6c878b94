/** Conditions of a view: what the URL, a saved view, a chip and a request say of them. */
import type { RecordColumn } from "../columns";
import type { FieldType } from "../../../api/types";

export type Operator = "eq" | "neq" | "gt" | "gte" | "lt" | "lte" | "like" | "ilike" | "in" | "nin" | "is_null" | "is_not_null";

export interface Condition {
  field: string;
  operator: Operator;
  /** As the API takes it: one text, a list for `in` and `nin`, nothing for the two about null. */
  value: string | string[] | null;
}

const OPERATORS: Operator[] = ["eq", "neq", "gt", "gte", "lt", "lte", "like", "ilike", "in", "nin", "is_null", "is_not_null"];
const TEXTS: FieldType[] = ["text", "email", "url", "slug"];
const NULLS: Operator[] = ["is_null", "is_not_null"];
const ORDERED: Operator[] = ["gt", "gte", "lt", "lte"];

/** Every operator that the server takes for values of a column, the likeliest first. */
export function operatorsOf(column: RecordColumn): Operator[] {
  if (column.relation !== undefined) return ["eq", "neq", "in", "nin", ...NULLS];
  if (TEXTS.includes(column.type)) return ["ilike", "eq", "neq", "like", "in", "nin", ...ORDERED, ...NULLS];
  switch (column.type) {
    case "enum":
      return ["eq", "neq", "in", "nin", "ilike", "like", ...ORDERED, ...NULLS];
    case "multi_enum":
      return ["eq", "neq", "in", "nin", "ilike", "like", ...NULLS];
    case "json":
      return NULLS;
    case "boolean":
      return ["eq", "neq", ...NULLS];
    default:
      return ["eq", "neq", ...ORDERED, "in", "nin", ...NULLS];
  }
}

const TIMES: FieldType[] = ["date", "time", "datetime"];
const NUMBERS: FieldType[] = ["integer", "big_integer", "decimal", "float", "percentage", "currency", "rating"];

/** An operator in words, as a chip says it. */
export function operatorLabel(operator: Operator, column: RecordColumn): string {
  const isTime = TIMES.includes(column.type);
  const isNumber = NUMBERS.includes(column.type);
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
  return operator === "is_null" || operator === "is_not_null";
}

export function takesList(operator: Operator): boolean {
  return operator === "in" || operator === "nin";
}

/** The value that stays when the operator changes. */
export function converted(value: Condition["value"], operator: Operator): Condition["value"] {
  if (takesNothing(operator)) return null;
  if (takesList(operator)) return Array.isArray(value) ? value : value === null || value === "" ? [] : [value];
  return Array.isArray(value) ? (value[0] ?? "") : (value ?? "");
}

/** Whether a condition can be sent. */
export function isWhole({ operator, value }: Condition, column: RecordColumn | undefined): boolean {
  if (takesNothing(operator)) return true;
  if (takesList(operator)) return Array.isArray(value) && value.length > 0;
  if (typeof value !== "string") return false;
  // Only text can be compared with nothing.
  return value !== "" || (column !== undefined && TEXTS.includes(column.type) && operator !== "ilike" && operator !== "like");
}

/** Of the URL: `[["status","eq","open"]]`. What is no condition is left out. */
export function readConditions(text: string | undefined): Condition[] {
  if (text === undefined) return [];
  try {
    return conditionsOf(JSON.parse(text));
  } catch {
    return [];
  }
}

export function conditionsOf(raw: unknown): Condition[] {
  if (!Array.isArray(raw)) return [];
  return raw.flatMap((each: unknown): Condition[] => {
    if (!Array.isArray(each)) return [];
    const [field, operator, value] = each as unknown[];
    if (typeof field !== "string" || !OPERATORS.includes(operator as Operator)) return [];
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

/** A list as a parameter holds it: items with commas or quotes stand in quotes. */
export function printList(items: string[]): string {
  return items.map((item) => (/[",]/.test(item) || item === "" ? `"${item.replaceAll('"', '""')}"` : item)).join(",");
}

/** As the parameter of a request: `status[eq]=open`. */
export function conditionParameter({ field, operator, value }: Condition): [string, string] {
  return [`${field}[${operator}]`, value === null ? "true" : Array.isArray(value) ? printList(value) : value];
}

/** The condition on a column that an editor begins with. */
export function initial(column: RecordColumn | undefined): Condition | null {
  const operator = column === undefined ? undefined : operatorsOf(column)[0];
  return column === undefined || operator === undefined ? null : { field: column.id, operator, value: converted("", operator) };
}

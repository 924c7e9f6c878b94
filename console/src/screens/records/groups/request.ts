/** The request for the groups of a view: its parameters, the keys of its result, and the input that an error belongs to. No React. */
import { CURRENCY_SCALE, isNumberType } from "../../../api/field-rules";
import type { ApiError } from "../../../api/errors";
import { printJson } from "../../../api/json";
import type { FieldType } from "../../../api/types";
import type { RecordColumn, RecordShape } from "../columns";
import { printParts, testOf } from "../filters/tree";
import { type ListView, filterParameters, printSort, sendable } from "../list-query";
import type { Grouping } from "../views/grouping";
import { type Clock, PERIODS, type Period } from "./periods";

/** The number of groups on a page, which is the most that a request gets. */
export const GROUPS_MAX = 100;
export const FUNCTIONS = ["count", "sum", "avg", "min", "max"] as const;

/** A field of `groupBy`. */
export interface GroupField {
  /** The text of the request, which is also the key in a group: `created_at:month`. */
  key: string;
  name: string;
  period: Period | undefined;
  /** The clock by which its periods begin. */
  clock: Clock;
  /** Undefined if there is no such column (any more). */
  column: RecordColumn | undefined;
  label: string;
}

/** A function of the groups. */
export interface GroupFunction {
  /** The text of the request: `sum:amount`. */
  text: string;
  /** The key of the result: `sum_amount`. */
  key: string;
  name: string;
  field: string | undefined;
  label: string;
  type: FieldType;
  /** The decimal places of a currency. */
  scale: number | undefined;
}

const parted = (text: string): [string, string | undefined] => {
  const colon = text.indexOf(":");
  return colon === -1 ? [text, undefined] : [text.slice(0, colon), text.slice(colon + 1)];
};

/** `zone` is the time zone of the request. Without one, periods are in UTC. */
export function fieldOf(text: string, shape: RecordShape, zone?: string): GroupField {
  const [name, given] = parted(text);
  const column = shape.byId.get(name);
  const period = PERIODS.find((each) => each === given);
  const label = column?.label ?? name;
  const clock = column?.type === "datetime" && zone !== undefined && takesZone(shape) ? "reader" : "utc";
  return { key: text, name, period, clock, column, label: given === undefined ? label : `${label} by ${given}` };
}

/** The type of a result. A sum of whole numbers can be greater than any of them. */
function typeOf(name: string, column: RecordColumn | undefined): FieldType {
  if (name === "count" || column === undefined) return "big_integer";
  if (name === "avg") return "float";
  return name === "sum" && column.type === "integer" ? "big_integer" : column.type;
}

export function functionOf(text: string, shape: RecordShape): GroupFunction {
  const [name, field] = parted(text);
  const column = field === undefined ? undefined : shape.byId.get(field);
  const type = typeOf(name, column);
  return {
    text,
    key: field === undefined ? name : `${name}_${field}`,
    name,
    field,
    label: field === undefined ? name : `${name} of ${column?.label ?? field}`,
    type,
    scale: type === "currency" ? (column?.field.scale ?? CURRENCY_SCALE) : undefined,
  };
}

/** The functions that a person can choose: the count, and the others of each column with numbers. */
export function functionsOf(shape: RecordShape): GroupFunction[] {
  const numbers = shape.columns.filter(({ type }) => isNumberType(type));
  return ["count", ...numbers.flatMap(({ id }) => FUNCTIONS.slice(1).map((name) => `${name}:${id}`))].map((text) => functionOf(text, shape));
}

/**
 * The result as a shape, so that its keys can be filtered like columns. A key that a field and a function share is left out, because the
 * server cannot filter or sort by it.
 */
export function resultShape({ by, functions }: Grouping, shape: RecordShape): RecordShape {
  const fields = by.map((text) => fieldOf(text, shape)).flatMap(({ key, label, column }): RecordColumn[] => (column === undefined ? [] : [{ ...column, id: key, label, isSystem: false, isReadOnly: true, field: { ...column.field, name: key } }]));
  const results = functions.map((text) => functionOf(text, shape)).map(({ key, label, type }): RecordColumn => ({ id: key, label, type, required: false, isSystem: false, isReadOnly: true, field: { name: key, type } }));
  const all = [...fields, ...results];
  const columns = all.filter(({ id }) => all.filter((other) => other.id === id).length === 1);
  return { name: shape.name, label: shape.label, columns, byId: new Map(columns.map((column) => [column.id, column])), relations: new Map(), signature: columns.map(({ id, type }) => `${id}:${type}`).join() };
}

/** Whether aggregates of the object take a time zone. If the object has a field `tz`, the parameter filters by that field instead. */
export const takesZone = (shape: RecordShape): boolean => !shape.byId.has("tz");
/** Whether aggregates of the object take a condition on groups. */
export const takesHaving = (shape: RecordShape): boolean => !shape.byId.has("having");

/** Whether the answer depends on the time zone. */
export function needsZone(grouping: Grouping, shape: RecordShape): boolean {
  return grouping.by.map((text) => fieldOf(text, shape)).some(({ period, column }) => period !== undefined && column?.type === "datetime");
}

/** The condition on the groups as JSON. Undefined if no condition can be sent. */
export function havingOf(grouping: Grouping, shape: RecordShape) {
  if (!takesHaving(shape)) return undefined;
  const result = resultShape(grouping, shape);
  const whole = sendable(grouping.having, result);
  return whole.length === 0 ? undefined : printParts(whole.map(testOf), result, () => undefined);
}

/** The order of the groups. Keys that the result does not have are left out, so that a removed function does not break the view. */
export function sortOf(grouping: Grouping, shape: RecordShape) {
  const { byId } = resultShape(grouping, shape);
  return grouping.sort.filter(({ id }) => byId.has(id));
}

/** The grouping without the parts about keys that its result does not have. */
export function pruned(grouping: Grouping, shape: RecordShape): Grouping {
  const { byId } = resultShape(grouping, shape);
  return { ...grouping, sort: sortOf(grouping, shape), having: grouping.having.filter(({ field }) => byId.has(field)) };
}

/** The parameters of the request, without those of the page. Without a zone, periods are in UTC. */
export function groupParameters(grouping: Grouping, view: ListView, shape: RecordShape, zone: string | undefined): [string, string][] {
  const having = havingOf(grouping, shape);
  const sort = printSort(sortOf(grouping, shape));
  return [
    ["fn", grouping.functions.join(",")],
    ["groupBy", grouping.by.join(",")],
    ...(zone !== undefined && needsZone(grouping, shape) && takesZone(shape) ? [["tz", zone] as [string, string]] : []),
    ...(having === undefined ? [] : [["having", printJson(having)] as [string, string]]),
    ...(sort === undefined ? [] : [["sort", sort] as [string, string]]),
    ...filterParameters(view, shape),
  ];
}

/** The parameters of the request for the periods of a field, the newest first. Conditions on groups would hide some. */
export function periodParameters(key: string, view: ListView, shape: RecordShape, zone: string | undefined): [string, string][] {
  return groupParameters({ by: [key], functions: ["count"], sort: [{ id: key, descending: true }], having: [], chart: undefined }, view, shape, zone);
}

/** Whether the server does not know the time zone of the request. */
export function isZoneUnknown({ status, field }: Pick<ApiError, "status" | "field">, shape: RecordShape): boolean {
  // If the object has a field called `tz`, the error is about a filter.
  return status === 400 && field === "tz" && takesZone(shape);
}

/** The input of the screen that an error belongs to. */
export type Place = { input: "field"; index: number } | { input: "functions" | "having" };

/**
 * The input that the server refuses. Undefined if the error is about something else, such as the filter of the records. The server's message
 * about a condition begins with the condition's path.
 */
export function placeOf({ status, code, message, field }: Pick<ApiError, "status" | "code" | "message" | "field">, grouping: Grouping, view: ListView, shape: RecordShape): Place | undefined {
  if (status !== 400) return undefined;
  // A field with the name of a parameter belongs to the filter of the records.
  if (takesHaving(shape) && (message.startsWith("`having") || field === "having")) return { input: "having" };
  if (message.startsWith("`where") || field === undefined) return undefined;
  // A filter of the records with the same field may be wrong instead.
  if (code === "invalid_value" && view.conditions.some((condition) => condition.field === field)) return undefined;
  if (code !== "invalid_value") {
    const index = grouping.by.map((text) => fieldOf(text, shape)).findLastIndex(({ key, name }) => key === field || name === field);
    if (index !== -1) return { input: "field", index };
  }
  return grouping.functions.map((text) => functionOf(text, shape)).some(({ key, field: of }) => key === field || of === field) ? { input: "functions" } : undefined;
}

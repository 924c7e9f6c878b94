/** The parameters of a view's request, in a query string or in a body. This file does not use React. */
import { type JsonObject, type JsonValue, printJson } from "../../api/json";
import { type Condition, conditionParameter, isWhole, meansNull } from "./filters/conditions";
import { parseWhere, printParts, testOf } from "./filters/tree";
import type { RecordShape } from "./columns";

export interface SortKey {
  id: string;
  descending: boolean;
}

export interface ListView {
  /** Plain conditions, which AND joins. A value is always a text: `null` is the text, and `is_null` tests for null. */
  conditions: Condition[];
  /** The JSON text of a condition that plain conditions cannot express, or an empty text. */
  where: string;
  search: string;
  sort: SortKey[];
}

export function readSort(text: string | undefined): SortKey[] {
  return (text ?? "")
    .split(",")
    .filter((name) => name !== "" && name !== "-")
    .map((name) => (name.startsWith("-") ? { id: name.slice(1), descending: true } : { id: name, descending: false }));
}

export function printSort(sort: SortKey[]): string | undefined {
  return sort.length === 0 ? undefined : sort.map(({ id, descending }) => (descending ? `-${id}` : id)).join(",");
}

/** The conditions that can be sent: they are complete, and their columns exist. */
export function sendable(conditions: Condition[], shape: RecordShape): Condition[] {
  return conditions.filter((condition) => {
    const column = shape.byId.get(condition.field);
    return column !== undefined && isWhole(condition, column);
  });
}

/** Whether the object's lists take cursors. A field with the name of one of their parameters replaces it too. */
export function takesCursors(shape: RecordShape): boolean {
  return !["cursor", "after", "before"].some((name) => shape.byId.has(name));
}

const WHERE = "where";

/** The condition as JSON, with these plain conditions. A text that is no condition stays as it is, so that the server says what is wrong. */
function joined(where: string, conditions: Condition[], shape: RecordShape): string {
  const json: JsonObject | undefined = where === "" ? {} : parseWhere(where);
  if (conditions.length === 0 || json === undefined) return where;
  return printJson(printParts([{ kind: "raw", json }, ...conditions.map(testOf)], shape, () => undefined));
}

/**
 * The parameters that decide which rows match: the search, the plain conditions, and the condition as JSON. A plain condition with another
 * meaning in a query string is a part of the condition.
 */
export function filterParameters({ conditions, where, search }: ListView, shape: RecordShape): [string, string][] {
  const whole = sendable(conditions, shape);
  const condition = joined(where, whole.filter(meansNull), shape);
  return [
    ...(search === "" ? [] : [["search", search] as [string, string]]),
    ...whole.filter((each) => !meansNull(each)).map(conditionParameter),
    ...(condition === "" ? [] : [[WHERE, condition] as [string, string]]),
  ];
}

/** The same parameters with the order. Sorts by columns that no longer exist are left out. */
export function listParameters(view: ListView, shape: RecordShape): [string, string][] {
  const sort = printSort(view.sort.filter(({ id }) => shape.byId.has(id)));
  return [...filterParameters(view, shape), ...(sort === undefined ? [] : [["sort", sort] as [string, string]])];
}

/** The text of a query string. Brackets, commas and colons are not encoded, so that it stays readable. */
export function queryText(parameters: [string, string][]): string {
  return new URLSearchParams(parameters).toString().replaceAll("%5B", "[").replaceAll("%5D", "]").replaceAll("%2C", ",").replaceAll("%3A", ":");
}

/** The value of a parameter in a body. */
function bodyValue(name: string, text: string): JsonValue {
  if (name === WHERE) return parseWhere(text) ?? text;
  if (name === "cursor") return true;
  return name === "page" || name === "pageSize" ? Number(text) : text;
}

/** The maximum size of a query string, in bytes. The server refuses a URL of more than 65,534 bytes before it reads the URL. */
const QUERY_BYTES_MAX = 30_000;

/**
 * Whether no query string takes the parameters. If the object has a field with the name `where`, the parameter of this name filters by that
 * field, so only a body takes a condition.
 */
const needsBody = (parameters: [string, string][], shape: RecordShape) => shape.byId.has(WHERE) && parameters.some(([name]) => name === WHERE);

/** The parameters of a list as the body of `POST …/query`. Undefined if a query string takes them and is short enough. */
export function bodyOf(parameters: [string, string][], shape: RecordShape): JsonObject | undefined {
  if (!needsBody(parameters, shape) && queryText(parameters).length <= QUERY_BYTES_MAX) return undefined;
  const filters: JsonObject[] = [];
  const body: JsonObject = {};
  for (const [name, value] of parameters) {
    const [, field, operator] = /^(\w+)\[(\w+)\]$/.exec(name) ?? [];
    if (field !== undefined && operator !== undefined) filters.push({ field, operator, value });
    else body[name] = bodyValue(name, value);
  }
  return filters.length === 0 ? body : { ...body, filters };
}

/** Whether only the list takes the condition of the view: exports and groups have no body. */
export function isOnlyForList(view: ListView, shape: RecordShape): boolean {
  return needsBody(filterParameters(view, shape), shape);
}

/** The reason that people read then. */
export const ONLY_FOR_LIST = "The object has a field called where, so only its list takes this condition.";

/** The reason that people read if a condition of the view cannot be sent. */
export const NOT_SENT = "A condition has no value, or its field is gone or hidden from you, so the list is not filtered by it. Change or remove it.";

/**
 * Why nothing may be done with all records that match the view, neither a change nor an export. Undefined if it may. A condition that is not
 * sent would be left out, and so all records would match.
 */
export function withheld(view: ListView, shape: RecordShape): string | undefined {
  if (sendable(view.conditions, shape).length < view.conditions.length) return NOT_SENT;
  return isOnlyForList(view, shape) ? ONLY_FOR_LIST : undefined;
}

/** Whether new rows come first. Without a sort the newest rows come first, but only for persons who may read `created_at`. */
export function isNewestFirst(sort: SortKey[], shape: RecordShape): boolean {
  const first = sort[0];
  if (first === undefined) return shape.byId.has("created_at");
  return first.descending && (first.id === "created_at" || first.id === "id");
}

/** The query parameters of a view's request. */
import { type Condition, conditionParameter, isWhole } from "./filters/conditions";
import type { RecordShape } from "./columns";

export interface SortKey {
  id: string;
  descending: boolean;
}

export interface ListView {
  /** Plain conditions, which AND joins. Each is a parameter of its own. */
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

/**
 * Whether the object's lists take a condition. If the object has a field with the name `where`, the parameter filters by that field
 * instead.
 */
export function takesWhere(shape: RecordShape): boolean {
  return !shape.byId.has("where");
}

/** Whether the object's lists take cursors. A field with the name of one of their parameters replaces it too. */
export function takesCursors(shape: RecordShape): boolean {
  return !["cursor", "after", "before"].some((name) => shape.byId.has(name));
}

/** The parameters that decide which rows match: the search, the plain conditions, and the condition as JSON. */
export function filterParameters({ conditions, where, search }: ListView, shape: RecordShape): [string, string][] {
  return [
    ...(search === "" ? [] : [["search", search] as [string, string]]),
    ...sendable(conditions, shape).map(conditionParameter),
    ...(where === "" || !takesWhere(shape) ? [] : [["where", where] as [string, string]]),
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

/** Whether new rows come first. Without a sort the newest rows come first, but only for persons who may read `created_at`. */
export function isNewestFirst(sort: SortKey[], shape: RecordShape): boolean {
  const first = sort[0];
  if (first === undefined) return shape.byId.has("created_at");
  return first.descending && (first.id === "created_at" || first.id === "id");
}

/** The request of a view: its parameters. */
import { type Condition, conditionParameter, isWhole } from "./filters/conditions";
import type { RecordShape } from "./columns";

export interface SortKey {
  id: string;
  descending: boolean;
}

export interface ListView {
  /** Plain conditions, which are ANDed and sent one by one. */
  conditions: Condition[];
  /** The JSON text of a condition that says more than they can, or nothing. */
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

/** Conditions that can be sent: whole, and about columns that are there. */
export function sendable(conditions: Condition[], shape: RecordShape): Condition[] {
  return conditions.filter((condition) => {
    const column = shape.byId.get(condition.field);
    return column !== undefined && isWhole(condition, column);
  });
}

/** Whether the object's lists take a condition: `where` is a filter on the field of that name, where there is one. */
export function takesWhere(shape: RecordShape): boolean {
  return !shape.byId.has("where");
}

/** What decides which rows there are: search, plain conditions and the condition as JSON. */
export function filterParameters({ conditions, where, search }: ListView, shape: RecordShape): [string, string][] {
  return [
    ...(search === "" ? [] : [["search", search] as [string, string]]),
    ...sendable(conditions, shape).map(conditionParameter),
    ...(where === "" || !takesWhere(shape) ? [] : [["where", where] as [string, string]]),
  ];
}

/** With the order. Sorts by columns that are gone are left out. */
export function listParameters(view: ListView, shape: RecordShape): [string, string][] {
  const sort = printSort(view.sort.filter(({ id }) => shape.byId.has(id)));
  return [...filterParameters(view, shape), ...(sort === undefined ? [] : [["sort", sort] as [string, string]])];
}

/** Readable where an address allows it: brackets, commas and colons stay as they are. */
export function queryText(parameters: [string, string][]): string {
  return new URLSearchParams(parameters).toString().replaceAll("%5B", "[").replaceAll("%5D", "]").replaceAll("%2C", ",").replaceAll("%3A", ":");
}

/** Whether rows that are made now stand first: no sort is the newest first, for those who may read when a record was made. */
export function isNewestFirst(sort: SortKey[], shape: RecordShape): boolean {
  const first = sort[0];
  if (first === undefined) return shape.byId.has("created_at");
  return first.descending && (first.id === "created_at" || first.id === "id");
}

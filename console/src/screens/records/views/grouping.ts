/** How a view groups its records, in the form of the address. Saved views have the same form. */
import { type Condition, printConditions, readConditions } from "../filters/conditions";
import type { RecordColumn, RecordShape } from "../columns";
import { type SortKey, printSort, readSort } from "../list-query";
import type { CHARTS, RecordsSearch } from "../search";

export type ChartKind = (typeof CHARTS)[number];

export interface Grouping {
  /** One or two fields, in the format of the API: `status`, `created_at:month`. */
  by: string[];
  /** At least one function, in the format of the API: `count`, `sum:amount`. */
  functions: string[];
  /** The order of the groups, by the keys of the result. If it is empty, the fields of the groups decide. */
  sort: SortKey[];
  /** Conditions on the groups, which AND joins. Their fields are keys of the result. */
  having: Condition[];
  /** Undefined if the screen chooses. */
  chart: ChartKind | undefined;
}

export type GroupingSearch = Pick<RecordsSearch, "group" | "fn" | "groupSort" | "having" | "chart">;

export const FIELDS_MAX = 2;
/** The maximum number of functions of one request. */
export const FUNCTIONS_MAX = 20;
const FUNCTION = "count";

const names = (text: string | undefined, max: number) => [...new Set((text ?? "").split(",").map((name) => name.trim()).filter((name) => name !== ""))].slice(0, max);

/** Null if there is no field to group by. */
export function readGrouping({ group, fn, groupSort, having, chart }: GroupingSearch): Grouping | null {
  const by = names(group, FIELDS_MAX);
  if (by.length === 0) return null;
  const functions = names(fn, FUNCTIONS_MAX);
  return { by, functions: functions.length === 0 ? [FUNCTION] : functions, sort: readSort(groupSort), having: readConditions(having), chart };
}

/** The parameters without those that are the default. */
export function printGrouping({ by, functions, sort, having, chart }: Grouping): GroupingSearch {
  return {
    group: by.join(","),
    fn: functions.join(",") === FUNCTION ? undefined : functions.join(","),
    groupSort: printSort(sort),
    having: printConditions(having),
    chart,
  };
}

export const NO_GROUPING = { group: undefined, fn: undefined, groupSort: undefined, having: undefined, chart: undefined } satisfies GroupingSearch;

/** Whether records can be grouped by the values of the column. */
export function makesGroups({ type }: Pick<RecordColumn, "type">): boolean {
  return type !== "json" && type !== "multi_enum";
}

/** Whether the values of the column belong to periods. */
export function hasPeriods({ type }: Pick<RecordColumn, "type">): boolean {
  return type === "date" || type === "datetime";
}

/** The grouping that a person sees first: by the field with the fewest values, or by month. */
export function firstGrouping(shape: RecordShape): Grouping | null {
  const own = shape.columns.filter(({ isSystem }) => !isSystem);
  const field =
    own.find(({ type }) => type === "enum") ?? own.find(({ type }) => type === "boolean") ?? own.find(({ relation }) => relation !== undefined) ?? own.find(hasPeriods) ?? shape.byId.get("created_at") ?? own.find(makesGroups) ?? shape.columns.find(makesGroups);
  return field === undefined ? null : readGrouping({ group: hasPeriods(field) ? `${field.id}:month` : field.id });
}

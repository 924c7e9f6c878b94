/** Groups and results as text for people. This file does not use React. */
import { amountText, withScale } from "../../../api/field-rules";
import { type JsonValue, printJson } from "../../../api/json";
import { NUMBER } from "../../../api/numbers";
import { shortId } from "../../../components/short-id";
import type { GroupRow, RecordRow } from "../../../api/record-paths";
import type { RecordColumn } from "../columns";
import type { Condition } from "../filters/conditions";
import { periodLabel } from "./periods";
import type { GroupField, GroupFunction } from "./request";

/** The name of the group of records without a value. */
export const EMPTY = "(empty)";
const TEXT_MAX = 200;

const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export type TitleOf = (column: RecordColumn, id: string) => string | undefined;

/** The name of a group's value: "(empty)" for null, a period in words, an amount with its decimal places, the title of a related record. */
export function valueLabel(value: JsonValue | undefined, { column, period, clock }: GroupField, titleOf: TitleOf): string {
  if (value === null || value === undefined) return EMPTY;
  if (value === "") return '""';
  if (typeof value !== "string") return column?.type === "currency" ? amountText(value, column.field) : printJson(value);
  if (column === undefined) return value;
  if (period !== undefined) return periodLabel(value, period, clock);
  if (column.relation !== undefined) return titleOf(column, value) ?? shortId(value);
  if (column.type === "datetime") {
    const at = new Date(value);
    return Number.isNaN(at.getTime()) ? value : local.format(at);
  }
  if (column.type === "uuid" || column.id === "created_by" || column.id === "updated_by") return shortId(value);
  return value.length > TEXT_MAX ? `${value.slice(0, TEXT_MAX)}…` : value;
}

/** The values of groups and conditions as rows, because titles are loaded for the references of rows. */
export function rowsWithReferences(groups: GroupRow[], conditions: Condition[]): RecordRow[] {
  const values = conditions.flatMap(({ field, value }) => (Array.isArray(value) ? value : [value]).map((each) => ({ [field]: each })));
  return [...groups.map(({ group }) => group), ...values].map((row) => ({ ...row, id: "" }));
}

/** A result with all its digits. Null if no record of the group has a value. */
export function resultText(value: JsonValue | undefined, { scale }: GroupFunction): string | null {
  if (value === null || value === undefined) return null;
  return scale === undefined ? String(value) : withScale(String(value), scale);
}

/** Says which of the groups are shown. */
export function shownWords(page: number, size: number, count: number, total: number | null): string {
  if (total === null || total <= count) return "";
  const first = (page - 1) * size + 1;
  return first === 1 ? `Shown: first ${NUMBER.format(count)} of ${NUMBER.format(total)} groups` : `Shown: groups ${NUMBER.format(first)}–${NUMBER.format(first + count - 1)} of ${NUMBER.format(total)}`;
}

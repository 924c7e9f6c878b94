/** Places groups in charts: along the axis by the first field, apart by the second one. This file does not use React. */
import { type JsonValue, printJson } from "../../../api/json";
import type { GroupRow } from "../../../api/record-paths";
import type { ChartKind, Grouping } from "../views/grouping";
import { type Clock, type Period, beginOf, borderAfter } from "./periods";
import type { GroupField, GroupFunction } from "./request";

/** The number of lines, or of bars beside each other, that people can tell apart. */
export const SERIES_MAX = 6;
/** The maximum number of periods from the first to the last one, with those that have no records. */
export const PERIODS_MAX = 400;

/** A line suits periods that follow each other. Several charts below each other compare better with bars. */
export function chartKind({ chart, functions }: Grouping, along: GroupField | undefined): ChartKind {
  if (along?.period === undefined) return "bars";
  return chart ?? (functions.length === 1 ? "line" : "bars");
}

export interface ChartLayout {
  /** The names of the places along the axis. */
  slots: string[];
  /** The names of the lines, or of the bars beside each other. Without a second field, it is one empty name. */
  series: string[];
  rowAt: (slot: number, series: number) => GroupRow | undefined;
  /** A result as a double, which is enough for a picture. Null for a gap. */
  valueAt: (of: GroupFunction, slot: number, series: number) => number | null;
  /** The groups that the chart leaves out, in sentences. */
  notes: string[];
}

export interface ChartOptions {
  rows: GroupRow[];
  fields: GroupField[];
  functions: GroupFunction[];
  kind: ChartKind;
  /** Whether a place without a group has no records. Otherwise, its group may be on another page, or not meet a condition. */
  knowsGaps: boolean;
  labelOf: (field: GroupField, value: JsonValue | undefined) => string;
}

const key = (value: JsonValue | undefined) => printJson(value ?? null);

/** The values in the order of time, and the periods between them as instants. Undefined if there are too many. */
function withGaps(values: JsonValue[], period: Period, clock: Clock): { value?: JsonValue; begin: number }[] | undefined {
  const known = values.flatMap((value) => {
    const begin = beginOf(value);
    return begin === undefined ? [] : [{ value, begin }];
  });
  known.sort((one, other) => one.begin - other.begin);
  const all: { value?: JsonValue; begin: number }[] = [];
  for (const [index, each] of known.entries()) {
    all.push(each);
    const next = known[index + 1]?.begin;
    // The server sends nothing about periods without records, so the browser computes where they are.
    for (let begin = each.begin; next !== undefined; ) {
      const end = borderAfter(begin, period, clock, [next]);
      if (!(end > begin && end < next)) break;
      begin = end;
      all.push({ begin });
      if (all.length > PERIODS_MAX) return undefined;
    }
  }
  return all;
}

export function layOut({ rows, fields, functions, kind, knowsGaps, labelOf }: ChartOptions): ChartLayout {
  const [along, apart] = fields;
  const notes: string[] = [];
  const distinct = (field: GroupField | undefined) => [...new Map(rows.map(({ group }) => (field === undefined ? null : (group[field.key] ?? null))).map((value) => [key(value), value])).values()];
  const byKey = new Map(rows.map((row) => [`${along === undefined ? "" : key(row.group[along.key])} ${apart === undefined ? "" : key(row.group[apart.key])}`, row]));

  let slots: { key: string | undefined; label: string }[] = [];
  if (along !== undefined) {
    const values = distinct(along);
    const slotOf = (value: JsonValue) => ({ key: key(value), label: labelOf(along, value) });
    const { period, clock } = along;
    if (period === undefined) slots = values.map(slotOf);
    else {
      const times = values.filter((value) => value !== null);
      const filled = withGaps(times, period, clock);
      if (filled === undefined) notes.push("Periods without records are left out.");
      const sorted = filled ?? times.map((value) => ({ value, begin: beginOf(value) ?? 0 })).sort((one, other) => one.begin - other.begin);
      slots = sorted.map(({ value, begin }) => (value === undefined ? { key: undefined, label: labelOf(along, new Date(begin).toISOString()) } : slotOf(value)));
      if (times.length < values.length) {
        // Null is at no time.
        if (kind === "bars") slots.push(slotOf(null));
        else notes.push(`The line leaves out ${labelOf(along, null)}.`);
      }
    }
  }

  let series = distinct(apart);
  const [first] = functions;
  if (apart !== undefined && first !== undefined && series.length > SERIES_MAX) {
    const results = new Map<string, number[]>();
    for (const row of rows) {
      const [name, result] = [key(row.group[apart.key]), numberOf(row[first.key])];
      results.set(name, [...(results.get(name) ?? []), ...(result === null ? [] : [result])]);
    }
    const { rank, word } = rankOf(first);
    const ranks = [...results].map(([name, values]) => ({ name, rank: values.length === 0 ? Number.NEGATIVE_INFINITY : rank(values) }));
    // Two ranks of minus infinity have no difference that could be sorted by.
    ranks.sort((one, other) => (one.rank === other.rank ? 0 : other.rank > one.rank ? 1 : -1));
    const kept = new Set(ranks.slice(0, SERIES_MAX).map(({ name }) => name));
    notes.push(`The chart shows ${SERIES_MAX} of ${series.length} values of ${apart.label}: those with the ${word} ${first.label}.`);
    series = series.filter((value) => kept.has(key(value)));
  }

  const rowAt = (slot: number, of: number) => {
    const name = slots[slot]?.key;
    return name === undefined ? undefined : byKey.get(`${name} ${apart === undefined ? "" : key(series[of])}`);
  };
  return {
    slots: slots.map(({ label }) => label),
    series: apart === undefined ? [""] : series.map((value) => labelOf(apart, value)),
    rowAt,
    valueAt: (of, slot, index) => {
      const row = rowAt(slot, index);
      if (row === undefined) return knowsGaps && of.name === "count" ? 0 : null;
      return numberOf(row[of.key]);
    },
    notes,
  };
}

/**
 * How the lines or bars of a function are ranked, by their results. Results of counts and sums are parts of a whole. Means and extremes are
 * not, so adding them up would rank a line by the number of its places.
 */
function rankOf({ name }: GroupFunction): { rank: (results: number[]) => number; word: string } {
  switch (name) {
    case "avg":
      return { rank: (results) => results.reduce((sum, each) => sum + each / results.length, 0), word: "highest" };
    case "max":
      return { rank: (results) => Math.max(...results), word: "highest" };
    case "min":
      return { rank: (results) => -Math.min(...results), word: "lowest" };
    default:
      return { rank: (results) => results.reduce((sum, each) => sum + Math.abs(each), 0), word: "largest" };
  }
}

function numberOf(value: JsonValue | undefined): number | null {
  const number = value === null || value === undefined ? Number.NaN : Number(String(value));
  return Number.isFinite(number) ? number : null;
}

/**
 * Whether the groups of a page show which places have no records: no condition hides a group, and no group between them is on another page.
 */
export function knowsGaps({ by, having, sort }: Pick<Grouping, "by" | "having" | "sort">, isAll: boolean): boolean {
  if (having.length > 0) return false;
  return isAll || (by.length === 1 && (sort.length === 0 || sort[0]!.id === by[0]));
}

/**
 * The periods of dates and points in time: their names for people, and where each ends. This file does not use React.
 *
 * The server sends where each group's period begins, by its own table of time zones. The browser's table can differ from it by some hours,
 * because governments change their clocks. So names and borders come from the server's begins as far as possible.
 */
import type { RecordColumn } from "../columns";

/** The periods of the API. */
export const PERIODS = ["year", "quarter", "month", "week", "day", "hour"] as const;
export type Period = (typeof PERIODS)[number];

/** The periods of a column. Dates have no hours. */
export function periodsOf({ type }: Pick<RecordColumn, "type">): Period[] {
  return type === "datetime" ? [...PERIODS] : type === "date" ? PERIODS.filter((period) => period !== "hour") : [];
}

/**
 * The clock by which a period begins: that of the reader, or UTC. Dates have no zone, so their clock is UTC. Only these two clocks are
 * possible, because a browser computes with no other one.
 */
export type Clock = "reader" | "utc";

/** The first instant of a period, in milliseconds. Undefined if the text is no date and no point in time. */
export function beginOf(value: unknown): number | undefined {
  const begin = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(begin) ? undefined : begin;
}

const MINUTE_MS = 60_000;
const HOUR_MINUTES = 60;

/** The hour ends at the next full hour of the clock, or earlier if the clock changes within it. */
function endOfHour(begin: number, clock: Clock): number {
  const at = new Date(begin);
  const minutes = HOUR_MINUTES - (clock === "utc" ? at.getUTCMinutes() : at.getMinutes());
  const offset = at.getTimezoneOffset();
  for (let minute = 1; clock === "reader" && minute < minutes; minute++) {
    const next = begin + minute * MINUTE_MS;
    if (new Date(next).getTimezoneOffset() !== offset) return next;
  }
  return begin + minutes * MINUTE_MS;
}

/** Two tables differ by less than this, and periods begin at least this far apart: a change of the clocks cuts an hour in two halves. */
const toleranceOf = (period: Period) => (period === "hour" ? HOUR_MINUTES / 2 : 12 * HOUR_MINUTES) * MINUTE_MS;

/**
 * The first instant after a period: the begin of the next one, if it is among the begins that the server has sent. A period without records
 * has no group, a condition can hide a group, and it can be on another page. Then nothing that the server has sent is this border, and the
 * end is the one of the browser's table.
 */
export function borderAfter(begin: number, period: Period, clock: Clock, begins: number[]): number {
  const computed = computedEnd(begin, period, clock);
  const next = begins.reduce((least, each) => (each > begin && each < least ? each : least), Number.POSITIVE_INFINITY);
  // A begin further on is that of a later period.
  return next < computed + toleranceOf(period) ? next : computed;
}

/** Where the period that begins at `begin` ends by the browser's table, in milliseconds. */
export function computedEnd(begin: number, period: Period, clock: Clock): number {
  if (period === "hour") return endOfHour(begin, clock);
  // If the tables differ, the browser's clock may still show the day before at the begin. Half a day later, it shows the first day.
  const at = new Date(begin + toleranceOf(period));
  const [days, months] = { day: [1, 0], week: [7, 0], month: [0, 1], quarter: [0, 3], year: [0, 12] }[period] as [number, number];
  if (clock === "utc") {
    at.setUTCMonth(at.getUTCMonth() + months, at.getUTCDate() + days);
    at.setUTCHours(0, 0, 0, 0);
  } else {
    at.setMonth(at.getMonth() + months, at.getDate() + days);
    at.setHours(0, 0, 0, 0);
  }
  return at.getTime();
}

const FORMATS: Record<Exclude<Period, "quarter">, Intl.DateTimeFormatOptions> = {
  year: { year: "numeric" },
  month: { year: "numeric", month: "short" },
  week: { dateStyle: "medium" },
  day: { dateStyle: "medium" },
  hour: { dateStyle: "medium", timeStyle: "short" },
};

const formats = new Map<string, Intl.DateTimeFormat>();
function format(at: Date, options: Intl.DateTimeFormatOptions, clock: Clock, locale: string | undefined): string {
  const key = `${JSON.stringify(options)} ${clock} ${locale}`;
  const known = formats.get(key) ?? new Intl.DateTimeFormat(locale, { ...options, ...(clock === "utc" ? { timeZone: "UTC" } : {}) });
  formats.set(key, known);
  return known.format(at);
}

/** The name of a period: "2026", "Q1 2026", "Mar 2026", "Week of Mar 2, 2026". Without a locale, it is the reader's. */
export function periodLabel(value: string, period: Period, clock: Clock, locale?: string): string {
  const begin = beginOf(value);
  if (begin === undefined) return value;
  // Shortly after its begin, the name of a period is the same in both tables. An hour is named by its begin.
  const at = new Date(period === "hour" ? begin : begin + toleranceOf(period));
  if (period === "quarter") return `Q${Math.floor((clock === "utc" ? at.getUTCMonth() : at.getMonth()) / 3) + 1} ${format(at, FORMATS.year, clock, locale)}`;
  const label = format(at, FORMATS[period], clock, locale);
  if (period === "week") return `Week of ${label}`;
  if (period !== "hour" || clock === "utc") return label;
  // The clock shows this hour twice on one day in autumn.
  const isRepeated = [-1, 1].some((by) => format(new Date(begin + by * HOUR_MINUTES * MINUTE_MS), FORMATS.hour, clock, locale) === label);
  return isRepeated ? format(at, { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "shortOffset" }, clock, locale) : label;
}

const YEAR_MIN = 1;
const YEAR_MAX = 9_999;

/** An instant in the format of the column. Undefined if the column has no values so early or so late. */
export function boundOf(instant: number, { type }: Pick<RecordColumn, "type">): string | undefined {
  const at = new Date(instant);
  if (Number.isNaN(instant) || at.getUTCFullYear() < YEAR_MIN || at.getUTCFullYear() > YEAR_MAX) return undefined;
  return type === "date" ? at.toISOString().slice(0, 10) : at.toISOString();
}

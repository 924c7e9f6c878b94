/**
 * rjsf copies and merges plain data, which would break a `LosslessNumber`. So while a value is in a form, a number that a double cannot
 * represent exactly is a text with a mark before it.
 */
import { LosslessNumber, isLosslessNumber, isJsonObject, type JsonValue } from "../../api/json";

/** A character for private use in Unicode. No text that a person types begins with it. */
const MARK = "\u{F0000}#";

export function isMarked(value: unknown): value is string {
  return typeof value === "string" && value.startsWith(MARK);
}

export function mark(number: number | LosslessNumber): number | string {
  return isLosslessNumber(number) ? MARK + number.toString() : number;
}

export function digitsOf(value: unknown): string {
  return isMarked(value) ? value.slice(MARK.length) : value === undefined || value === null ? "" : String(value);
}

/** Converts a value for the form. */
export function intoForm(value: JsonValue | undefined): unknown {
  if (isLosslessNumber(value)) return mark(value);
  if (Array.isArray(value)) return value.map(intoForm);
  if (isJsonObject(value)) return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, intoForm(each)]));
  return value;
}

/** Converts a value of the form for the API. Members that are undefined are left out. */
export function outOfForm(value: unknown): JsonValue | undefined {
  if (isMarked(value)) return new LosslessNumber(digitsOf(value));
  if (Array.isArray(value)) return value.map((each) => outOfForm(each) ?? null);
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).flatMap(([key, each]) => (each === undefined ? [] : [[key, outOfForm(each) as JsonValue]])));
  return value as JsonValue | undefined;
}

/** Converts a value for checks with the schema, which use doubles. The result is close enough for bounds, and the type stays number. */
export function forChecks(value: unknown): unknown {
  if (isMarked(value)) return Number(digitsOf(value));
  if (Array.isArray(value)) return value.map((each) => forChecks(each) ?? null);
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).flatMap(([key, each]) => (each === undefined ? [] : [[key, forChecks(each)]])));
  return value;
}

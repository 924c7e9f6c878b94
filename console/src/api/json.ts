/**
 * JSON without loss: numbers that a double cannot hold with all their digits (64-bit integers, decimals) stay text inside a
 * `LosslessNumber`; all others are ordinary numbers.
 */
import { LosslessNumber, isLosslessNumber, parse, stringify } from "lossless-json";

export { LosslessNumber, isLosslessNumber };

export type JsonValue = null | boolean | number | LosslessNumber | string | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

function exactNumber(text: string): number | LosslessNumber {
  const number = Number(text);
  return String(number) === text ? number : new LosslessNumber(text);
}

export function parseJson(text: string): JsonValue {
  return parse(text, undefined, exactNumber) as JsonValue;
}

/** `space` is the indentation. A value that JSON does not know (undefined) becomes `null`. */
export function printJson(value: unknown, space?: number): string {
  return stringify(value, undefined, space) ?? "null";
}

/** What a person typed as a number, with all its digits; `null` if it is not a JSON number. */
export function readNumber(text: string): number | LosslessNumber | null {
  const trimmed = text.trim();
  return /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(trimmed) ? exactNumber(trimmed) : null;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isLosslessNumber(value);
}

/** Whether two values are the same JSON, numbers by their digits. */
export function sameJson(one: unknown, other: unknown): boolean {
  return one === other || printJson(one) === printJson(other);
}

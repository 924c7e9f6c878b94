/**
 * JSON with all digits. A number that a double cannot represent exactly (a 64-bit integer, a decimal) stays text in a `LosslessNumber`. All
 * others are ordinary numbers.
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

/** Parses a text that a person typed, and says what is wrong with it. */
export function checkJson(text: string): { value: JsonValue } | { problem: string } {
  try {
    return { value: parseJson(text) };
  } catch (error) {
    return { problem: `This is not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** Parses a text that may not be JSON. It is undefined then. */
export function readJson(text: string): JsonValue | undefined {
  const read = checkJson(text);
  return "value" in read ? read.value : undefined;
}

/** `space` is the indentation. A value that JSON does not have (undefined) becomes `null`. */
export function printJson(value: unknown, space?: number): string {
  return stringify(value, undefined, space) ?? "null";
}

/** Parses a number that a person typed, with all its digits. `null` if the text is not a JSON number. */
export function readNumber(text: string): number | LosslessNumber | null {
  const trimmed = text.trim();
  return /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(trimmed) ? exactNumber(trimmed) : null;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isLosslessNumber(value);
}

/** Whether two values are the same JSON. Numbers are compared by their digits. */
export function sameJson(one: unknown, other: unknown): boolean {
  return one === other || printJson(one) === printJson(other);
}

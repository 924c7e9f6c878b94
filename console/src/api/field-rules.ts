/**
 * The rules of a column, in words and as checks before a request. The server has the last word. These checks show the person at once, for
 * all columns together, what the server would refuse. A pattern has the syntax of Rust. If this browser reads it differently, only the
 * server checks it.
 */
import { isLosslessNumber, type JsonValue, printJson } from "./json";
import type { Column } from "./record-shape";
import type { FieldType } from "./types";

/** Both functions return false for a text that is no type. */
export const isNumberType = (type: FieldType) => /^(integer|big_integer|decimal|float|percentage|currency|rating)$/.test(type);
/** Whether `min` and `max` are lengths and the type can have a pattern. */
export const isTextType = (type: FieldType) => /^(text|email|url|slug)$/.test(type);

/** A text with at most this many characters is edited in one line. */
const LINE_CHARACTERS_MAX = 200;

/** Whether a text may have several lines. It may if it has no maximum or a large one, or if it already has several lines. */
export const mayHaveLines = ({ type, max }: Pick<Column, "type" | "max">, text: string): boolean =>
  type === "text" && (max === undefined || max === null || compareNumbers(String(max), String(LINE_CHARACTERS_MAX)) > 0 || /[\r\n]/.test(text));

const SLUG = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const TIME = /^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?$/;
const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
/** Numbers with larger exponents are compared as doubles, because their digits would fill the memory. */
const EXPONENT_MAX = 400;

/** The bounds of the types that have bounds. */
const TYPE_BOUNDS: Partial<Record<FieldType, [string, string]>> = {
  integer: ["-2147483648", "2147483647"],
  big_integer: ["-9223372036854775808", "9223372036854775807"],
};

/** A number as its digits and the number of places after the decimal point. */
function scaled(text: string): { digits: bigint; places: number } | undefined {
  const parts = DECIMAL.exec(text);
  if (parts === null) return undefined;
  const [, sign = "", whole = "0", fraction = "", exponent = "0"] = parts;
  if (Math.abs(Number(exponent)) > EXPONENT_MAX) return undefined;
  return { digits: BigInt(sign + whole + fraction), places: fraction.length - Number(exponent) };
}

/** Compares two numbers with all their digits. The result is negative if `one` is less. */
export function compareNumbers(one: string, other: string): number {
  const first = scaled(one);
  const second = scaled(other);
  if (first === undefined || second === undefined) return Number(one) - Number(other);
  const places = Math.max(first.places, second.places);
  const left = first.digits * 10n ** BigInt(places - first.places);
  const right = second.digits * 10n ** BigInt(places - second.places);
  return left < right ? -1 : left > right ? 1 : 0;
}

/** The number of decimal places of a currency without a `scale`. */
export const CURRENCY_SCALE = 2;

/** Pads a number with zeros to the number of decimal places in `scale`, so that amounts in a column line up. */
export function withScale(text: string, scale: number): string {
  const [, whole, fraction = ""] = /^(-?\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  return whole === undefined || fraction.length >= scale ? text : `${whole}.${fraction.padEnd(scale, "0")}`;
}

/** An amount of money with the decimal places of its field. */
export const amountText = (value: unknown, { scale }: Pick<Column, "scale">): string => withScale(String(value), scale ?? CURRENCY_SCALE);

const isWhole = (text: string) => {
  const parts = scaled(text);
  return parts !== undefined && (parts.places <= 0 || parts.digits % 10n ** BigInt(parts.places) === 0n);
};

/** The minimum and maximum of a column's values. A rating has 0 to 5 by default. */
export function boundsOf({ type, min, max }: Pick<Column, "type" | "min" | "max">): { min?: string; max?: string } {
  const least = min ?? (type === "rating" ? 0 : undefined);
  const most = max ?? (type === "rating" ? 5 : undefined);
  return { ...(least === undefined || least === null ? {} : { min: String(least) }), ...(most === undefined || most === null ? {} : { max: String(most) }) };
}

/** The rules in words, such as "2 to 80 characters" and "unique". Rules that the editor itself shows are left out. */
export function rulesOf(column: Column): string[] {
  const { type, isUnique, pattern, scale } = column;
  const { min, max } = boundsOf(column);
  const unit = isTextType(type) ? " characters" : "";
  const rules: string[] = [];
  if (min !== undefined && max !== undefined) rules.push(min === max ? `exactly ${min}${unit}` : `${min} to ${max}${unit}`);
  else if (min !== undefined) rules.push(`at least ${min}${unit}`);
  else if (max !== undefined) rules.push(`at most ${max}${unit}`);
  if (type === "slug") rules.push("lower-case letters, digits and single hyphens");
  if (type === "url") rules.push("an absolute http or https address");
  if (scale !== undefined) rules.push(scale === 0 ? "no digits after the point" : `${scale} ${scale === 1 ? "digit" : "digits"} after the point`);
  if (pattern !== undefined) rules.push(`matches ${pattern}`);
  if (isUnique === true) rules.push("unique");
  return rules;
}

/** The default in one line. Undefined if there is none. */
export function defaultText(column: Pick<Column, "default">): string | undefined {
  const value = column.default;
  if (value === undefined || value === null) return undefined;
  return typeof value === "string" ? value : printJson(value);
}

function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true;
  }
}

function checkNumber(column: Column, text: string): string | undefined {
  const { type } = column;
  const bounds = TYPE_BOUNDS[type];
  if ((type === "integer" || type === "big_integer" || type === "rating") && !isWhole(text)) return "Enter a whole number.";
  if (bounds !== undefined && (compareNumbers(text, bounds[0]) < 0 || compareNumbers(text, bounds[1]) > 0))
    return `Enter a number from ${bounds[0]} to ${bounds[1]}.`;
  const { min, max } = boundsOf(column);
  if (min !== undefined && compareNumbers(text, min) < 0) return `The least is ${min}.`;
  if (max !== undefined && compareNumbers(text, max) > 0) return `The most is ${max}.`;
  return undefined;
}

function checkText(column: Column, text: string, patterns: boolean): string | undefined {
  const { type, pattern } = column;
  const { min, max } = boundsOf(column);
  switch (type) {
    case "email":
      if (!/^[^\s@]+@[^\s@]+$/.test(text)) return "Enter an e-mail address.";
      break;
    case "url":
      if (!/^https?:\/\/[^\s]+$/i.test(text)) return "Enter an absolute address, such as https://example.com.";
      break;
    case "slug":
      if (!SLUG.test(text)) return "Use lower-case letters, digits and single hyphens.";
      break;
    case "uuid":
      if (!UUID.test(text)) return "Enter an id, such as 0190a2c4-0000-7000-8000-000000000000.";
      return undefined;
    case "date":
      if (!DATE.test(text) || Number.isNaN(Date.parse(`${text}T00:00:00Z`))) return "Enter a date, such as 2026-01-31.";
      return undefined;
    case "time":
      if (!TIME.test(text)) return "Enter a time, such as 14:30 or 14:30:05.";
      return undefined;
    case "datetime":
      if (Number.isNaN(Date.parse(text))) return "Enter a date with a time, such as 2026-01-31T12:00:00Z.";
      return undefined;
    case "enum":
      return column.options?.includes(text) === false ? `Choose one of ${column.options.join(", ")}.` : undefined;
    default:
  }
  const length = min === undefined && max === undefined ? 0 : [...text].length;
  if (min !== undefined && compareNumbers(String(length), min) < 0) return `The least is ${min} characters; there are ${length}.`;
  if (max !== undefined && compareNumbers(String(length), max) > 0) return `The most is ${max} characters; there are ${length}.`;
  if (patterns && pattern !== undefined && !matches(pattern, text)) return `It does not match ${pattern}.`;
  return undefined;
}

/**
 * Returns one sentence that says what is wrong with a value, or undefined. For `null`, only `required` counts. Patterns are only checked if
 * `patterns` is true, because Rust may accept a text that JavaScript refuses.
 */
export function checkValue(column: Column, value: JsonValue, { patterns = false } = {}): string | undefined {
  const { type } = column;
  if (value === null) return column.required === true ? "This is required." : undefined;
  if (type === "json") return undefined;
  if (isNumberType(type)) {
    if (typeof value === "number" || isLosslessNumber(value)) return checkNumber(column, String(value));
    return typeof value === "string" && DECIMAL.test(value) ? checkNumber(column, value) : "Enter a number.";
  }
  if (type === "boolean") return typeof value === "boolean" || value === "true" || value === "false" ? undefined : "Enter true or false.";
  if (type === "multi_enum") {
    if (!Array.isArray(value)) return "Enter a list.";
    const odd = value.find((each) => column.options?.includes(String(each)) === false);
    if (odd !== undefined) return `\`${String(odd).slice(0, 60)}\` is none of ${column.options?.join(", ")}.`;
    return new Set(value).size === value.length ? undefined : "Each option may be there once.";
  }
  return typeof value === "string" ? checkText(column, value, patterns) : "Enter a text.";
}

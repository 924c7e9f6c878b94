/** Converts a cell of a file to a value of a column. If a cell can mean several things, a setting decides. */
import { isTextType, isNumberType } from "../../../api/field-rules";
import { isLosslessNumber, printJson, readJson, readNumber, type JsonValue } from "../../../api/json";
import { fromLocal } from "../../../api/local-time";
import type { Column } from "../../../api/record-shape";
import { wireValue } from "../../../api/records";
import { isUuid } from "../../../api/uuid";

export interface ConvertSettings {
  /**
   * The meaning of an empty cell. `leave` sends nothing (the default applies, and an update changes nothing), `null` sends null, `text`
   * sends an empty text.
   */
  empty: "leave" | "null" | "text";
  /** Whether to remove the apostrophe that an export puts before texts that a spreadsheet would read as a formula. */
  unguard: boolean;
  decimal: "." | ",";
  /** Whether `03/04/2026` begins with the day or the month. */
  dates: "dmy" | "mdy";
  /** The time zone of times without an offset. */
  zone: "utc" | "local";
}

export const DEFAULT_SETTINGS: ConvertSettings = { empty: "leave", unguard: true, decimal: ".", dates: "dmy", zone: "utc" };

/** If `value` is `undefined`, the column is left out. */
export type Converted = { value: JsonValue | undefined } | { problem: string };

const FORMULA = /^'+[=+\-@\t\r\n＝＋－＠]/;

/**
 * The column whose type a reference's cell has: the unique field that identifies the target's records, or the reference itself for an id.
 * An export writes the id if a record has no value in that field. If such a value can look like an id, the import finds out which one it
 * is.
 */
export function readAs(column: Column, named: Column | undefined, cell: JsonValue | undefined): Column {
  if (named === undefined) return column;
  return isUuid(cell) && !isTextType(named.type) && named.type !== "uuid" ? column : named;
}

/** Converts a cell to a value for a request body. */
export function convertCell(column: Column, cell: JsonValue | undefined, settings: ConvertSettings): Converted {
  if (cell === undefined) return { value: undefined };
  if (cell === null) return emptied(column, settings);
  if (typeof cell !== "string") return typed(column, cell);
  const text = settings.unguard && FORMULA.test(cell) ? cell.slice(1) : cell;
  if (isTextType(column.type)) return text === "" && column.type !== "text" ? emptied(column, { ...settings, empty: settings.empty === "text" ? "null" : settings.empty }) : { value: text };
  const trimmed = text.trim();
  if (trimmed === "") return emptied(column, { ...settings, empty: settings.empty === "text" ? "null" : settings.empty });
  if (isNumberType(column.type)) return number(trimmed, settings);
  switch (column.type) {
    case "boolean":
      return boolean(trimmed);
    case "date":
      return date(trimmed, settings);
    case "datetime":
      return datetime(trimmed, settings);
    case "time":
      return { value: trimmed };
    case "json":
      return json(column, trimmed);
    case "enum":
      return { value: optionOf(column, trimmed) };
    case "multi_enum":
      return several(column, trimmed);
    default:
      return { value: trimmed };
  }
}

function emptied(column: Column, { empty }: ConvertSettings): Converted {
  if (empty === "leave") return { value: undefined };
  return { value: empty === "text" && column.type === "text" ? "" : null };
}

/** Converts a value of a JSON file. It keeps its type. */
function typed(column: Column, value: JsonValue): Converted {
  if (column.type === "json") return { value: wireValue(column, value) };
  if (isTextType(column.type) || column.type === "uuid") {
    if (typeof value === "number" || isLosslessNumber(value) || typeof value === "boolean") return { value: String(value) };
    if (typeof value === "object") return { problem: "Needs a text; this is a list or an object." };
  }
  return { value };
}

function number(text: string, { decimal }: ConvertSettings): Converted {
  const plain = (decimal === "," ? text.replaceAll(".", "").replace(",", ".") : text)
    .replaceAll(/[\s\u00A0\u202F']/g, "")
    .replace(/^\+/, "")
    .replace(/^(-?)0+(?=\d)/, "$1")
    .replace(/^(-?)\./, "$10.")
    .replace(/\.$/, "");
  const value = readNumber(plain);
  return value === null ? { problem: `\`${text.slice(0, 60)}\` is no number.` } : { value };
}

const TRUE = new Set(["true", "t", "yes", "y", "1", "on"]);
const FALSE = new Set(["false", "f", "no", "n", "0", "off"]);

function boolean(text: string): Converted {
  const word = text.toLowerCase();
  if (TRUE.has(word)) return { value: true };
  if (FALSE.has(word)) return { value: false };
  return { problem: `\`${text.slice(0, 60)}\` is neither true nor false.` };
}

const pad = (text: string | undefined) => (text ?? "").padStart(2, "0");

/** Converts `31.1.2026`, `31/01/2026` and `1/31/2026` to `2026-01-31`. A text in that format stays unchanged. */
function isoDate(text: string, { dates }: ConvertSettings): string | undefined {
  if (/^\d{4}-\d{2}-\d{2}$/.test(text)) return text;
  const parts = /^(\d{1,2})([./-])(\d{1,2})\2(\d{4})$/.exec(text);
  if (parts !== null) {
    const [, one, , other, year] = parts;
    return dates === "dmy" ? `${year}-${pad(other)}-${pad(one)}` : `${year}-${pad(one)}-${pad(other)}`;
  }
  const turned = /^(\d{4})[./](\d{1,2})[./](\d{1,2})$/.exec(text);
  return turned === null ? undefined : `${turned[1]}-${pad(turned[2])}-${pad(turned[3])}`;
}

function date(text: string, settings: ConvertSettings): Converted {
  const found = isoDate(text, settings) ?? isoDate(text.split(/[T ]/)[0] ?? "", settings);
  return found === undefined ? { problem: `\`${text.slice(0, 60)}\` is no date.` } : { value: found };
}

function datetime(text: string, settings: ConvertSettings): Converted {
  const parts = /^(\S+?)(?:[T ]+(\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)\s*(Z|[+-]\d{2}:?\d{2})?)?$/i.exec(text);
  const day = parts === null ? undefined : isoDate(parts[1]!, settings);
  if (parts === null || day === undefined) return { problem: `\`${text.slice(0, 60)}\` is no date with a time.` };
  const time = (parts[2] ?? "00:00:00").replace(",", ".").replace(/^(\d):/, "0$1:");
  const whole = `${day}T${/^\d+:\d+$/.test(time) ? `${time}:00` : time}`;
  const offset = parts[3]?.toUpperCase().replace(/^([+-]\d{2})(\d{2})$/, "$1:$2");
  if (offset !== undefined) return { value: whole + offset };
  if (settings.zone === "utc") return { value: `${whole}Z` };
  const instant = fromLocal(whole);
  return instant === null ? { problem: `\`${text.slice(0, 60)}\` is no date with a time.` } : { value: instant };
}

function json(column: Column, text: string): Converted {
  const value = readJson(text);
  return value === undefined ? { problem: `\`${text.slice(0, 60)}\` is not JSON.` } : { value: wireValue(column, value) };
}

/** The option with the upper and lower case of the schema. */
function optionOf(column: Column, text: string): string {
  const options = column.options ?? [];
  return options.includes(text) ? text : (options.find((option) => option.toLowerCase() === text.toLowerCase()) ?? text);
}

function several(column: Column, text: string): Converted {
  let parts: unknown[];
  if (text.startsWith("[")) {
    const list = readJson(text);
    if (!Array.isArray(list)) return { problem: list === undefined ? `\`${text.slice(0, 60)}\` is no list.` : "Needs a list." };
    parts = list;
  } else parts = text.split(/[,;|]/).map((part) => part.trim()).filter((part) => part !== "");
  return { value: parts.map((part) => optionOf(column, String(part))) };
}

/** A word for the likely type of a column's cells. */
export function guessType(cells: (JsonValue | undefined)[]): string {
  const given = cells.filter((cell) => cell !== null && cell !== undefined && cell !== "");
  if (given.length === 0) return "empty";
  if (given.some((cell) => typeof cell === "object" && !isLosslessNumber(cell))) return "json";
  const texts = given.map((cell) => (typeof cell === "string" ? cell.trim() : printJson(cell)));
  const every = (pattern: RegExp) => texts.every((text) => pattern.test(text));
  if (every(/^(true|false|yes|no)$/i)) return "boolean";
  if (every(/^-?\d+$/)) return "integer";
  if (every(/^-?\d+([.,]\d+)?$/)) return "decimal";
  if (every(/^\d{4}-\d{2}-\d{2}$/)) return "date";
  if (every(/^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}/)) return "datetime";
  if (every(/^\d{1,2}:\d{2}(:\d{2})?$/)) return "time";
  if (texts.every(isUuid)) return "uuid";
  if (every(/^[^\s@]+@[^\s@]+\.[^\s@]+$/)) return "email";
  if (every(/^https?:\/\//i)) return "url";
  return "text";
}

/** Converts between the JSON values of a record and the text that people read and type, in the reader's time zone. */
import { type JsonObject, type JsonValue, checkJson, isLosslessNumber, printJson, readJson, readNumber } from "../../api/json";
import { fromLocal } from "../../api/local-time";
import { wireValue } from "../../api/records";
import type { RecordColumn, RecordShape } from "./columns";

/** Converts the values of columns for a request body. */
export function wireValues({ byId }: RecordShape, values: Record<string, JsonValue>): JsonObject {
  const wired = (id: string, value: JsonValue) => {
    const column = byId.get(id);
    // The column no longer exists. The server will refuse it.
    return column === undefined ? value : wireValue(column, value);
  };
  return Object.fromEntries(Object.entries(values).map(([id, value]) => [id, wired(id, value)]));
}

/** A cell as text for the clipboard, in a format that other programs can parse. `null` becomes an empty text. */
export function copyText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean" || isLosslessNumber(value)) return String(value);
  return printJson(value);
}

export type Read = { value: JsonValue } | { problem: string };

const TEXT_TYPES = new Set(["text", "email", "url", "slug", "uuid", "enum"]);

/**
 * Parses a text that was pasted into a cell. An empty text means null, but stays an empty text in a text column. The server checks the
 * rest.
 */
export function readText(text: string, column: RecordColumn, emptyIsNull = false): Read {
  if (column.type === "text" && !emptyIsNull) return { value: text };
  const trimmed = text.trim();
  if (trimmed === "") return column.required ? (column.type === "text" ? { value: text } : { problem: `${column.label} needs a value.` }) : { value: null };
  if (column.type === "text") return { value: text };
  if (TEXT_TYPES.has(column.type)) {
    if (column.type === "enum" && column.options?.includes(trimmed) === false) return { problem: `${column.label} takes one of ${column.options.slice(0, 8).join(", ")}.` };
    return { value: trimmed };
  }
  switch (column.type) {
    case "boolean": {
      const known: Record<string, boolean> = { true: true, false: false, yes: true, no: false, "1": true, "0": false };
      const value = known[trimmed.toLowerCase()];
      return value === undefined ? { problem: `${column.label} takes true or false.` } : { value };
    }
    case "multi_enum": {
      const value = trimmed.startsWith("[") ? readJson(trimmed) : trimmed.split(",").map((each) => each.trim());
      return value === undefined ? { problem: `${column.label} takes a list such as ["${column.options?.[0] ?? "a"}"].` } : { value };
    }
    case "json":
      return checkJson(text);
    case "date":
    case "time":
      return { value: trimmed };
    case "datetime": {
      // A time with an offset is a fixed point in time. Without an offset, it is in the reader's time zone.
      const instant = /(Z|[+-]\d{2}:?\d{2})$/i.test(trimmed) ? trimmed : fromLocal(trimmed.replace(" ", "T"));
      return instant === null ? { problem: `${column.label} takes a date and time such as 2026-01-31T12:00.` } : { value: instant };
    }
    default: {
      const number = readNumber(trimmed.replace(/^\+/, ""));
      if (number === null) return { problem: `${column.label} takes a number, such as 12 or -3.5.` };
      if ((column.type === "integer" || column.type === "big_integer" || column.type === "rating") && !/^-?\d+$/.test(String(number))) return { problem: `${column.label} takes a whole number.` };
      return { value: number };
    }
  }
}

/** Parses rows and cells from the clipboard. They are tab-separated. A cell with tabs, line breaks or quotes is in quotes. */
export function parseTsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let quoted = false;
  const source = text.replaceAll("\r\n", "\n");
  for (let index = 0; index < source.length; index++) {
    const character = source[index]!;
    if (quoted) {
      if (character !== '"') cell += character;
      else if (source[index + 1] === '"') {
        cell += '"';
        index++;
      } else quoted = false;
    } else if (character === '"' && cell === "") quoted = true;
    else if (character === "\t") {
      row.push(cell);
      cell = "";
    } else if (character === "\n") {
      rows.push([...row, cell]);
      row = [];
      cell = "";
    } else cell += character;
  }
  if (cell !== "" || row.length > 0) rows.push([...row, cell]);
  return rows;
}

export function printTsv(rows: string[][]): string {
  return rows.map((row) => row.map((cell) => (/[\t\n\r"]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join("\t")).join("\n");
}

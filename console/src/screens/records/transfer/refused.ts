/**
 * The refused rows as a CSV file: the columns of the original file, the row number, and the reason. People can correct it and import it
 * again.
 */
import type { Issue } from "../../../api/errors";
import { printJson, type JsonValue } from "../../../api/json";
import type { RefusedRow } from "./import.worker";

/** All reasons as one text. The field is null if there are several issues. */
export function whyRefused(issues: readonly Issue[]): [field: string | null, reason: string] {
  const [first, ...more] = issues;
  if (first !== undefined && more.length === 0) return [first.path === "" ? null : first.path, first.message];
  return [null, issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ")];
}

const FORMULA_BEGINS = /^'*[=+\-@\t\r\n＝＋－＠]/;

function cellOf(value: JsonValue | undefined): string {
  if (value === null || value === undefined) return "";
  const raw = typeof value === "string" ? value : printJson(value);
  // A number is not a formula, even with a sign. Texts get the same apostrophe as in an export.
  const text = FORMULA_BEGINS.test(raw) && !/^[+-]?\d+([.,]\d+)?$/.test(raw) && !raw.startsWith("'") ? `'${raw}` : raw;
  return text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function refusedCsv(names: string[], rows: RefusedRow[]): Blob {
  const line = (cells: string[]) => `${cells.join(",")}\r\n`;
  const parts = [line([...names, "import_row", "import_field", "import_error"].map(cellOf))];
  for (const { number, field, reason, cells } of rows) parts.push(line([...names.map((name) => cellOf(cells[name])), String(number), cellOf(field), cellOf(reason)]));
  return new Blob(parts, { type: "text/csv;charset=utf-8" });
}

/** Lets the browser save a file. */
export function download(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

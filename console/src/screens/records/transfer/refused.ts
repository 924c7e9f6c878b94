/** The refused rows as a CSV: the columns of the file, then which row it was and why. It can be mended and imported again. */
import type { Issue } from "../../../api/errors";
import { printJson, type JsonValue } from "../../../api/json";
import type { RefusedRow } from "./import.worker";

/** The one field, or none where it is several, and every reason. */
export function whyRefused(issues: readonly Issue[]): [field: string | null, reason: string] {
  const [first, ...more] = issues;
  if (first !== undefined && more.length === 0) return [first.path === "" ? null : first.path, first.message];
  return [null, issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ")];
}

const FORMULA_BEGINS = /^'*[=+\-@\t\r\n＝＋－＠]/;

function cellOf(value: JsonValue | undefined): string {
  if (value === null || value === undefined) return "";
  const raw = typeof value === "string" ? value : printJson(value);
  // A number is no formula, whatever its sign; texts are guarded as the export guards them.
  const text = FORMULA_BEGINS.test(raw) && !/^[+-]?\d+([.,]\d+)?$/.test(raw) && !raw.startsWith("'") ? `'${raw}` : raw;
  return text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function refusedCsv(names: string[], rows: RefusedRow[]): Blob {
  const line = (cells: string[]) => `${cells.join(",")}\r\n`;
  const parts = [line([...names, "import_row", "import_field", "import_error"].map(cellOf))];
  for (const { number, field, reason, cells } of rows) parts.push(line([...names.map((name) => cellOf(cells[name])), String(number), cellOf(field), cellOf(reason)]));
  return new Blob(parts, { type: "text/csv;charset=utf-8" });
}

/** Gives the browser a file to keep. */
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

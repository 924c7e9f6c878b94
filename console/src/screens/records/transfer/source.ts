/**
 * Reads rows from a file in small parts, so that a large file is never completely in memory. CSV distinguishes an empty cell from an empty
 * text in quotes, as in exports. JSON keeps all digits.
 */
import { type Parser, parse } from "csv-parse/browser/esm";
import { checkJson, isJsonObject, readJson } from "../../../api/json";
import { DELIMITERS, type Encoding, type SourceOptions, type SourceRow } from "./formats";

export interface Progress {
  bytes: number;
}

/** The maximum length of one JSON value. */
const VALUE_CHARACTERS_MAX = 32 * 1024 * 1024;

/** Reads the text of the file in parts. `progress` counts the bytes. */
async function* texts(file: Blob, encoding: Encoding, progress: Progress): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding);
  const reader = file.stream().getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      progress.bytes += value.byteLength;
      yield decoder.decode(value, { stream: true });
    }
    yield decoder.decode();
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** The names in a header. They are made unique, and empty names are replaced. */
export function headerNames(first: unknown[]): string[] {
  const seen = new Map<string, number>();
  return first.map((cell, index) => {
    const name = (typeof cell === "string" ? cell.trim() : "") || `column ${index + 1}`;
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return count === 1 ? name : `${name} (${count})`;
  });
}

async function* csvRows(file: Blob, options: SourceOptions, progress: Progress): AsyncGenerator<SourceRow> {
  let failure: Error | null = null;
  let waiting: unknown[][] = [];
  const parser: Parser = parse({
    delimiter: options.delimiter,
    bom: true,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    cast: (value, { quoting }) => (value === "" && !quoting ? null : value),
  });
  parser.on("error", (error) => (failure = error));
  parser.on("readable", () => {
    for (let row = parser.read(); row !== null; row = parser.read()) waiting.push(row);
  });
  const ended = new Promise<void>((done) => {
    parser.on("end", done);
    parser.on("error", () => done());
  });
  let names: string[] | null = null;
  let number = 0;
  const taken = (): SourceRow[] => {
    const rows = waiting;
    waiting = [];
    return rows.flatMap((row) => {
      if (names === null) {
        names = options.hasHeader ? headerNames(row) : row.map((_, index) => `column ${index + 1}`);
        if (options.hasHeader) return [];
      }
      number += 1;
      const cells: SourceRow["cells"] = {};
      for (const [index, name] of names.entries()) cells[name] = row[index] as string | null | undefined;
      if (row.length > names.length) return [{ number, cells, broken: `The row has ${row.length} cells, the header ${names.length}.` }];
      return [{ number, cells }];
    });
  };
  let isEmpty = true;
  for await (const text of texts(file, options.encoding, progress)) {
    if (text !== "") {
      isEmpty = false;
      await new Promise<void>((done) => parser.write(text, () => done()));
    }
    if (failure !== null) throw failure;
    yield* taken();
  }
  // The parser's browser build cannot end before it has received any text.
  if (isEmpty) return;
  parser.end();
  await ended;
  if (failure !== null) throw failure;
  yield* taken();
}

/** The texts of the objects in a JSON array, or of JSON values that follow each other. */
async function* jsonTexts(file: Blob, encoding: Encoding, progress: Progress): AsyncGenerator<string> {
  let mode: "unknown" | "lines" | "nested" = "unknown";
  let rest = "";
  let depth = 0;
  let base = 0;
  let start = -1;
  let at = 0;
  let isInText = false;
  let isEscaped = false;
  const lines = function* (isEnd: boolean): Generator<string> {
    const parts = rest.split("\n");
    rest = isEnd ? "" : (parts.pop() ?? "");
    for (const part of parts) if (part.trim() !== "") yield part;
  };
  const nested = function* (): Generator<string> {
    for (; at < rest.length; at++) {
      const character = rest.charCodeAt(at);
      if (isInText) {
        if (isEscaped) isEscaped = false;
        else if (character === 92) isEscaped = true;
        else if (character === 34) isInText = false;
      } else if (character === 34) isInText = true;
      else if (character === 123 || character === 91) {
        if (depth === base && start === -1) start = at;
        depth += 1;
      } else if (character === 125 || character === 93) {
        depth -= 1;
        if (depth === base && start !== -1) {
          yield rest.slice(start, at + 1);
          rest = rest.slice(at + 1);
          at = -1;
          start = -1;
        }
      }
    }
    // Text that was read and is outside of a value is dropped.
    if (start === -1) {
      rest = "";
      at = 0;
    }
    if (rest.length > VALUE_CHARACTERS_MAX) throw new Error("One value is longer than 32 million characters. Is this a list of records?");
  };
  for await (const text of texts(file, encoding, progress)) {
    rest += text;
    if (mode === "unknown") {
      const trimmed = rest.trimStart().replace(/^\uFEFF/, "");
      if (trimmed === "") continue;
      if (trimmed.startsWith("[")) {
        mode = "nested";
        rest = trimmed.slice(1);
        depth = 1;
        base = 1;
      } else {
        const line = trimmed.indexOf("\n");
        if (line === -1 && progress.bytes < file.size) continue;
        mode = readJson(line === -1 ? trimmed : trimmed.slice(0, line)) !== undefined ? "lines" : "nested";
        rest = trimmed;
      }
    }
    if (mode === "lines") yield* lines(false);
    else yield* nested();
  }
  if (mode === "lines") yield* lines(true);
  else if (start !== -1 || (mode === "nested" && base === 1 && depth > 0)) throw new Error("The JSON ends in the middle of a value. The file may be cut off.");
}

async function* jsonRows(file: Blob, options: SourceOptions, progress: Progress): AsyncGenerator<SourceRow> {
  let number = 0;
  for await (const text of jsonTexts(file, options.encoding, progress)) {
    number += 1;
    const read = checkJson(text);
    if ("problem" in read) yield { number, cells: {}, broken: read.problem };
    else yield isJsonObject(read.value) ? { number, cells: read.value } : { number, cells: {}, broken: "A record is a JSON object." };
  }
}

export function rowsOf(file: Blob, options: SourceOptions, progress: Progress = { bytes: 0 }): AsyncGenerator<SourceRow> {
  return options.format === "csv" ? csvRows(file, options, progress) : jsonRows(file, options, progress);
}

/** Guesses the format from the file's name and first bytes. */
export async function guessOptions(file: File): Promise<SourceOptions> {
  const bytes = new Uint8Array(await file.slice(0, 64 * 1024).arrayBuffer());
  const encoding = guessEncoding(bytes);
  const head = new TextDecoder(encoding).decode(bytes).replace(/^\uFEFF/, "");
  const first = head.trimStart().slice(0, 1);
  const byName = /\.(json|ndjson|jsonl)$/i.test(file.name) ? "json" : /\.(csv|tsv|txt)$/i.test(file.name) ? "csv" : undefined;
  const format = byName ?? (first === "{" || first === "[" ? "json" : "csv");
  return { format, encoding, delimiter: guessDelimiter(head), hasHeader: true };
}

function guessEncoding(bytes: Uint8Array): Encoding {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  try {
    // The last character may be incomplete in the bytes that were read.
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
    return "utf-8";
  } catch {
    return "windows-1252";
  }
}

/** The delimiter that occurs most often and most evenly in the first lines, outside of quotes. */
function guessDelimiter(head: string): string {
  const lines = head.slice(0, 16_000).replaceAll(/"[^"]*"/g, "").split(/\r?\n/).filter((line) => line.trim() !== "").slice(0, 10);
  let best: { delimiter: string; score: number } = { delimiter: ",", score: 0 };
  for (const delimiter of DELIMITERS) {
    const counts = lines.map((line) => line.split(delimiter).length - 1);
    const least = Math.min(...counts);
    const even = counts.filter((count) => count === counts[0]).length / Math.max(1, counts.length);
    const score = (least > 0 ? least : (counts[0] ?? 0) / 4) * even;
    if (score > best.score) best = { delimiter, score };
  }
  return best.delimiter;
}

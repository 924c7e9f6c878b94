/**
 * Reads the file in a worker, so that the page is not blocked. It shows the first rows, checks every row against the schema, and returns
 * rows as JSON that is ready to be sent.
 */
import { checkValue } from "../../../api/field-rules";
import type { Issue } from "../../../api/errors";
import { isLosslessNumber, printJson, type JsonObject, type JsonValue } from "../../../api/json";
import type { Column } from "../../../api/record-shape";
import { type ConvertSettings, convertCell, readAs } from "./convert";
import { whyRefused } from "./refused";
import type { Mapping } from "./mapping";
import type { SourceOptions, SourceRow } from "./formats";
import { type Progress, guessOptions, rowsOf } from "./source";

export interface Plan {
  options: SourceOptions;
  mapping: Mapping;
  settings: ConvertSettings;
  columns: Column[];
  /** The columns that identify a record for an upsert. Null inserts all rows. */
  target: string[] | null;
  /** For a reference column: the unique field of the target whose values the file has. Other reference columns have ids. */
  lookups: Record<string, Column>;
}

export interface ReadyRow {
  number: number;
  /** The record as JSON for a request body. */
  json: string;
  /** The values that identify the record for an upsert. */
  key: string;
  /** For a reference column: the value that identifies the record, as the text of a filter. `json` does not contain these columns yet. */
  names: Record<string, string>;
}

export interface RefusedRow {
  number: number;
  field: string | null;
  reason: string;
  cells: SourceRow["cells"];
}

export interface Sight {
  options: SourceOptions;
  names: string[];
  rows: SourceRow[];
}

export interface Checked {
  rows: number;
  refused: number;
  /** The problems by kind, the most frequent one first. */
  problems: { field: string | null; reason: string; count: number; first: number }[];
}

export interface Piece {
  rows: ReadyRow[];
  /** Rows that are refused before they are sent. */
  refused: RefusedRow[];
  /** The cells of the rows, for the report if the server refuses a row. */
  cells: SourceRow["cells"][];
  isEnd: boolean;
  bytes: number;
}

export type ToWorker = { id: number } & (
  | { kind: "look"; file: File; options?: SourceOptions }
  | { kind: "check"; file: File; plan: Plan }
  | { kind: "begin"; file: File; plan: Plan }
  | { kind: "next"; rows: number; characters: number }
  | { kind: "stop" }
);
export type FromWorker = { id: number } & ({ kind: "answer"; value: unknown } | { kind: "failed"; message: string } | { kind: "progress"; bytes: number; rows: number });

const SAMPLE_ROWS = 200;
const REASONS_MAX = 200;
const PROGRESS_EVERY_ROWS = 2_000;

const post = (message: FromWorker) => self.postMessage(message);

async function look(file: File, given?: SourceOptions): Promise<Sight> {
  const options = given ?? (await guessOptions(file));
  const rows: SourceRow[] = [];
  const names = new Set<string>();
  for await (const row of rowsOf(file, options)) {
    rows.push(row);
    for (const name of Object.keys(row.cells)) names.add(name);
    if (rows.length >= SAMPLE_ROWS) break;
  }
  return { options, names: [...names], rows };
}

/** Converts a row to a record, or reports what is wrong with it. */
function prepared(row: SourceRow, plan: Plan, columns: Map<string, Column>): { ready: ReadyRow } | { refused: RefusedRow } {
  const refused = (field: string | null, reason: string) => ({ refused: { number: row.number, field, reason, cells: row.cells } });
  if (row.broken !== undefined) return refused(null, row.broken);
  const body: JsonObject = {};
  const names: Record<string, string> = {};
  const problems: Issue[] = [];
  for (const [source, target] of Object.entries(plan.mapping)) {
    if (target === null) continue;
    const column = columns.get(target);
    if (column === undefined) continue;
    const read = readAs(column, plan.lookups[target], row.cells[source]);
    const isNamed = read !== column;
    const converted = convertCell(read, row.cells[source], plan.settings);
    if ("problem" in converted) {
      problems.push({ path: target, message: converted.problem });
      continue;
    }
    const { value } = converted;
    if (value === undefined) continue;
    if (isNamed && value !== null && value !== "") {
      names[target] = typeof value === "object" && !isLosslessNumber(value) ? printJson(value) : String(value);
      continue;
    }
    const problem = column.type === "json" ? undefined : checkValue(column, value);
    if (problem !== undefined) problems.push({ path: target, message: problem });
    body[target] = isNamed ? null : value;
  }
  for (const column of plan.columns) {
    // An upsert of an existing record only changes the given columns. Only the server knows whether the record exists, so required columns
    // are not checked here.
    if (plan.target === null && column.required === true && !(column.name in body) && !(column.name in names) && (column.default === undefined || column.default === null) && !problems.some(({ path }) => path === column.name))
      problems.push({ path: column.name, message: "This is required." });
  }
  for (const name of plan.target ?? [])
    if ((body[name] ?? null) === null && !(name in names) && !problems.some(({ path }) => path === name)) problems.push({ path: name, message: "The record is found by this, so it is needed." });
  if (problems.length > 0) return refused(...whyRefused(problems));
  const key = (plan.target ?? []).map((name) => names[name] ?? printJson(body[name])).join("\u0000");
  return { ready: { number: row.number, json: printJson(body), key, names } };
}

const ID_COLUMN: Column = { name: "id", type: "uuid" };
const columnsOf = (plan: Plan) => new Map([ID_COLUMN, ...plan.columns].map((column) => [column.name, column]));

async function check(id: number, file: File, plan: Plan): Promise<Checked> {
  const columns = columnsOf(plan);
  const progress: Progress = { bytes: 0 };
  const problems = new Map<string, Checked["problems"][number]>();
  let rows = 0;
  let refused = 0;
  for await (const row of rowsOf(file, plan.options, progress)) {
    rows += 1;
    if (rows % PROGRESS_EVERY_ROWS === 0) post({ id, kind: "progress", bytes: progress.bytes, rows });
    const outcome = prepared(row, plan, columns);
    if (!("refused" in outcome)) continue;
    refused += 1;
    const { field, reason, number } = outcome.refused;
    // Removes the value of the cell from the reason, so that equal problems are counted together.
    const kind = reason.replace(/^`[^`]*`/, "A value").replace(/there are \d+/, "there are others");
    const key = `${field}\u0000${kind}`;
    const known = problems.get(key);
    if (known !== undefined) known.count += 1;
    else if (problems.size < REASONS_MAX) problems.set(key, { field, reason: kind, count: 1, first: number });
  }
  return { rows, refused, problems: [...problems.values()].sort((one, other) => other.count - one.count) };
}

let reading: { rows: AsyncGenerator<SourceRow>; plan: Plan; columns: Map<string, Column>; progress: Progress } | null = null;

async function next(wanted: number, characters: number): Promise<Piece> {
  const piece: Piece = { rows: [], refused: [], cells: [], isEnd: false, bytes: 0 };
  let length = 0;
  while (reading !== null && piece.rows.length < wanted && length < characters && piece.refused.length < wanted) {
    const { value, done } = await reading.rows.next();
    if (done === true) {
      piece.isEnd = true;
      break;
    }
    const outcome = prepared(value, reading.plan, reading.columns);
    if ("refused" in outcome) piece.refused.push(outcome.refused);
    else {
      piece.rows.push(outcome.ready);
      piece.cells.push(value.cells);
      length += outcome.ready.json.length;
    }
  }
  piece.bytes = reading?.progress.bytes ?? 0;
  piece.isEnd ||= reading === null;
  return piece;
}

async function answer(message: ToWorker): Promise<unknown> {
  switch (message.kind) {
    case "look":
      return look(message.file, message.options);
    case "check":
      return check(message.id, message.file, message.plan);
    case "begin": {
      const progress: Progress = { bytes: 0 };
      reading = { rows: rowsOf(message.file, message.plan.options, progress), plan: message.plan, columns: columnsOf(message.plan), progress };
      return null;
    }
    case "next":
      return next(message.rows, message.characters);
    case "stop": {
      await reading?.rows.return(undefined);
      reading = null;
      return null;
    }
  }
}

/** A number with all its digits is an object, which cannot be copied between threads. So it is sent as text. */
const portable = (value: JsonValue | undefined): JsonValue | undefined =>
  typeof value === "object" && value !== null ? printJson(value) : value;
const portableCells = (cells: SourceRow["cells"]) => Object.fromEntries(Object.entries(cells).map(([name, value]) => [name, portable(value)]));

self.addEventListener("message", ({ data }: MessageEvent<ToWorker>) => {
  answer(data)
    .then((value) => {
      if (data.kind === "look") {
        const sight = value as Sight;
        value = { ...sight, rows: sight.rows.map((row) => ({ ...row, cells: portableCells(row.cells) })) };
      } else if (data.kind === "next") {
        const piece = value as Piece;
        value = { ...piece, cells: piece.cells.map(portableCells), refused: piece.refused.map((row) => ({ ...row, cells: portableCells(row.cells) })) };
      }
      post({ id: data.id, kind: "answer", value });
    })
    .catch((error: unknown) => post({ id: data.id, kind: "failed", message: error instanceof Error ? error.message : String(error) }));
});

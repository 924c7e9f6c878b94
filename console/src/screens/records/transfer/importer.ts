/**
 * Sends the rows. Inserts are sent in bulk calls, which the server accepts or refuses completely. The server names the row that it refuses.
 * That row is set aside and the others are sent again. While many rows are refused, the calls get smaller. Upserts are sent one by one,
 * several at a time. Rows of the same record keep the order of the file.
 */
import { api, dataOf, requestRaw } from "../../../api/client";
import { type ApiError, type Issue, isApiError } from "../../../api/errors";
import { recordPath } from "../../../api/records";
import { isUuid } from "../../../api/uuid";
import type { Piece, Plan, ReadyRow, RefusedRow } from "./import.worker";
import type { Reader } from "./reader";
import type { SourceRow } from "./formats";
import { whyRefused } from "./refused";

const PIECE_ROWS_MAX = 500;
const PIECE_CHARACTERS_MAX = 2_000_000;
/** The maximum number of upserts that run at the same time. */
const LANES = 6;
/** The maximum number of refused rows in the report. Further ones are only counted. */
export const REFUSED_KEPT_MAX = 100_000;
const PAUSE_MS_MAX = 60_000;

export interface ImportState {
  phase: "running" | "waiting" | "paused" | "done" | "canceled" | "failed";
  created: number;
  updated: number;
  refused: number;
  bytes: number;
  /** The seconds that the server asked to wait. */
  waitSeconds?: number;
  /** The error that stopped or paused the import. */
  error?: unknown;
  /** Rows that were being sent when the server stopped responding. They may have been imported or not. */
  unsure?: { from: number; to: number };
}

type Row = ReadyRow & { cells: SourceRow["cells"] };
type Choice = "again" | "skip" | "stop";

type Found = { id: string } | { problem: string };
const foundKey = (column: string, text: string) => `${column}\u0000${text}`;

/** Joins all reasons that the server gives. */
function reasonOf(error: ApiError): Pick<RefusedRow, "field" | "reason"> {
  const plain = (message: string) => message.replace(/^At index \d+: /, "");
  if (error.issues.length < 2) return { field: error.field ?? null, reason: plain(error.message) };
  const [field, reason] = whyRefused(error.issues.map(({ path, message }) => ({ path, message: plain(message) })));
  return { field, reason };
}

export class Importer {
  state: ImportState = { phase: "running", created: 0, updated: 0, refused: 0, bytes: 0 };
  readonly refused: RefusedRow[] = [];
  /** The results of earlier lookups, by column and text. */
  readonly #found = new Map<string, Found>();
  #isCanceled = false;
  #size = PIECE_ROWS_MAX;
  #choose: ((choice: Choice) => void) | null = null;
  readonly #abort = new AbortController();

  constructor(
    readonly object: string,
    readonly file: File,
    readonly plan: Plan,
    readonly reader: Reader,
    readonly onState: (state: ImportState) => void,
  ) {}

  cancel(): void {
    this.#isCanceled = true;
    this.#choose?.("stop");
  }

  /** Continues after a pause. It sends the uncertain rows again, or skips them. */
  resume(choice: "again" | "skip"): void {
    this.#choose?.(choice);
  }

  async run(): Promise<void> {
    try {
      await this.reader.begin(this.file, this.plan);
      for (;;) {
        if (this.#isCanceled) return this.#tell({ phase: "canceled" });
        const piece = await this.reader.next(PIECE_ROWS_MAX, PIECE_CHARACTERS_MAX);
        for (const row of piece.refused) this.#refuse(row);
        const rows = await this.#resolved(rowsOfPiece(piece));
        await (this.plan.target === null ? this.#insert(rows) : this.#upsert(rows, this.plan.target));
        this.#tell({ bytes: piece.bytes });
        if (piece.isEnd) {
          this.refused.sort((one, other) => one.number - other.number);
          return this.#tell({ phase: this.#isCanceled ? "canceled" : "done" });
        }
      }
    } catch (error) {
      this.#tell({ phase: "failed", error });
    }
  }

  #tell(change: Partial<ImportState>): void {
    const { waitSeconds: _, error: __, unsure: ___, ...rest } = this.state;
    this.state = { ...rest, ...change };
    this.onState(this.state);
  }

  #refuse(row: RefusedRow): void {
    if (this.refused.length < REFUSED_KEPT_MAX) this.refused.push(row);
    this.state = { ...this.state, refused: this.state.refused + 1 };
  }

  /**
   * Replaces names in the rows with the ids of the records. A row is refused if its record does not exist or this person may not see it.
   */
  async #resolved(rows: Row[]): Promise<Row[]> {
    for (const [column, { name: field }] of Object.entries(this.plan.lookups)) {
      const target = this.plan.columns.find(({ name }) => name === column)?.reference?.target;
      if (target === undefined) continue;
      const wanted = new Set(rows.flatMap(({ names }) => names[column] ?? []).filter((text) => !this.#found.has(foundKey(column, text))));
      const texts = [...wanted];
      await Promise.all(
        Array.from({ length: LANES }, async () => {
          for (let text = texts.pop(); text !== undefined && !this.#isCanceled; text = texts.pop()) this.#found.set(foundKey(column, text), await this.#lookUp(target, field, text));
        }),
      );
    }
    if (this.#isCanceled) return [];
    const resolved = rows.flatMap((row) => {
      const issues: Issue[] = [];
      const members: string[] = [];
      for (const [column, text] of Object.entries(row.names)) {
        const found = this.#found.get(foundKey(column, text)) ?? { problem: "It was not looked up." };
        if ("problem" in found) issues.push({ path: column, message: found.problem });
        else members.push(`${JSON.stringify(column)}:${JSON.stringify(found.id)}`);
      }
      if (issues.length > 0) {
        const [field, reason] = whyRefused(issues);
        this.#refuse({ number: row.number, field, reason, cells: row.cells });
        return [];
      }
      if (members.length === 0) return [row];
      const inner = row.json.slice(1, -1);
      return [{ ...row, json: `{${[...(inner === "" ? [] : [inner]), ...members].join(",")}}` }];
    });
    // A missing record may exist later, because rows of this file may refer to earlier rows.
    for (const [key, found] of this.#found) if ("problem" in found) this.#found.delete(key);
    return resolved;
  }

  /**
   * Finds the record whose unique field has this value, or whose id it is. Waits if the server asks for it. After another 4xx response, the
   * row is refused.
   */
  async #lookUp(target: string, field: string, text: string): Promise<Found> {
    for (;;) {
      try {
        // In a query string, the text `null` would mean null.
        const body = { filters: [{ field, operator: "eq", value: text }], select: "id", limit: 1, count: "none" };
        const [record] = await dataOf(api.POST("/api/v1/data/{object}/query", { params: { path: { object: target } }, body, signal: this.#abort.signal }));
        // An export writes the id if a record has no value in the field.
        if (record === undefined && isUuid(text)) return { id: text };
        return record === undefined ? { problem: `There is no \`${target}\` whose \`${field}\` is \`${text.slice(0, 60)}\`.` } : { id: record.id };
      } catch (error) {
        if (!isApiError(error)) throw error;
        if (this.#isCanceled) return { problem: "The import was stopped." };
        if (error.status === 429 || error.status === 503) await this.#pause(Math.min(PAUSE_MS_MAX, (error.retryAfterSeconds ?? 5) * 1_000));
        else if (error.status >= 400 && error.status < 500 && error.status !== 401) return { problem: error.message };
        else throw error;
      }
    }
  }

  async #insert(rows: Row[]): Promise<void> {
    let left = rows;
    while (left.length > 0 && !this.#isCanceled) {
      const piece = left.slice(0, this.#size);
      const outcome = await this.#send("POST", `${recordPath(this.object)}/bulk`, `{"data":[${piece.map(({ json }) => json).join(",")}]}`, piece);
      if (outcome === "skip" || outcome === "stop") {
        left = left.slice(piece.length);
        continue;
      }
      if (!isApiError(outcome)) {
        left = left.slice(piece.length);
        this.#size = Math.min(PIECE_ROWS_MAX, this.#size * 2);
        this.#tell({ created: this.state.created + piece.length });
        continue;
      }
      const index = Number(/^At index (\d+): /.exec(outcome.message)?.[1] ?? Number.NaN);
      if (piece.length === 1 || index < piece.length) {
        const at = piece.length === 1 ? 0 : index;
        const row = piece[at]!;
        this.#refuse({ number: row.number, ...reasonOf(outcome), cells: row.cells });
        left = left.toSpliced(at, 1);
        // If refused rows are close to each other, smaller calls repeat less.
        this.#size = Math.max(1, Math.min(this.#size >> 1, Math.max(8, at)));
        this.#tell({});
      } else this.#size = Math.max(1, piece.length >> 1);
    }
  }

  async #upsert(rows: Row[], target: string[]): Promise<void> {
    const lanes: Row[][] = Array.from({ length: LANES }, () => []);
    for (const row of rows) lanes[hash(row.key) % LANES]!.push(row);
    const path = `${recordPath(this.object)}?on_conflict=${target.map(encodeURIComponent).join(",")}`;
    await Promise.all(
      lanes.map(async (lane) => {
        for (const row of lane) {
          if (this.#isCanceled) return;
          const outcome = await this.#send("POST", path, row.json, [row]);
          if (outcome === "skip" || outcome === "stop") continue;
          if (isApiError(outcome)) this.#refuse({ number: row.number, ...reasonOf(outcome), cells: row.cells });
          else if (outcome.status === 201) this.state = { ...this.state, created: this.state.created + 1 };
          else this.state = { ...this.state, updated: this.state.updated + 1 };
        }
      }),
    );
    this.#tell({});
  }

  /**
   * Returns the response, or the error if the rows themselves are refused. Waits if the server asks for it. If the server does not answer,
   * the import pauses.
   */
  async #send(method: string, path: string, body: string, rows: Row[]): Promise<Response | ApiError | "skip" | "stop"> {
    for (;;) {
      try {
        const response = await requestRaw(method, path, { body, signal: this.#abort.signal });
        await response.arrayBuffer();
        return response;
      } catch (error) {
        if (!isApiError(error)) throw error;
        if (this.#isCanceled) return "stop";
        if (error.status === 429 || (error.status === 503 && error.retryAfterSeconds !== undefined)) {
          const seconds = Math.min(PAUSE_MS_MAX / 1_000, error.retryAfterSeconds ?? 5);
          this.#tell({ phase: "waiting", waitSeconds: seconds });
          await this.#pause(seconds * 1_000);
          if (this.#isCanceled) return "stop";
          this.#tell({ phase: "running" });
          continue;
        }
        // With these codes, the rows themselves are wrong. All other errors have another cause.
        if (error.status === 400 || error.status === 409 || error.status === 413 || error.status === 422) return error;
        if (error.status === 403 && this.plan.target !== null && rows.length === 1 && error.code === "forbidden" && this.state.created + this.state.updated > 0) return error;
        if (error.status === 401 || error.status === 403 || error.status === 404) throw error;
        const choice = await this.#stand(error, rows);
        if (choice !== "again") return choice;
      }
    }
  }

  /** Pauses until the person decides. Lanes that fail at the same time wait for the same decision. */
  async #stand(error: ApiError, rows: Row[]): Promise<Choice> {
    const first = rows[0]!.number;
    const last = rows.at(-1)!.number;
    const known = this.state.unsure;
    this.#tell({ phase: "paused", error, unsure: { from: Math.min(first, known?.from ?? first), to: Math.max(last, known?.to ?? last) } });
    const choice = await new Promise<Choice>((done) => {
      const before = this.#choose;
      this.#choose = (chosen) => {
        before?.(chosen);
        done(chosen);
      };
    });
    this.#choose = null;
    if (choice !== "stop") this.#tell({ phase: "running" });
    return choice;
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>((done) => {
      const timer = setTimeout(done, ms);
      const before = this.#choose;
      this.#choose = (choice) => {
        before?.(choice);
        clearTimeout(timer);
        done();
      };
    });
    this.#choose = null;
  }
}

const rowsOfPiece = ({ rows, cells }: Piece): Row[] => rows.map((row, index) => ({ ...row, cells: cells[index] ?? {} }));

function hash(text: string): number {
  let value = 0;
  for (let at = 0; at < text.length; at++) value = (Math.imul(value, 31) + text.charCodeAt(at)) >>> 0;
  return value;
}

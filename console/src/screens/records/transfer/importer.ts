/**
 * Sends the rows. Inserts go in pieces that the server takes whole or not at all; it names the row that it refuses, which is set aside
 * while the others go on, in smaller pieces as long as many are refused. Upserts go one by one, several at a time, those of one
 * record in the order of the file.
 */
import { requestRaw } from "../../../api/client";
import { type ApiError, isApiError } from "../../../api/errors";
import { recordPath } from "../../../api/records";
import type { Piece, Plan, ReadyRow, RefusedRow } from "./import.worker";
import type { Reader } from "./reader";
import type { SourceRow } from "./formats";

const PIECE_ROWS_MAX = 500;
const PIECE_CHARACTERS_MAX = 2_000_000;
/** Upserts under way at once. */
const LANES = 6;
/** Refused rows that are kept for the report; the others are counted. */
export const REFUSED_KEPT_MAX = 100_000;
const PAUSE_MS_MAX = 60_000;

export interface ImportState {
  phase: "running" | "waiting" | "paused" | "done" | "canceled" | "failed";
  created: number;
  updated: number;
  refused: number;
  bytes: number;
  /** Seconds to wait, as the server asked. */
  waitSeconds?: number;
  /** Why it stands still. */
  error?: unknown;
  /** Rows that were on their way when the server stopped answering: they may be there or not. */
  unsure?: { from: number; to: number };
}

type Row = ReadyRow & { cells: SourceRow["cells"] };
type Choice = "again" | "skip" | "stop";

export class Importer {
  state: ImportState = { phase: "running", created: 0, updated: 0, refused: 0, bytes: 0 };
  readonly refused: RefusedRow[] = [];
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

  /** After a pause: sends the rows again that may be lost, or leaves them out. */
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
        await (this.plan.target === null ? this.#insert(rowsOfPiece(piece)) : this.#upsert(rowsOfPiece(piece), this.plan.target));
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
        this.#refuse({ number: row.number, field: outcome.field ?? null, reason: outcome.message.replace(/^At index \d+: /, ""), cells: row.cells });
        left = left.toSpliced(at, 1);
        // Where the refused ones stand close, small pieces are sent again at less cost.
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
          if (isApiError(outcome)) this.#refuse({ number: row.number, field: outcome.field ?? null, reason: outcome.message, cells: row.cells });
          else if (outcome.status === 201) this.state = { ...this.state, created: this.state.created + 1 };
          else this.state = { ...this.state, updated: this.state.updated + 1 };
        }
      }),
    );
    this.#tell({});
  }

  /** The answer, or the refusal of a row. Waits where the server asks for it; stands still where it does not answer. */
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
        // Refused for what the rows are; everything else is no fault of theirs.
        if (error.status === 400 || error.status === 409 || error.status === 413 || error.status === 422) return error;
        if (error.status === 403 && this.plan.target !== null && rows.length === 1 && error.code === "forbidden" && this.state.created + this.state.updated > 0) return error;
        if (error.status === 401 || error.status === 403 || error.status === 404) throw error;
        const choice = await this.#stand(error, rows);
        if (choice !== "again") return choice;
      }
    }
  }

  /** Stands still until the person chooses. Lanes that fail together wait for one choice. */
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

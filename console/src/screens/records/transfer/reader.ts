/** The page's interface to the worker that reads the file. */
import type { Checked, FromWorker, Piece, Plan, Sight, ToWorker } from "./import.worker";
import type { SourceOptions } from "./formats";

type Asked = ToWorker extends infer Each ? (Each extends { id: number } ? Omit<Each, "id"> : never) : never;

export class Reader {
  #worker: Worker | null = null;
  readonly #waiting = new Map<number, { done: (value: never) => void; failed: (error: Error) => void; progress?: ((bytes: number, rows: number) => void) | undefined }>();
  #last = 0;

  #started(): Worker {
    if (this.#worker !== null) return this.#worker;
    const worker = new Worker(new URL("./import.worker.ts", import.meta.url), { type: "module", name: "import" });
    worker.addEventListener("message", ({ data }: MessageEvent<FromWorker>) => {
      const waiting = this.#waiting.get(data.id);
      if (data.kind === "progress") return waiting?.progress?.(data.bytes, data.rows);
      this.#waiting.delete(data.id);
      if (data.kind === "answer") waiting?.done(data.value as never);
      else waiting?.failed(new Error(data.message));
    });
    worker.addEventListener("error", (event) => {
      for (const { failed } of this.#waiting.values()) failed(new Error(`The file could not be read: ${event.message || "the reader did not start"}.`));
      this.#waiting.clear();
    });
    this.#worker = worker;
    return worker;
  }

  #ask<Answer>(message: Asked, progress?: (bytes: number, rows: number) => void): Promise<Answer> {
    const id = ++this.#last;
    return new Promise<Answer>((done, failed) => {
      this.#waiting.set(id, { done: done as (value: never) => void, failed, progress });
      this.#started().postMessage({ ...message, id });
    });
  }

  look = (file: File, options?: SourceOptions) => this.#ask<Sight>({ kind: "look", file, ...(options === undefined ? {} : { options }) });
  check = (file: File, plan: Plan, progress: (bytes: number, rows: number) => void) => this.#ask<Checked>({ kind: "check", file, plan }, progress);
  begin = (file: File, plan: Plan) => this.#ask<null>({ kind: "begin", file, plan });
  next = (rows: number, characters: number) => this.#ask<Piece>({ kind: "next", rows, characters });
  close = () => {
    this.#worker?.terminate();
    this.#worker = null;
    this.#waiting.clear();
  };
}

/**
 * Changes or deletes many records in several calls. It reports the progress, waits if the server asks for it, and returns a report of the
 * records that were changed and of the others. It does not depend on any screen.
 */
import { isApiError, messageOf } from "../../../api/errors";

/** The number of records in one call. The server accepts 1,000 by default. Smaller calls show the progress better and stop sooner. */
export const PIECE = 250;
/**
 * The maximum number of records that the server may refuse one by one before the job stops. With more, the change itself is probably wrong.
 */
const REFUSED_MAX = 50;
const WAITS_MAX = 6;
const WAIT_SECONDS_MAX = 60;

export interface Refused {
  id: string;
  message: string;
}

export interface Report {
  total: number;
  /** The number of records that were changed or deleted. */
  done: number;
  /** The number of records that do not exist (any more), or that this person may not see. */
  missing: number;
  refused: Refused[];
  /** The ids of the records that were never tried. */
  left: string[];
  /** The ids of the records of a call without a response. The server may have changed them or not. */
  unknown: string[];
  /** Set if the job stopped before its end. */
  stopped?: { reason: "canceled" | "error"; message: string; status?: number; requestId?: string | undefined };
}

export interface Progress {
  tried: number;
  /** Whether the job waits because the server asked for it. */
  waiting: boolean;
  report: Report;
}

export interface Job {
  ids: string[];
  /** Makes one call, and returns the ids of the records that it changed. */
  call: (ids: string[]) => Promise<string[]>;
  /** The number of records in one call. It is smaller than the default if each record gets its own values. */
  pieceSize?: number;
  signal: AbortSignal;
  onProgress: (progress: Progress) => void;
  onDone?: (ids: string[]) => void;
}

/** The index of the refused record, if the message begins with it: "At index 3: …". */
function placeOf(message: string, length: number): number | undefined {
  const place = Number(/^At index (\d+)/.exec(message)?.[1] ?? Number.NaN);
  return place < length ? place : undefined;
}

export async function run({ ids, call, pieceSize = PIECE, signal, onProgress, onDone }: Job): Promise<Report> {
  const report: Report = { total: ids.length, done: 0, missing: 0, refused: [], left: [], unknown: [] };
  const pieces: string[][] = [];
  for (let from = 0; from < ids.length; from += pieceSize) pieces.push(ids.slice(from, from + pieceSize));
  let tried = 0;
  let waits = 0;
  const tell = (waiting = false) => onProgress({ tried, waiting, report: { ...report, refused: [...report.refused] } });
  const stop = (reason: "canceled" | "error", error?: unknown): Report => {
    report.left = pieces.flat();
    report.stopped = { reason, message: error === undefined ? "You stopped it." : messageOf(error), ...(isApiError(error) ? { status: error.status, requestId: error.requestId } : {}) };
    return report;
  };
  tell();
  while (pieces.length > 0) {
    if (signal.aborted) return stop("canceled");
    const piece = pieces[0]!;
    try {
      // A call that is already sent is not aborted, because then nobody would know its result.
      const changed = await call(piece);
      pieces.shift();
      tried += piece.length;
      report.done += changed.length;
      report.missing += piece.length - changed.length;
      waits = 0;
      onDone?.(changed);
    } catch (error) {
      if (!isApiError(error)) return stop("error", error);
      if ((error.status === 429 || error.status === 503) && waits < WAITS_MAX) {
        waits += 1;
        tell(true);
        await pause(Math.min(error.retryAfterSeconds ?? 2 ** waits, WAIT_SECONDS_MAX) * 1_000, signal);
        continue;
      }
      // No response, or one from a proxy. The server may have changed these records or not.
      if (error.status === 0 || error.status >= 500) {
        report.unknown = piece;
        pieces.shift();
        return stop("error", error);
      }
      if (![400, 404, 409, 413].includes(error.status) || report.refused.length >= REFUSED_MAX) return stop("error", error);
      // A call changes all of its records or none. So the refused record is set aside and the others are tried again. If the message has no
      // index, each half is tried alone.
      pieces.shift();
      const place = piece.length === 1 ? 0 : placeOf(error.message, piece.length);
      if (place === undefined) {
        const half = Math.ceil(piece.length / 2);
        pieces.unshift(piece.slice(0, half), piece.slice(half));
      } else {
        report.refused.push({ id: piece[place]!, message: error.message });
        tried += 1;
        const rest = piece.filter((_, index) => index !== place);
        if (rest.length > 0) pieces.unshift(rest);
      }
    }
    tell();
  }
  return report;
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** The report as text that can be saved. */
export function printReport(report: Report, verb: string): string {
  return [
    `${verb}: ${report.done} of ${report.total}`,
    ...(report.missing > 0 ? [`Not there any more, or not for you to see: ${report.missing}`] : []),
    ...(report.stopped === undefined ? [] : [`Stopped: ${report.stopped.message}${report.stopped.requestId === undefined ? "" : ` (request ${report.stopped.requestId})`}`]),
    ...(report.refused.length === 0 ? [] : ["", "Refused:", ...report.refused.map(({ id, message }) => `${id}\t${message}`)]),
    ...(report.unknown.length === 0 ? [] : ["", "No answer came for these; look whether they were changed:", ...report.unknown]),
    ...(report.left.length === 0 ? [] : ["", "Not tried:", ...report.left]),
  ].join("\n");
}

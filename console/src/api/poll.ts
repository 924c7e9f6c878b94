/** How often what has no events is asked for. */
import { isApiError } from "./errors";

/** No server's wish makes a page wait for longer than this; timers have a limit, too. */
const WAIT_MS_MAX = 3_600_000;

/** The `refetchInterval` of a query: every so many milliseconds, and after a refusal not before its `Retry-After` has passed. */
export function every(intervalMs: number): (query: { state: { error: unknown } }) => number {
  return ({ state: { error } }) => Math.max(intervalMs, Math.min(WAIT_MS_MAX, ((isApiError(error) ? error.retryAfterSeconds : undefined) ?? 0) * 1_000));
}

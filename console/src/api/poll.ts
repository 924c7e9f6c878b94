/** The polling of data that has no events. */
import { isApiError } from "./errors";

/** The maximum wait that a server can request with `Retry-After`. Timers have a limit, too. */
const WAIT_MS_MAX = 3_600_000;

/**
 * The `refetchInterval` of a query: every `intervalMs` milliseconds. After an error response, it waits at least until its `Retry-After` has
 * passed.
 */
export function every(intervalMs: number): (query: { state: { error: unknown } }) => number {
  return ({ state: { error } }) => Math.max(intervalMs, Math.min(WAIT_MS_MAX, ((isApiError(error) ? error.retryAfterSeconds : undefined) ?? 0) * 1_000));
}

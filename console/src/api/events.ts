/** Recorded events, newest first, and the parts of an event. */
import { api, ok } from "./client";
import { isApiError } from "./errors";
import { type JsonObject, type JsonValue, isJsonObject } from "./json";
import type { LiveEvent } from "./types";

export interface RecordedFilter {
  topic?: string | undefined;
  object?: string | undefined;
  record?: string | undefined;
}

export interface RecordedPage {
  events: LiveEvent[];
  /** `before` of the next page. Without it, there are no older events. */
  next: string | undefined;
}

/** The maximum number of responses to one page in which the server stopped looking. After these, the page can be short. */
const STOPS_MAX = 5;

/**
 * At most `most` events, the newest ones before `before`. If they are too large for one response, or if the server stops looking before it has
 * found them, this sends several requests.
 */
export async function recordedEvents(filter: RecordedFilter, most: number, before: string | undefined, signal: AbortSignal): Promise<RecordedPage> {
  const events: LiveEvent[] = [];
  let [next, limit, stops] = [before, most, 0];
  while (events.length < most && stops < STOPS_MAX) {
    const asked = Math.min(limit, most - events.length);
    try {
      const { data, pagination } = await ok(api.GET("/api/v1/events", { params: { query: { ...filter, limit: asked, before: next } }, signal }));
      events.push(...data);
      if (pagination === undefined && data.length < asked) return { events, next: undefined };
      if (pagination !== undefined) stops++;
      next = pagination?.before ?? data.at(-1)?.id;
    } catch (error) {
      if (asked === 1 || !isApiError(error) || error.code !== "answer_too_large") throw error;
      limit = Math.ceil(asked / 4);
    }
  }
  return { events, next };
}

const textOf = (value: JsonValue | undefined) => (typeof value === "string" ? value : undefined);

/** The id of the user or the API key that caused an event. */
export function actorOf({ payload }: LiveEvent): string | null {
  const actor = isJsonObject(payload.actor) ? payload.actor : null;
  return textOf(actor?.userId) ?? textOf(actor?.apiKeyId) ?? null;
}

/** The changed fields of an update. */
export function changesOf(payload: JsonObject): { field: string; before: JsonValue; after: JsonValue }[] {
  if (!isJsonObject(payload.diff)) return [];
  return Object.entries(payload.diff).map(([field, change]) => ({
    field,
    before: isJsonObject(change) ? (change.before ?? null) : null,
    after: isJsonObject(change) ? (change.after ?? null) : change,
  }));
}

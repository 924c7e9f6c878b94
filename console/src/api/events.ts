/** Recorded events, newest first, and the parts of an event. */
import { api, dataOf } from "./client";
import { isApiError } from "./errors";
import { type JsonObject, type JsonValue, isJsonObject } from "./json";
import type { LiveEvent } from "./types";

export interface RecordedFilter {
  topic?: string | undefined;
  object?: string | undefined;
  record?: string | undefined;
}

/**
 * At most `most` events, the newest ones before the event `before`. If they are too large for one response, this sends several requests.
 */
export async function recordedEvents(filter: RecordedFilter, most: number, before: string | undefined, signal: AbortSignal): Promise<LiveEvent[]> {
  const events: LiveEvent[] = [];
  let limit = most;
  while (events.length < most) {
    const asked = Math.min(limit, most - events.length);
    try {
      const data = await dataOf(api.GET("/api/v1/events", { params: { query: { ...filter, limit: asked, before: events.at(-1)?.id ?? before } }, signal }));
      events.push(...data);
      if (data.length < asked) break;
    } catch (error) {
      if (asked === 1 || !isApiError(error) || error.code !== "answer_too_large") throw error;
      limit = Math.ceil(asked / 4);
    }
  }
  return events;
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

/** Queries for recorded events, and their parts for display. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";
import { type RecordedFilter, recordedEvents } from "../../api/events";
import type { JsonValue } from "../../api/json";
import type { LiveEvent } from "../../api/types";
import type { Tone } from "../../components/StatusBadge";

export const PAGE = 100;

export const eventsQuery = (filter: RecordedFilter) =>
  infiniteQueryOptions({
    queryKey: ["events", filter],
    queryFn: ({ pageParam, signal }) => recordedEvents(filter, PAGE, pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
    // The stream brings newer events, so the query never has to run again by itself.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });

export const eventQuery = (id: string) =>
  queryOptions({
    queryKey: ["event", id],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/events/{id}", { params: { path: { id } }, signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });

const TONES: Record<string, Tone> = { created: "ok", updated: "info", deleted: "bad", linked: "info", unlinked: "warn", failed: "bad", succeeded: "ok", suspended: "warn" };

/** The color of a topic. Its last segment says what happened. */
export function toneOf(topic: string): Tone {
  return TONES[topic.slice(topic.lastIndexOf(".") + 1)] ?? "off";
}

const textOf = (value: JsonValue | undefined) => (typeof value === "string" ? value : undefined);

/** The record of a data event. */
export function recordOf({ topic, payload }: LiveEvent): { object: string; id: string } | undefined {
  const [object, id] = [textOf(payload.object), textOf(payload.id)];
  return topic.startsWith("data.") && object !== undefined && id !== undefined ? { object, id } : undefined;
}

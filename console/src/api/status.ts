/** What the server says of itself; needs read on `settings`. */
import { queryOptions } from "@tanstack/react-query";
import { request } from "./client";
import { isApiError } from "./errors";

export interface Status {
  version: string;
  engine: "sqlite" | "postgres";
  engineVersion: string;
  startedAt: string;
  now: string;
  uptimeSeconds: number;
  instances: { id: string; version: string; startedAt: string; seenAt: string; isThis: boolean }[];
  database: { sizeBytes: number; freeBytes: number | null; totalBytes: number | null };
  outbox: { events: number; sizeBytes: number; maxBytes: number | null };
  deliveries: { pending: number; failed: number; dead: number; oldestPendingAt: string | null };
  streams: { open: number; max: number };
  blocks: { installed: number; failing: { name: string; error: string; at: string }[] };
  /** Sixty steps of a minute, the oldest first. */
  activity: { from: string; stepSeconds: number; requests: number[]; writes: number[]; errors: number[] };
  health: { check: string; ok: boolean; detail: string }[];
}

export const statusQuery = queryOptions({
  queryKey: ["status"],
  queryFn: async ({ signal }) => (await request<{ data: Status }>("GET", "/api/v1/status", { signal })).data,
  refetchInterval: 10_000,
  retry: (failures, error) => failures < 2 && !(isApiError(error) && error.status < 500),
});

/** Tasks of the API, and what a schedule means. */
import { Cron } from "croner";
import { toString as cronInWords } from "cronstrue";
import { queryOptions } from "@tanstack/react-query";
import { request } from "../../api/client";
import { isApiError } from "../../api/errors";
import type { JsonObject, JsonValue } from "../../api/json";

export interface Task {
  id: string;
  name: string;
  type: "anonymous_cleanup" | "event_retention" | "block_action" | "erase_user";
  enabled: boolean;
  schedule: string;
  config: JsonObject;
  lastRunAt: string | null;
  lastStatus: "running" | "succeeded" | "failed" | null;
  nextRunAt: string | null;
  suspended: { reason: string; since: string } | null;
}

export interface Run {
  id: string;
  taskId: string;
  trigger: "schedule" | "manual";
  status: "running" | "succeeded" | "failed";
  startedAt: string;
  finishedAt: string | null;
  result: JsonValue;
  error: JsonValue;
}

const retry = (failures: number, error: unknown) => failures < 2 && !(isApiError(error) && error.status < 500);

export const tasksQuery = queryOptions({
  queryKey: ["tasks"],
  queryFn: async ({ signal }) => (await request<{ data: Task[] }>("GET", "/api/v1/tasks", { signal })).data,
  // Runs that the schedule begins have no event until they end.
  refetchInterval: 15_000,
  retry,
});

export const RUNS_SHOWN = 25;

export const runsQuery = (task: string) =>
  queryOptions({
    queryKey: ["tasks", task, "runs"],
    queryFn: async ({ signal }) => (await request<{ data: Run[] }>("GET", `/api/v1/tasks/${encodeURIComponent(task)}/runs`, { query: { limit: RUNS_SHOWN }, signal })).data,
    retry,
  });

/** What each type does, in a sentence. */
export const TYPES: Record<Task["type"], string> = {
  anonymous_cleanup: "Deletes guests that are older than the configured number of days.",
  event_retention: "Deletes old events that no consumer still has to get.",
  block_action: "Calls an action of a block with the rights of the task's maker.",
  erase_user: "Erases what the service keeps of a user.",
};

/** Whether somebody made the task, so that it can be deleted and adopted. */
export const isMade = ({ type }: Task) => type === "block_action" || type === "erase_user";

const SHAPE = /^\S+( +\S+){4}$/;

/** The schedule in words, or undefined where it is none. Schedules are in UTC. */
export function inWords(schedule: string): string | undefined {
  if (!SHAPE.test(schedule.trim())) return undefined;
  try {
    return `${cronInWords(schedule.trim(), { use24HourTimeFormat: true, verbose: false })} (UTC)`;
  } catch {
    return undefined;
  }
}

/** The next times of a schedule; none where it is no schedule. */
export function nextRuns(schedule: string, count: number, from = new Date()): Date[] {
  if (!SHAPE.test(schedule.trim())) return [];
  try {
    return new Cron(schedule.trim(), { timezone: "UTC", mode: "5-part", paused: true }).nextRuns(count, from);
  } catch {
    return [];
  }
}

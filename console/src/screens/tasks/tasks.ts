/** Queries for tasks, and schedules in words. */
import { Cron } from "croner";
import { toString as cronInWords } from "cronstrue";
import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";
import { every } from "../../api/poll";
import type { Task } from "../../api/types";

export const tasksQuery = queryOptions({
  queryKey: ["tasks"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/tasks", { signal })),
  // A run that starts by its schedule has no event until it ends.
  refetchInterval: every(15_000),
});

/** The color of a run by its status. */
export const RUN_TONES = { running: "info", succeeded: "ok", failed: "bad" } as const;

export const RUNS_SHOWN = 25;

export const runsQuery = (task: string) =>
  queryOptions({
    queryKey: ["tasks", task, "runs"],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/tasks/{id}/runs", { params: { path: { id: task }, query: { limit: RUNS_SHOWN } }, signal })),
  });

/** A sentence about each type of task. */
export const TYPES: Record<Task["type"], string> = {
  anonymous_cleanup: "Deletes guests that are older than the configured number of days.",
  event_retention: "Deletes old events that no consumer still has to get.",
  audit_retention: "Deletes old entries of the audit log.",
  block_action: "Calls an action of a block with the rights of the task's maker.",
  erase_user: "Erases what the service keeps of a user.",
};

/** Whether a person made the task. Such a task can be deleted and adopted. */
export const isMade = ({ type }: Task) => type === "block_action" || type === "erase_user";

const SHAPE = /^\S+( +\S+){4}$/;

/** The schedule in words. Undefined if it is not valid. Schedules are in UTC. */
export function inWords(schedule: string): string | undefined {
  if (!SHAPE.test(schedule.trim())) return undefined;
  try {
    return `${cronInWords(schedule.trim(), { use24HourTimeFormat: true, verbose: false })} (UTC)`;
  } catch {
    return undefined;
  }
}

/** The next times of a schedule. Empty if the schedule is not valid. */
export function nextRuns(schedule: string, count: number, from = new Date()): Date[] {
  if (!SHAPE.test(schedule.trim())) return [];
  try {
    return new Cron(schedule.trim(), { timezone: "UTC", mode: "5-part", paused: true }).nextRuns(count, from);
  } catch {
    return [];
  }
}

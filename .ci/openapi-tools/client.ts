// What a user of the generated types writes; it has to compile under --strict.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

const client = createClient<paths>({ baseUrl: "http://127.0.0.1:4000", headers: { authorization: "Bearer token" } });

export async function openTasks(): Promise<string[]> {
  const { data, error } = await client.GET("/api/v1/data/task", {
    params: { query: { "priority[gte]": 2, done: false, sort: "-priority", expand: "project,tags" } },
  });
  if (error) throw new Error(`${error.error}: ${error.message}`);
  const total: number | null = data.pagination.totalCount;
  return data.data.map((task) => `${task.title ?? ""} of ${total}: ${task.project?.name ?? "no project"}`);
}

export async function raise(id: string): Promise<components["schemas"]["Task"]> {
  const { data, error } = await client.PATCH("/api/v1/data/task/{id}", {
    params: { path: { id } },
    body: { priority: { $inc: 1 }, done: "true" },
  });
  if (error) throw new Error(error.message);
  const title: string = data.data.title;
  const priority: number | null = data.data.priority;
  return { ...data.data, title, priority };
}

export async function make(title: string) {
  return client.POST("/api/v1/data/task", { body: { title } });
}

type Condition = components["schemas"]["Task_Where"];

export async function urgentTasks(word: string): Promise<string[]> {
  const where: Condition = {
    _or: [{ priority: { gte: 2, lt: 9 } }, { due: { lt: "$today" } }],
    _not: { done: "true" },
    project: { name: { ilike: word } },
    // A path of relations.
    "project.name": { is_not_null: true },
    tags: { some: { name: { in: ["tag-1", "tag-2"] } }, none: { name: "tag-3" } },
    notes: { every: { body: null } },
  };
  const { data, error } = await client.POST("/api/v1/data/task/query", { body: { where, sort: "-priority" } });
  if (error) throw new Error(error.message);
  return data.data.map((task) => task.title ?? "");
}

// In a query, a condition is JSON text.
export async function countDone() {
  const where: Condition = { done: true };
  return client.DELETE("/api/v1/data/task/bulk", { params: { query: { where: JSON.stringify(where), dryRun: true } } });
}

export async function finish(where: Condition) {
  return client.PATCH("/api/v1/data/task/bulk", { body: { where, values: { done: true } } });
}

// @ts-expect-error A number is no text.
export const wrongValue: Condition = { title: 1 };
// @ts-expect-error The texts of a boolean are "true" and "false".
export const wrongText: Condition = { done: "yes" };
// @ts-expect-error A number has no such operator.
export const wrongOperator: Condition = { priority: { like: "1" } };
// @ts-expect-error A relation to many records needs `some`, `none` or `every`.
export const wrongRelation: Condition = { tags: { name: "tag-1" } };
// @ts-expect-error The related object has another type.
export const wrongRelated: Condition = { project: { name: 1 } };
// @ts-expect-error A required field is missing.
export const incomplete: components["schemas"]["TaskCreateInput"] = { done: true };
// @ts-expect-error There is no such field.
export const unknown: components["schemas"]["TaskUpdateInput"] = { colour: "red" };

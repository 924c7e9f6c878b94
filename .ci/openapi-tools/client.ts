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

// @ts-expect-error A required field is missing.
export const incomplete: components["schemas"]["TaskCreateInput"] = { done: true };
// @ts-expect-error There is no such field.
export const unknown: components["schemas"]["TaskUpdateInput"] = { colour: "red" };

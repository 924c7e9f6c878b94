/** The history of the schema: each change with its actor and time, in sentences and as differences. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../../api/client";
import { sameJson, type JsonValue } from "../../../api/json";
import type { Field, Migration, SchemaChange } from "../../../api/types";
import { typeInfo } from "./fieldTypes";
import { quantity } from "../../../api/numbers";
import { listed } from "./names";
import { relationTitle } from "./relations";

const PAGE = 50;
const RECENT = 1_000;

/** The changes of one object and of its relations, newest first, in pages. */
export function objectHistoryQuery(object: string) {
  return infiniteQueryOptions({
    queryKey: ["schema", "migrations", object],
    queryFn: ({ pageParam, signal }) => dataOf(api.GET("/api/v1/schema/migrations", { params: { query: { object, limit: PAGE, ...(pageParam === null ? {} : { before: pageParam }) } }, signal })),
    initialPageParam: null as number | null,
    getNextPageParam: (page: Migration[]) => (page.length === PAGE ? page.at(-1)!.version : null),
    staleTime: 5_000,
  });
}

/** The newest changes of all objects. They show who last changed each object. */
export const recentHistoryQuery = queryOptions({
  queryKey: ["schema", "migrations", "recent"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/schema/migrations", { params: { query: { limit: RECENT } }, signal })),
  staleTime: 30_000,
});

/** The objects that a change is about. */
export function objectsOf(change: SchemaChange): string[] {
  if ("relationship" in change) return [change.relationship.source, change.relationship.target];
  return [change.op === "create_object" ? change.object.name : change.object];
}

export function lastChanges(history: Migration[]): Map<string, Migration> {
  const last = new Map<string, Migration>();
  for (const entry of history) for (const object of objectsOf(entry.change)) if (!last.has(object)) last.set(object, entry);
  return last;
}

export function changeSentence(change: SchemaChange): string {
  switch (change.op) {
    case "create_object":
      return `Created the object ${change.object.name} with ${quantity(change.object.fields.length, "field")}`;
    case "delete_object":
      return `Deleted the object ${change.object} with its records`;
    case "add_field":
      return `Added the field ${change.field.name} (${typeInfo(change.field.type).label.toLowerCase()})`;
    case "drop_field":
      return `Dropped the field ${change.field.name} with its values`;
    case "create_relationship":
      return `Added the relation ${relationTitle(change.relationship)}`;
    case "delete_relationship":
      return `Removed the relation ${relationTitle(change.relationship)}`;
    case "update_object": {
      const parts = differences(change).map(({ key }) => key);
      return parts.length === 0 ? "Saved the object as it was" : `Changed the ${listed(parts)}`;
    }
    case "alter_field": {
      if (change.before.name !== change.after.name) {
        const others = differences(change).filter(({ key }) => key !== "name");
        return `Renamed the field ${change.before.name} to ${change.after.name}${others.length === 0 ? "" : `, changed its ${listed(others.map(({ key }) => key))}`}`;
      }
      const parts = differences(change).map(({ key }) => key);
      return parts.length === 0 ? `Saved the field ${change.field} as it was` : `Changed the ${listed(parts)} of the field ${change.field}`;
    }
  }
}

export interface Difference {
  key: string;
  before: JsonValue | undefined;
  after: JsonValue | undefined;
}

const WORDS: Record<string, string> = { isUnique: "uniqueness", indexed: "index", constraints: "unique groups", required: "requirement" };

/** The differences that a change made, by key. A new or removed item is shown with its complete definition. */
export function differences(change: SchemaChange): Difference[] {
  if (change.op === "alter_field" || change.op === "update_object") {
    const [before, after] = [change.before as unknown as Record<string, JsonValue>, change.after as unknown as Record<string, JsonValue>];
    return [...new Set([...Object.keys(before), ...Object.keys(after)])]
      .filter((key) => key !== "fields" && !sameJson(before[key] ?? null, after[key] ?? null))
      .map((key) => ({ key: WORDS[key] ?? key, before: before[key], after: after[key] }));
  }
  if (change.op === "create_object") return lines(change.object, "after");
  if (change.op === "add_field") return lines(change.field, "after");
  if (change.op === "drop_field") return lines(change.field, "before");
  if (change.op === "create_relationship") return lines(change.relationship, "after");
  if (change.op === "delete_relationship") return lines(change.relationship, "before");
  return [];
}

/** The complete definition of a new or removed item, with one line for each key. Fields are shown in words. */
function lines(definition: object, side: "before" | "after"): Difference[] {
  const rows = Object.entries(definition as Record<string, JsonValue>).filter(([key, value]) => key !== "id" && key !== "name" && value !== false);
  return rows.map(([key, value]) => {
    const shown = key === "fields" ? (value as unknown as Field[]).map(fieldWords).join("\n") : value;
    return { key: WORDS[key] ?? key, before: side === "before" ? shown : undefined, after: side === "after" ? shown : undefined };
  });
}

function fieldWords({ name, type, required, isUnique, indexed }: Field): string {
  return [`${name} ${type}`, ...(required === true ? ["required"] : []), ...(isUnique === true ? ["unique"] : []), ...(indexed === true ? ["indexed"] : [])].join(", ");
}

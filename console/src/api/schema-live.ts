/** The live schema: objects, their fields and relationships, as the server has them now. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { request } from "./client";
import type { JsonValue } from "./json";

export type FieldType =
  | "text" | "email" | "url" | "slug" | "enum" | "multi_enum" | "integer" | "big_integer" | "decimal" | "float" | "percentage"
  | "currency" | "rating" | "boolean" | "date" | "datetime" | "time" | "json" | "uuid";

export interface Field {
  name: string;
  type: FieldType;
  label?: string;
  description?: string;
  required?: boolean;
  isUnique?: boolean;
  indexed?: boolean;
  default?: JsonValue;
  min?: JsonValue;
  max?: JsonValue;
  scale?: number;
  pattern?: string;
  options?: string[];
}

export interface DataObject {
  name: string;
  label?: string;
  description?: string;
  fields: Field[];
  constraints?: { uniqueTogether?: string[][] };
  indexes?: string[][];
}

export interface Relationship {
  id: string;
  name: string;
  kind: "one_to_one" | "one_to_many" | "many_to_one" | "many_to_many";
  source: string;
  target: string;
  onDelete?: "cascade" | "set_null" | "restrict";
  required?: boolean;
}

export interface Schema {
  version: number;
  objects: DataObject[];
  relationships: Relationship[];
}

/** Needs read on `objects`; those without it have `dataObjectsQuery`. */
export const schemaQuery = queryOptions({
  queryKey: ["schema"],
  queryFn: async ({ signal }) => (await request<{ data: Schema }>("GET", "/api/v1/schema", { signal })).data,
  staleTime: 30_000,
});

/** The objects that this person may use, by name. */
export const dataObjectsQuery = queryOptions({
  queryKey: ["data-objects"],
  queryFn: async ({ signal }) =>
    (await request<{ data: { name: string; endpoints: { method: string; path: string }[] }[] }>("GET", "/api/v1/data", { signal })).data,
  staleTime: 30_000,
});

export function useSchema() {
  return useQuery(schemaQuery);
}

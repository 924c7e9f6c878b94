/**
 * Operations on single records: read one with its version (ETag), write on the condition that nobody has changed it since, link, and
 * delete.
 */
import { queryOptions } from "@tanstack/react-query";
import { api } from "./client";
import { printJson, type JsonObject, type JsonValue } from "./json";
import type { RecordRow } from "./record-paths";
import type { Column } from "./record-shape";

export interface VersionedRecord {
  record: RecordRow;
  /** The value for `If-Match`. Null if the response had none. */
  etag: string | null;
}

export const recordPath = (object: string, id?: string) =>
  `/api/v1/data/${encodeURIComponent(object)}${id === undefined ? "" : `/${encodeURIComponent(id)}`}`;

export const recordKey = (object: string, id: string) => ["record", object, id] as const;

interface Answered {
  data?: { data: RecordRow };
  response: Response;
}

async function versioned(call: Promise<Answered>): Promise<VersionedRecord> {
  const { data, response } = await call;
  return { record: data!.data, etag: response.headers.get("etag") };
}

const ifMatch = (etag: string | null) => (etag === null ? {} : { "if-match": etag });

export function readRecord(object: string, id: string, { signal }: { signal?: AbortSignal } = {}): Promise<VersionedRecord> {
  return versioned(api.GET("/api/v1/data/{object}/{id}", { params: { path: { object, id } }, ...(signal === undefined ? {} : { signal }) }));
}

export const recordQuery = (object: string, id: string) => queryOptions({ queryKey: recordKey(object, id), queryFn: ({ signal }) => readRecord(object, id, { signal }) });

/** Changes only the given columns. With an ETag, the response is 412 if the record has changed since. */
export function updateRecord(object: string, id: string, body: JsonObject, etag: string | null): Promise<VersionedRecord> {
  return versioned(api.PATCH("/api/v1/data/{object}/{id}", { params: { path: { object, id }, header: ifMatch(etag) }, body }));
}

export function createRecord(object: string, body: JsonObject): Promise<VersionedRecord> {
  return versioned(api.POST("/api/v1/data/{object}", { params: { path: { object } }, body }));
}

/** With an ETag, the response is 412 if the record has changed since. */
export async function deleteRecord(object: string, id: string, etag: string | null): Promise<void> {
  // The person may be leaving the page. `keepalive` lets the request continue.
  await api.DELETE("/api/v1/data/{object}/{id}", { params: { path: { object, id }, header: ifMatch(etag) }, keepalive: true });
}

export async function changeLinks(object: string, id: string, relation: string, ids: string[], change: "add" | "remove"): Promise<void> {
  const options = { params: { path: { object, id, relation } }, body: { ids } };
  await (change === "add" ? api.POST("/api/v1/data/{object}/{id}/links/{relation}", options) : api.DELETE("/api/v1/data/{object}/{id}/links/{relation}", options));
}

/** Converts a value for a request body. In a JSON column, a string is JSON that is already encoded. */
export function wireValue(column: Pick<Column, "type">, value: JsonValue): JsonValue {
  return column.type === "json" && typeof value === "string" ? printJson(value) : value;
}

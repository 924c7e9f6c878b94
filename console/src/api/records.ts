/** Single records: read with their version (ETag), write on the condition that nobody was faster, link, delete. */
import { queryOptions } from "@tanstack/react-query";
import { request, requestRaw } from "./client";
import { parseJson, printJson, type JsonObject, type JsonValue } from "./json";
import type { Column } from "./record-shape";

export interface VersionedRecord {
  record: JsonObject;
  /** For `If-Match`; null where the server gave none. */
  etag: string | null;
}

export const recordPath = (object: string, id?: string) =>
  `/api/v1/data/${encodeURIComponent(object)}${id === undefined ? "" : `/${encodeURIComponent(id)}`}`;

export const recordKey = (object: string, id: string, role?: string) => ["record", object, id, role ?? null] as const;

async function versioned(response: Response): Promise<VersionedRecord> {
  const body = parseJson(await response.text()) as { data: JsonObject };
  return { record: body.data, etag: response.headers.get("etag") };
}

/** `role` is the role to view as. */
export const recordQuery = (object: string, id: string, role?: string) =>
  queryOptions({
    queryKey: recordKey(object, id, role),
    queryFn: async ({ signal }) =>
      versioned(await requestRaw("GET", recordPath(object, id), { signal, ...(role === undefined ? {} : { headers: { "x-svc-view-as": role } }) })),
  });

/** Only the given columns are changed; with an ETag, 412 where the record has changed since. */
export async function updateRecord(object: string, id: string, body: JsonObject, etag: string | null): Promise<VersionedRecord> {
  return versioned(await requestRaw("PATCH", recordPath(object, id), { body, headers: etag === null ? {} : { "if-match": etag } }));
}

export async function createRecord(object: string, body: JsonObject): Promise<VersionedRecord> {
  return versioned(await requestRaw("POST", recordPath(object), { body }));
}

/** With an ETag, 412 where the record has changed since. */
export async function deleteRecord(object: string, id: string, etag: string | null): Promise<void> {
  // The page may be left at this moment: the request goes on.
  await requestRaw("DELETE", recordPath(object, id), { keepalive: true, headers: etag === null ? {} : { "if-match": etag } });
}

export async function changeLinks(object: string, id: string, key: string, ids: string[], change: "add" | "remove"): Promise<void> {
  await request(change === "add" ? "POST" : "DELETE", `${recordPath(object, id)}/links/${encodeURIComponent(key)}`, { body: { ids } });
}

/** A value as the API takes it in a body: a text in a json column is JSON that is encoded already. */
export function wireValue(column: Pick<Column, "type">, value: JsonValue): JsonValue {
  return column.type === "json" && typeof value === "string" ? printJson(value) : value;
}

/**
 * Reads lists and counts of a view's records. `query` is the text of a query string. If that cannot hold the condition, or is long, it becomes
 * a body.
 */
import { countMatches } from "../../api/aggregates";
import { api, ok } from "../../api/client";
import type { RecordsPage } from "../../api/record-paths";
import type { RecordShape } from "./columns";
import { bodyOf } from "./list-query";

const bodyOfText = (query: string, shape: RecordShape) => bodyOf([...new URLSearchParams(query)], shape);

export function readList(shape: RecordShape, query: string, signal?: AbortSignal): Promise<RecordsPage> {
  const path = { object: shape.name };
  const body = bodyOfText(query, shape);
  return body === undefined ? ok(api.GET("/api/v1/data/{object}", { params: { path, query }, signal })) : ok(api.POST("/api/v1/data/{object}/query", { params: { path }, body, signal }));
}

/** The number of records that match these filters. */
export async function countList(shape: RecordShape, filters: string, signal: AbortSignal): Promise<number> {
  if (bodyOfText(filters, shape) === undefined) return countMatches(shape.name, filters, signal);
  const { pagination } = await readList(shape, `${filters}&select=id&pageSize=1&count=exact`, signal);
  return Number(pagination.totalCount);
}

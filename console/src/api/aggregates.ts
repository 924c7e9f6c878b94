/** Aggregates: how many records match, and functions for groups of records. `query` is the text of a query string. */
import { api, ok } from "./client";
import type { GroupsPage } from "./record-paths";

async function aggregate(object: string, query: string, signal: AbortSignal) {
  return ok(api.GET("/api/v1/data/{object}/aggregate", { params: { path: { object }, query }, signal }));
}

/** The number of records that match these filters. */
export async function countMatches(object: string, filters: string, signal: AbortSignal): Promise<number> {
  const answer = await aggregate(object, `fn=count&${filters}`, signal);
  if ("pagination" in answer) throw new TypeError("The server answered with groups, although the request has none.");
  return Number(answer.data.filteredCount);
}

/** A page of groups. The query has `groupBy`. */
export async function readGroups(object: string, query: string, signal: AbortSignal): Promise<GroupsPage> {
  const answer = await aggregate(object, query, signal);
  if (!("pagination" in answer)) throw new TypeError("The server answered without groups.");
  return answer;
}

/** Records of another object by a text that stands for them: for pickers, links and lists. Users are an object here too. */
import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import { isApiError } from "./errors";
import type { JsonObject } from "./json";
import { USERS, displayColumn, displayValue, type Column, useRecordShape } from "./record-shape";
import type { User } from "./types";
import { isUuid } from "./uuid";

export interface Related {
  id: string;
  /** Undefined where only the id stands for it. */
  label?: string | undefined;
}

const FOUND_MAX = 20;

export function relatedOf(record: JsonObject, columns: Column[] | undefined): Related {
  return { id: String(record.id), label: columns === undefined ? undefined : displayValue(record, columns) };
}

const userOf = (user: User): Related => ({ id: user.id, label: user.name || user.email || undefined });

/** The columns that a label needs. */
export function selectOf(columns: Column[]): string {
  const display = displayColumn(columns);
  return display === undefined ? "id" : `id,${display}`;
}

async function find(target: string, columns: Column[], term: string, signal: AbortSignal): Promise<Related[]> {
  if (target === USERS) {
    const users = await dataOf(api.GET("/api/v1/users", { params: { query: { search: term, pageSize: FOUND_MAX } }, signal }));
    return users.map(userOf);
  }
  const byId = isUuid(term.trim());
  const query = { ...(byId ? { "id[eq]": term.trim() } : { search: term.trim() }), select: selectOf(columns), pageSize: FOUND_MAX, count: "none" };
  const records = await dataOf(api.GET("/api/v1/data/{object}", { params: { path: { object: target }, query }, signal }));
  return records.map((record) => relatedOf(record, columns));
}

/** The first records of `target` that match, newest first; an id finds its record. */
export function useRelatedSearch(target: string, term: string, enabled: boolean) {
  const shape = useRecordShape(target === USERS ? "" : target);
  const columns = target === USERS ? [] : shape.data?.columns;
  return useQuery({
    queryKey: ["data", target, "related", "search", term],
    queryFn: ({ signal }) => find(target, columns ?? [], term, signal),
    enabled: enabled && columns !== undefined,
    placeholderData: keepPreviousData,
  });
}

const relatedQuery = (target: string, id: string, columns: Column[] | undefined) =>
  queryOptions({
    queryKey: ["data", target, "related", id],
    queryFn: async ({ signal }): Promise<Related | null> => {
      try {
        if (target === USERS) return userOf(await dataOf(api.GET("/api/v1/users/{id}", { params: { path: { id } }, signal })));
        return relatedOf(await dataOf(api.GET("/api/v1/data/{object}/{id}", { params: { path: { object: target, id } }, signal })), columns);
      } catch (error) {
        // Gone, or not to be seen: the id has to stand for it.
        if (isApiError(error) && [403, 404].includes(error.status)) return null;
        throw error;
      }
    },
    enabled: columns !== undefined,
    staleTime: 30_000,
  });

/** The label of one record by its id; null where it is gone or not to be seen. */
export function useRelated(target: string, id: string | null): Related | null | undefined {
  const shape = useRecordShape(target === USERS ? "" : target);
  const columns = target === USERS ? [] : shape.data?.columns;
  const query = relatedQuery(target, id ?? "", columns);
  return useQuery({ ...query, enabled: id !== null && id !== "" && columns !== undefined }).data;
}

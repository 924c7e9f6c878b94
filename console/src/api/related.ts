/** Records of another object by a text that stands for them: for pickers, links and lists. Users are an object here too. */
import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { request } from "./client";
import { isApiError } from "./errors";
import type { JsonObject } from "./json";
import { USERS, displayColumn, displayValue, type Column, useRecordShape } from "./record-shape";
import { recordPath } from "./records";

export interface Related {
  id: string;
  /** Undefined where only the id stands for it. */
  label?: string | undefined;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const FOUND_MAX = 20;

export function relatedOf(record: JsonObject, columns: Column[] | undefined): Related {
  return { id: String(record.id), label: columns === undefined ? undefined : displayValue(record, columns) };
}

const userOf = (user: JsonObject): Related => ({ id: String(user.id), label: String(user.name || user.email || "") || undefined });

/** The columns that a label needs. */
export function selectOf(columns: Column[]): string {
  const display = displayColumn(columns);
  return display === undefined ? "id" : `id,${display}`;
}

async function find(target: string, columns: Column[], term: string, signal: AbortSignal): Promise<Related[]> {
  if (target === USERS) {
    const { data } = await request<{ data: JsonObject[] }>("GET", "/api/v1/users", { query: { search: term, pageSize: FOUND_MAX }, signal });
    return data.map(userOf);
  }
  const byId = UUID.test(term.trim());
  const { data } = await request<{ data: JsonObject[] }>("GET", recordPath(target), {
    query: { ...(byId ? { "id[eq]": term.trim() } : { search: term.trim() }), select: selectOf(columns), pageSize: FOUND_MAX, count: "none" },
    signal,
  });
  return data.map((record) => relatedOf(record, columns));
}

/** The first records of `target` that match, newest first; an id finds its record. */
export function useRelatedSearch(target: string, term: string, enabled: boolean) {
  const shape = useRecordShape(target === USERS ? "" : target);
  const columns = target === USERS ? [] : shape.data?.columns;
  return useQuery({
    queryKey: ["related", target, "search", term],
    queryFn: ({ signal }) => find(target, columns ?? [], term, signal),
    enabled: enabled && columns !== undefined,
    placeholderData: keepPreviousData,
  });
}

const relatedQuery = (target: string, id: string, columns: Column[] | undefined) =>
  queryOptions({
    queryKey: ["related", target, "id", id],
    queryFn: async ({ signal }): Promise<Related | null> => {
      try {
        if (target === USERS) return userOf((await request<{ data: JsonObject }>("GET", `/api/v1/users/${encodeURIComponent(id)}`, { signal })).data);
        return relatedOf((await request<{ data: JsonObject }>("GET", recordPath(target, id), { signal })).data, columns);
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

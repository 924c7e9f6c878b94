/** Finds records of another object by the text that stands for them. Pickers, links and lists use it. */
import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import { isApiError } from "./errors";
import type { JsonObject } from "./json";
import { displayColumn, displayValue, type Column, useRecordShape } from "./record-shape";
import { allows, usePermissions } from "./session";
import { USERS } from "./users-object";
import { isUuid } from "./uuid";

export interface Related {
  id: string;
  /** Undefined if only the id stands for the record. */
  label?: string | undefined;
  /** A text that distinguishes the record from others with the same label: the email address of a user. */
  note?: string | undefined;
}

const FOUND_MAX = 20;
/** The columns that make up the label and the note of a user. The person may lack the right to read them. */
const OF_USERS = ["name", "email"];

export function relatedOf(object: string, record: JsonObject, columns: Column[] | undefined): Related {
  const label = columns === undefined ? undefined : displayValue(record, columns);
  const id = String(record.id);
  const address = object === USERS && typeof record.email === "string" && record.email !== "" ? record.email : undefined;
  // A guest has no name.
  if (label === undefined || label === address) return { id, label: label ?? address };
  return { id, label, ...(address === undefined ? {} : { note: address }) };
}

/** The columns that a label and its note need. */
export function selectOf(object: string, columns: Column[]): string {
  const display = displayColumn(columns);
  const names = object === USERS ? OF_USERS.filter((name) => columns.some((column) => column.name === name)) : display === undefined ? [] : [display];
  return ["id", ...names].join();
}

async function find(target: string, columns: Column[], term: string, signal: AbortSignal): Promise<Related[]> {
  const byId = isUuid(term.trim());
  const query = { ...(byId ? { "id[eq]": term.trim() } : { search: term.trim() }), select: selectOf(target, columns), pageSize: FOUND_MAX, count: "none" };
  const records = await dataOf(api.GET("/api/v1/data/{object}", { params: { path: { object: target }, query }, signal }));
  return records.map((record) => relatedOf(target, record, columns));
}

/** The first records of `target` that match, newest first. A text that is an id finds its record. */
export function useRelatedSearch(target: string, term: string, enabled: boolean) {
  const columns = useRecordShape(target).data?.columns;
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
        return relatedOf(target, await dataOf(api.GET("/api/v1/data/{object}/{id}", { params: { path: { object: target, id } }, signal })), columns);
      } catch (error) {
        // The record is gone, or this person may not see it. The page then shows the id.
        if (isApiError(error) && [403, 404].includes(error.status)) return null;
        throw error;
      }
    },
    staleTime: 30_000,
  });

/** The label of one record by its id. Null if the record is gone or this person may not see it. */
export function useRelated(target: string, id: string | null): Related | null | undefined {
  const permissions = usePermissions();
  const reads = allows(permissions, target, "read");
  const columns = useRecordShape(target).data?.columns;
  const isGiven = id !== null && id !== "";
  const { data } = useQuery({ ...relatedQuery(target, id ?? "", columns), enabled: isGiven && reads && columns !== undefined });
  return isGiven && permissions !== undefined && !reads ? null : data;
}

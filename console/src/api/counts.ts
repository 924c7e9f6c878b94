/**
 * The number of records of an object. The server stores the total without a filter, so this request is cheap. At most four such requests
 * run at a time.
 */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, ok } from "./client";
import { isApiError } from "./errors";
import { useCan, usePermissions } from "./session";

const AT_ONCE_MAX = 4;
let running = 0;
const queue: (() => void)[] = [];

async function inTurn<Answer>(work: () => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
  if (running >= AT_ONCE_MAX) await new Promise<void>((resolve) => queue.push(resolve));
  running += 1;
  try {
    signal.throwIfAborted();
    return await work();
  } finally {
    running -= 1;
    queue.shift()?.();
  }
}

/** Null if this person may not read the object's records. */
export function recordCountQuery(object: string) {
  return queryOptions({
    queryKey: ["data", object, "count"],
    queryFn: ({ signal }) =>
      inTurn(async () => {
        try {
          const { pagination } = await ok(api.GET("/api/v1/data/{object}", { params: { path: { object }, query: { limit: 1, select: "id" } }, signal }));
          return pagination.totalCount;
        } catch (error) {
          if (isApiError(error) && (error.status === 403 || error.status === 404)) return null;
          throw error;
        }
      }, signal),
    staleTime: 15_000,
  });
}

export function useRecordCount(object: string, enabled = true): number | null | undefined {
  const permissions = usePermissions();
  const mayRead = useCan(object, "read");
  const { data } = useQuery({ ...recordCountQuery(object), enabled: enabled && mayRead });
  return permissions !== undefined && !mayRead ? null : data;
}

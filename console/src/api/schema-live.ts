/** The live schema: the server's current objects, fields and relationships. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import { isApiError } from "./errors";

/** Needs read on `objects`. Without it, use `dataObjectsQuery`. */
export const schemaQuery = queryOptions({
  queryKey: ["schema"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/schema", { signal })),
  staleTime: 30_000,
  // After a 403, parts of a page read the OpenAPI document instead. A new request by each part that appears would clear the 403 for a
  // moment. The parts would then disappear and start again, without an end.
  retryOnMount: ({ state: { error } }) => !(isApiError(error) && error.status === 403),
});

/** The objects that this person may use, by name. */
export const dataObjectsQuery = queryOptions({
  queryKey: ["data-objects"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/data", { signal })),
  staleTime: 30_000,
});

export function useSchema() {
  return useQuery(schemaQuery);
}

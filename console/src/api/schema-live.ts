/** The live schema: objects, their fields and relationships, as the server has them now. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import { isApiError } from "./errors";

/** Needs read on `objects`; those without it have `dataObjectsQuery`. */
export const schemaQuery = queryOptions({
  queryKey: ["schema"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/schema", { signal })),
  staleTime: 30_000,
  // A refusal makes parts of a page read the OpenAPI document instead. If each of them asked again as it appears, the refusal would be
  // forgotten meanwhile, the parts would go, and all would begin anew.
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

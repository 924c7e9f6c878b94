/** The server's report about itself. Needs read on `settings`. */
import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import { every } from "./poll";

export const statusQuery = queryOptions({
  queryKey: ["status"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/status", { signal })),
  refetchInterval: every(10_000),
});

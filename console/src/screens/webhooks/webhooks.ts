/** Queries for webhooks and subscriptions. */
import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";
import { every } from "../../api/poll";

// Neither of them has events, so they are polled.
const refetchInterval = every(15_000);

export const webhooksQuery = queryOptions({
  queryKey: ["webhooks"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/webhooks", { signal })),
  refetchInterval,
});

export const subscriptionsQuery = queryOptions({
  queryKey: ["subscriptions"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/events/subscriptions", { signal })),
  refetchInterval,
});

export const HIDDEN = "***";

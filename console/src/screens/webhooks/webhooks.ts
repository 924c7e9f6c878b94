/** Webhooks and subscriptions of the API. */
import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";

export const webhooksQuery = queryOptions({
  queryKey: ["webhooks"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/webhooks", { signal })),
});

export const subscriptionsQuery = queryOptions({
  queryKey: ["subscriptions"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/events/subscriptions", { signal })),
});

export const HIDDEN = "***";

/** Webhooks and subscriptions of the API. */
import { queryOptions } from "@tanstack/react-query";
import { request } from "../../api/client";
import type { JsonObject } from "../../api/json";
import { retry } from "../users/users";

interface Suspended {
  reason: string;
  since: string;
}

export interface Webhook {
  id: string;
  name: string | null;
  url: string;
  topics: string[];
  headers: Record<string, string>;
  enabled: boolean;
  /** `block:<name>` where a block declared it. */
  source: string | null;
  createdAt: string;
  updatedAt: string;
  suspended: Suspended | null;
}

export interface Subscription {
  event: string;
  consumer: string;
  handler: string;
  config: JsonObject;
  perInstance: boolean;
  source?: string | null;
  suspended: Suspended | null;
}

/** An answer may say what is odd but taken, such as a topic of an object that does not exist. */
export interface Answer<Data> {
  data: Data;
  secret?: string;
  warnings?: string[];
}

export const webhooksQuery = queryOptions({
  queryKey: ["webhooks"],
  queryFn: async ({ signal }) => (await request<{ data: Webhook[] }>("GET", "/api/v1/webhooks", { signal })).data,
  retry,
});

export const subscriptionsQuery = queryOptions({
  queryKey: ["subscriptions"],
  queryFn: async ({ signal }) => (await request<{ data: Subscription[] }>("GET", "/api/v1/events/subscriptions", { signal })).data,
  retry,
});

export const HIDDEN = "***";

/** Queries and parts for deliveries, which several screens use. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { api, dataOf, ok } from "../../api/client";
import { every } from "../../api/poll";
import { useCan } from "../../api/session";
import type { Delivery } from "../../api/types";
import { StatusBadge } from "../../components/StatusBadge";
import { webhooksQuery } from "../webhooks/webhooks";
import { nameOf } from "./consumers";

export const deliveryQuery = ({ eventId, consumer, status, attempts }: Delivery) =>
  queryOptions({
    // The state is part of the key. So when an attempt changes it in the list, the history is loaded again.
    queryKey: ["deliveries", "one", eventId, consumer, status, attempts],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/events/deliveries/{eventId}/{consumer}", { params: { path: { eventId, consumer } }, signal })),
  });

/** Returns a function that names consumer groups. It uses the name or address of a webhook if the person may read webhooks. */
export function useConsumerName(): (consumer: string) => string {
  const { data } = useQuery({ ...webhooksQuery, enabled: useCan("webhooks", "read") });
  return useCallback((consumer) => nameOf(consumer, data), [data]);
}

/** A failed delivery is dead if the server does not retry it any more. */
export type State = Delivery["status"] | "dead";

export function stateOf({ status, dead }: Delivery): State {
  return dead ? "dead" : status;
}

const TONES = { pending: "wait", delivered: "ok", failed: "warn", dead: "bad" } as const;

export function DeliveryStatus({ delivery }: { delivery: Delivery }) {
  const state = stateOf(delivery);
  return (
    <StatusBadge tone={TONES[state]} plain>
      {state}
    </StatusBadge>
  );
}

/** Shows whether the events of a consumer group arrive, as far as this person may see its deliveries. */
export function Arrives({ consumer }: { consumer: string }) {
  const { data } = useQuery({ ...countsQuery({}), enabled: useCan("events", "read") });
  if (data === undefined) return <StatusBadge tone="ok" plain>active</StatusBadge>;
  const { failed = 0, dead = 0 } = data.find((each) => each.consumer === consumer) ?? {};
  const state: State = dead > 0 ? "dead" : failed > 0 ? "failed" : "delivered";
  return (
    <StatusBadge tone={TONES[state]} plain>
      {state === "delivered" ? "delivers" : `${(dead > 0 ? dead : failed).toLocaleString("en")} ${state}`}
    </StatusBadge>
  );
}

export interface LedgerFilter {
  status?: State | undefined;
  consumer?: string | undefined;
  topic?: string | undefined;
  event?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
}

/** Converts a filter to the parameters of the API. */
export function parametersOf({ status, event, ...rest }: LedgerFilter) {
  return { ...rest, eventId: event, ...(status === "dead" ? { dead: true } : status === "failed" ? { status, dead: false } : { status }) };
}

/** The start of a page: the list before `before`, or the newest list, after this number of its deliveries. */
export interface LedgerStart {
  before?: string | undefined;
  offset: number;
}

/** The number of deliveries of a page. A page can have up to twice as many. */
const PAGE = 100;
/** The maximum number of lists of one page. After these, the page can be short. */
const LISTS_MAX = 5;

const ledgerList = (filter: LedgerFilter, { before, offset }: LedgerStart, signal: AbortSignal) =>
  ok(api.GET("/api/v1/events/deliveries", { params: { query: { ...parametersOf(filter), before, limit: PAGE, offset } }, signal }));

/**
 * A page of deliveries, and the start of the next one. Without it, there are no more. If the server stops looking before the page is full, this
 * goes on with the next list.
 */
export async function ledgerPage(filter: LedgerFilter, start: LedgerStart, signal: AbortSignal): Promise<{ rows: Delivery[]; next: LedgerStart | undefined }> {
  const rows: Delivery[] = [];
  let next: LedgerStart | undefined = start;
  for (let lists = 0; lists < LISTS_MAX && next !== undefined && rows.length < PAGE; lists++) {
    const { data, pagination } = await ledgerList(filter, next, signal);
    rows.push(...data);
    if (data.length === PAGE) next = { before: next.before, offset: next.offset + PAGE };
    else next = pagination.before === undefined ? undefined : { before: pagination.before, offset: 0 };
  }
  return { rows, next };
}

export const countsQuery = (filter: Omit<LedgerFilter, "status">) =>
  queryOptions({
    queryKey: ["deliveries", "counts", filter],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/events/deliveries/counts", { params: { query: parametersOf(filter) }, signal })),
    refetchInterval: every(5_000),
  });

import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { asCurl } from "../../components/CopyAs";
import { type Column, DataTable, NotLoaded } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { StatusBadge } from "../../components/StatusBadge";
import { Arrives } from "../deliveries/deliveries";
import { subscriptionsQuery } from "./webhooks";
import type { Subscription } from "../../api/types";

const COLUMNS: Column<Subscription>[] = [
  { id: "consumer", header: "Consumer", width: 240, cell: ({ consumer }) => <bdi>{consumer}</bdi> },
  { id: "event", header: "Topic", width: 240, cell: ({ event }) => <span className="mono">{event}</span> },
  { id: "handler", header: "Handler", width: 220, cell: ({ handler }) => <bdi className="mono">{handler}</bdi> },
  { id: "instance", header: "Delivered", width: 150, cell: ({ perInstance }) => (perInstance ? "to each instance" : "once") },
  { id: "state", header: "State", width: 130, cell: ({ consumer, suspended }) => (suspended === null ? <Arrives consumer={consumer} /> : <StatusBadge tone="warn" plain>suspended</StatusBadge>) },
];

/** `create` is the button that creates the first one. */
export function SubscriptionList({ create }: { create: ReactNode }) {
  const { open } = useSearch({ from: "/webhooks" });
  const navigate = useNavigate({ from: "/webhooks" });
  const query = useQuery(subscriptionsQuery);
  const { data } = query;
  if (data === undefined) return <NotLoaded query={query} what="The subscriptions" rows={6} />;
  if (data.length === 0)
    return (
      <EmptyState title="No subscriptions yet" action={create} docs="POST /api/v1/events/subscriptions" curl={asCurl({ method: "POST", path: "/api/v1/events/subscriptions", body: { event: "data.#", consumer: "my-log", handler: "log_event" } })}>
        A subscription hands events to a handler: log_event writes them to the server’s log, persist_event into an object, and blocks bring their own.
      </EmptyState>
    );
  return (
    <DataTable label="Subscriptions" columns={COLUMNS} rows={data} rowId={({ consumer }) => consumer} openId={open} onOpen={({ consumer }) => void navigate({ search: { tab: "subscriptions", open: consumer } })} narrowColumns={["consumer", "state"]} />
  );
}

import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { useCan } from "../../api/session";
import { asCurl } from "../../components/CopyAs";
import { type Column, DataTable, NotLoaded } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { consumerOf } from "../deliveries/consumers";
import { Arrives } from "../deliveries/deliveries";
import { Enabled } from "./Enabled";
import type { Webhook } from "../../api/types";
import { webhooksQuery } from "./webhooks";

/** `create` is the button that creates the first one. */
export function WebhookList({ create }: { create: ReactNode }) {
  const { open } = useSearch({ from: "/webhooks" });
  const navigate = useNavigate({ from: "/webhooks" });
  const query = useQuery(webhooksQuery);
  const { data } = query;
  const canUpdate = useCan("webhooks", "update");
  const columns = useMemo<Column<Webhook>[]>(
    () => [
      { id: "name", header: "Webhook", width: 200, cell: ({ name, id }) => (name === null ? <code className="mono dim">{id.slice(-8)}</code> : <bdi>{name}</bdi>) },
      { id: "url", header: "URL", width: 260, cell: ({ url }) => <bdi className="mono">{url}</bdi> },
      { id: "topics", header: "Topics", width: 240, cell: ({ topics }) => <span className="mono">{topics.join(", ")}</span> },
      { id: "state", header: "State", width: 130, cell: (webhook) => <State webhook={webhook} /> },
      { id: "enabled", header: "Enabled", width: 100, cell: (webhook) => <Enabled webhook={webhook} disabled={!canUpdate} /> },
      { id: "changed", header: "Changed", width: 120, cell: ({ updatedAt }) => <Time at={updatedAt} /> },
    ],
    [canUpdate],
  );
  if (data === undefined) return <NotLoaded query={query} what="The webhooks" rows={6} />;
  if (data.length === 0)
    return (
      <EmptyState title="No webhooks yet" action={create} docs="POST /api/v1/webhooks" curl={asCurl({ method: "POST", path: "/api/v1/webhooks", body: { url: "https://example.com/hook", topics: ["data.#"] } })}>
        A webhook sends each event that matches its topics to a URL, signed, and tries again when that fails.
      </EmptyState>
    );
  return <DataTable label="Webhooks" columns={columns} rows={data} rowId={({ id }) => id} openId={open} onOpen={({ id }) => void navigate({ search: { open: id } })} narrowColumns={["url", "state"]} />;
}

function State({ webhook: { id, enabled, suspended } }: { webhook: Webhook }) {
  if (suspended !== null) return <StatusBadge tone="warn" plain>suspended</StatusBadge>;
  return enabled ? <Arrives consumer={consumerOf(id)} /> : <StatusBadge tone="off" plain>disabled</StatusBadge>;
}

import { Button } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { api } from "../../api/client";
import { useLive } from "../../api/live";
import { quantity } from "../../api/numbers";
import { useCan } from "../../api/session";
import type { Block } from "../../api/types";
import { CopyAs } from "../../components/CopyAs";
import { type Column, DataTable, NotLoaded } from "../../components/DataTable";
import { EnabledSwitch } from "../../components/EnabledSwitch";
import { EmptyState } from "../../components/EmptyState";
import { Page } from "../../components/Page";
import { StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { blocksQuery } from "./blocks";

/** The installed blocks, which add actions, hooks and event handlers to the service. */
export function BlocksScreen() {
  const navigate = useNavigate({ from: "/blocks" });
  const cache = useQueryClient();
  const query = useQuery(blocksQuery);
  const blocks = query.data;
  const canCreate = useCan("blocks", "create");
  const canUpdate = useCan("blocks", "update");
  useLive(["block.#", "blocks.#"], () => void cache.invalidateQueries({ queryKey: ["blocks"] }), { queries: [["blocks"]] });
  const columns = useMemo<Column<Block>[]>(
    () => [
      {
        id: "name",
        header: "Block",
        width: 200,
        cell: ({ name }) => (
          <Link to="/blocks/$block" params={{ block: name }} dir="auto">
            {name}
          </Link>
        ),
      },
      { id: "version", header: "Version", width: 100, cell: ({ version }) => version },
      { id: "state", header: "State", width: 130, cell: (block) => <State block={block} /> },
      { id: "adds", header: "Adds", width: 260, cell: (block) => <span>{adds(block)}</span> },
      { id: "description", header: "Description", width: 320, cell: ({ description }) => <bdi className="dim">{description}</bdi> },
      { id: "installed", header: "Installed", width: 120, cell: ({ installedAt }) => <Time at={installedAt} /> },
      { id: "enabled", header: "Enabled", width: 100, cell: (block) => <Enabled block={block} disabled={!canUpdate} /> },
    ],
    [canUpdate],
  );
  const install = canCreate && (
    <Button leftSection={<IconPlus size={14} />} renderRoot={(props) => <Link to="/blocks/install" {...props} />}>
      Install block
    </Button>
  );
  return (
    <Page
      title="Blocks"
      {...(blocks === undefined ? {} : { aside: blocks.length })}
      actions={
        <>
          <CopyAs request={{ method: "GET", path: "/api/v1/blocks" }} />
          {install}
        </>
      }
    >
      {blocks === undefined ? (
        <NotLoaded query={query} what="The blocks" rows={5} />
      ) : blocks.length === 0 ? (
        <EmptyState title="No blocks yet" docs="POST /api/v1/blocks" action={install} commands={'blockbase block new hello\ncd hello && blockbase block build'}>
          A block is a WebAssembly component in any language. It gets exactly the data, secrets and hosts that you agree to.
        </EmptyState>
      ) : (
        <DataTable label="Blocks" columns={columns} rows={blocks} rowId={({ name }) => name} onOpen={({ name }) => void navigate({ to: "/blocks/$block", params: { block: name } })} narrowColumns={["name", "state"]} />
      )}
    </Page>
  );
}

export function adds({ actions, hooks, subscriptions }: Pick<Block, "actions" | "hooks" | "subscriptions">): string {
  const parts = [actions.length > 0 && quantity(actions.length, "action"), hooks.length > 0 && quantity(hooks.length, "hook"), subscriptions.length > 0 && quantity(subscriptions.length, "event handler")];
  return parts.filter(Boolean).join(", ") || "nothing by itself";
}

export function State({ block: { enabled, suspended } }: { block: Block }) {
  if (suspended !== null) return <StatusBadge tone="warn" plain>suspended</StatusBadge>;
  return enabled ? <StatusBadge tone="ok" plain>runs</StatusBadge> : <StatusBadge tone="off" plain>disabled</StatusBadge>;
}

export function Enabled({ block, disabled }: { block: Block; disabled: boolean }) {
  const save = (enabled: boolean) => api.PATCH("/api/v1/blocks/{block}", { params: { path: { block: block.name } }, body: { enabled } });
  return <EnabledSwitch listKey={blocksQuery.queryKey} item={block} isSame={({ name }) => name === block.name} name={block.name} save={save} disabled={disabled} />;
}

import { Button } from "@mantine/core";
import { IconDots, IconUpload } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, linkOptions, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { api, ok } from "../../api/client";
import { useLive } from "../../api/live";
import { useCan } from "../../api/session";
import { confirm } from "../../components/confirm-store";
import { CopyAs } from "../../components/CopyAs";
import { ErrorNotice, ErrorState } from "../../components/ErrorState";
import { Menu } from "../../components/floating";
import { Page } from "../../components/Page";
import { SkeletonLines } from "../../components/Skeleton";
import { Suspended } from "../../components/Suspended";
import { told } from "../../components/toast";
import { ActionsTab } from "./ActionsTab";
import { State } from "./BlocksScreen";
import { blockQuery } from "./blocks";
import { ConfigurationTab } from "./ConfigurationTab";
import { HandlersTab } from "./HandlersTab";
import { LogsTab } from "./LogsTab";
import { OverviewTab } from "./OverviewTab";
import { SecretsTab } from "./SecretsTab";
import classes from "./Blocks.module.css";

/** One block: its permissions, its parts, its settings and its log. */
export function BlockScreen() {
  const { block: name } = useParams({ from: "/blocks/$block" });
  const { tab = "overview" } = useSearch({ from: "/blocks/$block" });
  const navigate = useNavigate({ from: "/blocks/$block" });
  const cache = useQueryClient();
  const query = useQuery(blockQuery(name));
  const canCreate = useCan("blocks", "create");
  const canUpdate = useCan("blocks", "update");
  const canDelete = useCan("blocks", "delete");
  const canManage = useCan("blocks", "manage");
  const params = { path: { block: name } };
  const path = `/api/v1/blocks/${name}`;
  const refresh = () => cache.invalidateQueries({ queryKey: ["blocks"] });
  useLive(["block.#", "blocks.#"], () => void refresh(), { queries: [["blocks"]] });
  const rollback = useMutation({
    mutationFn: () => ok(api.POST("/api/v1/blocks/{block}/rollback", { params })),
    onSuccess: async ({ data }) => {
      await refresh();
      told(`${name} ${data.version} serves again.`);
    },
  });
  const remove = useMutation({
    mutationFn: () => api.DELETE("/api/v1/blocks/{block}", { params }),
    onSuccess: async () => {
      await navigate({ to: "/blocks" });
      told(`${name} is uninstalled.`);
      await refresh();
    },
  });
  const block = query.data;
  const crumbs = [{ label: "Blocks", link: linkOptions({ to: "/blocks" }) }];
  if (block === undefined)
    return (
      <Page title={name} crumbs={crumbs} padded>
        {query.error === null ? <SkeletonLines /> : <ErrorState error={query.error} title="The block could not be loaded" onRetry={() => void query.refetch()} />}
      </Page>
    );
  const tabs = [
    { id: "overview" as const, label: "Overview" },
    ...(block.actions.length > 0 ? [{ id: "actions" as const, label: "Actions" }] : []),
    ...(block.subscriptions.length + block.hooks.length > 0 ? [{ id: "handlers" as const, label: "Events and hooks" }] : []),
    ...(block.configSchema === null ? [] : [{ id: "configuration" as const, label: "Configuration" }]),
    ...(canManage && block.permissions.secrets.length > 0 ? [{ id: "secrets" as const, label: "Secrets" }] : []),
    { id: "logs" as const, label: "Log" },
  ];
  const error = rollback.error ?? remove.error;
  return (
    <Page
      title={block.name}
      crumbs={crumbs}
      aside={<State block={block} />}
      padded
      tabs={tabs.map(({ id, label }) => ({ label, link: linkOptions({ to: "/blocks/$block", params: { block: name }, search: id === "overview" ? {} : { tab: id } }), active: tab === id }))}
      actions={
        <>
          <CopyAs request={{ method: "GET", path: tab === "logs" ? `${path}/logs` : path }} />
          {canCreate && (
            <Button variant="default" leftSection={<IconUpload size={14} />} renderRoot={(props) => <Link to="/blocks/install" search={{ upgrade: name }} {...props} />}>
              Upgrade
            </Button>
          )}
          {(canCreate || canDelete) && (
            <Menu>
              <Menu.Target>
                <Button variant="default" px={6} aria-label="More">
                  <IconDots size={16} />
                </Button>
              </Menu.Target>
              <Menu.Dropdown>
                {canCreate && (
                  <Menu.Item
                    disabled={block.versions.length < 2}
                    onClick={async () => {
                      if (await confirm({ title: `Roll ${name} back?`, children: `The version before ${block.version} serves again.`, action: "Roll back" })) rollback.mutate();
                    }}
                  >
                    Roll back
                  </Menu.Item>
                )}
                {canDelete && (
                  <Menu.Item
                    color="red"
                    onClick={async () => {
                      if (await confirm({ title: `Uninstall ${name}?`, children: "Its subscriptions, webhooks, secrets and waiting deliveries go too. Records stay.", action: "Uninstall block", danger: true })) remove.mutate();
                    }}
                  >
                    Uninstall
                  </Menu.Item>
                )}
              </Menu.Dropdown>
            </Menu>
          )}
        </>
      }
    >
      <div className={classes.tab}>
        {error !== null && <ErrorNotice error={error} />}
        <Suspended by={block.suspended} adopt={canUpdate ? () => api.POST("/api/v1/blocks/{block}/adopt", { params }) : undefined} onAdopted={refresh} />
        {tab === "actions" ? (
          <ActionsTab block={block} />
        ) : tab === "handlers" || tab === "hooks" ? (
          <HandlersTab block={block} canReplay={canUpdate} />
        ) : tab === "configuration" ? (
          <ConfigurationTab block={block} canUpdate={canUpdate} />
        ) : tab === "secrets" ? (
          <SecretsTab block={block} />
        ) : tab === "logs" ? (
          <LogsTab name={name} />
        ) : (
          <OverviewTab block={block} />
        )}
      </div>
    </Page>
  );
}

import { Button, Select } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { keysQuery } from "../../api/actors";
import { api } from "../../api/client";
import { useLive } from "../../api/live";
import { useCan } from "../../api/session";
import type { ApiKey } from "../../api/types";
import { Actor } from "../../components/Actor";
import { CopyAs, asCurl } from "../../components/CopyAs";
import { type Column, DataTable, NotLoaded } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNotice } from "../../components/ErrorState";
import { FactList } from "../../components/FactList";
import { Find } from "../../components/Find";
import { Id } from "../../components/Id";
import { Inspector, type PaneActions, neighbours } from "../../components/Inspector";
import { Page } from "../../components/Page";
import { StatusBadge } from "../../components/StatusBadge";
import { Suspended } from "../../components/Suspended";
import { Time } from "../../components/Time";
import { told } from "../../components/toast";
import { DeleteButton } from "../../components/DeleteButton";
import { rolesQuery } from "../users/users";
import { NewKey } from "./NewKey";
import classes from "../../components/Details.module.css";

/** The API keys: their users, their roles, and when they were last used. */
export function KeysScreen() {
  const { q = "", open, new: creating } = useSearch({ from: "/keys" });
  const navigate = useNavigate({ from: "/keys" });
  const query = useQuery(keysQuery);
  const keys = query.data;
  const cache = useQueryClient();
  const refresh = () => void cache.invalidateQueries({ queryKey: keysQuery.queryKey });
  useLive(["auth.key.#", "api_keys.#"], refresh, { onGap: refresh, queries: [keysQuery.queryKey] });
  const readsRoles = useCan("roles", "read");
  const { data: roles } = useQuery({ ...rolesQuery, enabled: readsRoles });
  const canCreate = useCan("api_keys", "create");
  const [role, setRole] = useState<string | null>(null);
  const roleNames = useMemo(() => new Map(roles?.map(({ id, name }) => [id, name])), [roles]);
  const columns = useMemo<Column<ApiKey>[]>(
    () => [
      { id: "name", header: "Key", width: 220, cell: ({ name }) => <bdi>{name}</bdi> },
      { id: "state", header: "State", width: 120, cell: (key) => <KeyState apiKey={key} /> },
      { id: "prefix", header: "Begins with", width: 120, cell: ({ prefix }) => <code className="mono">{prefix}…</code> },
      { id: "role", header: "Role", width: 150, cell: ({ roleId }) => (roleNames.has(roleId) ? <bdi>{roleNames.get(roleId)}</bdi> : <Id id={roleId} />) },
      { id: "user", header: "Of", width: 150, cell: ({ userId }) => <Actor id={userId} /> },
      { id: "used", header: "Last used", width: 130, cell: ({ lastUsedAt }) => (lastUsedAt === null ? <span className="dim">never</span> : <Time at={lastUsedAt} />) },
      { id: "expires", header: "Expires", width: 130, cell: ({ expiresAt }) => (expiresAt === null ? <span className="dim">never</span> : <Time at={expiresAt} />) },
    ],
    [roleNames],
  );
  const wanted = q.trim().toLowerCase();
  const shown = keys?.filter(({ name, prefix, roleId }) => [name, prefix].some((text) => text.toLowerCase().includes(wanted)) && (role === null || roleId === role));
  const at = shown?.findIndex(({ id }) => id === open) ?? -1;
  const go = (id: string | undefined) => void navigate({ search: (before) => ({ ...before, open: id, new: undefined }) });
  return (
    <Page
      title="API keys"
      {...(keys === undefined ? {} : { aside: keys.length })}
      actions={
        <>
          <CopyAs request={{ method: "GET", path: "/api/v1/api-keys" }} />
          {canCreate && (
            <Button leftSection={<IconPlus size={14} />} renderRoot={(props) => <Link to="/keys" search={{ new: true }} {...props} />}>
              Create key
            </Button>
          )}
        </>
      }
      toolbar={
        <>
          <Find w={240} label="Find a key" placeholder="Name or beginning" value={q} onFind={(text) => void navigate({ search: (before) => ({ ...before, q: text }), replace: true })} />
          {roles !== undefined && <Select aria-label="Role" placeholder="Every role" clearable data={roles.map(({ id, name }) => ({ value: id, label: name }))} value={role} onChange={setRole} w={180} />}
        </>
      }
      inspector={
        creating === true && canCreate ? (
          <NewKey onClose={() => go(undefined)} />
        ) : (
          at !== -1 && (
            <KeyInspector
              key={open}
              apiKey={shown![at]!}
              roleName={roleNames.get(shown![at]!.roleId)}
              onClose={() => go(undefined)}
              {...neighbours(shown!, at, ({ id }) => go(id))}
            />
          )
        )
      }
    >
      {shown === undefined ? (
        <NotLoaded query={query} what="The keys" rows={6} />
      ) : keys!.length === 0 ? (
        <EmptyState
          title="No keys yet"
          docs="POST /api/v1/api-keys"
          curl={asCurl({ method: "POST", path: "/api/v1/api-keys", body: { name: "my program", roleId: "<role id>" } })}
          {...(canCreate ? { action: <Button onClick={() => void navigate({ search: { new: true } })}>Create key</Button> } : {})}
        >
          A key lets a program call the API with one role’s rights, and never with more than its maker has.
        </EmptyState>
      ) : shown.length === 0 ? (
        <EmptyState title="No key matches">Change the search or the role above.</EmptyState>
      ) : (
        <DataTable label="API keys" columns={columns} rows={shown} rowId={({ id }) => id} openId={open} onOpen={({ id }) => go(id)} narrowColumns={["name", "state"]} />
      )}
    </Page>
  );
}

const isPast = (at: string) => new Date(at).getTime() <= Date.now();

function KeyState({ apiKey: { suspended, expiresAt } }: { apiKey: ApiKey }) {
  if (expiresAt !== null && isPast(expiresAt)) return <StatusBadge tone="off" plain>expired</StatusBadge>;
  return suspended === null ? <StatusBadge tone="ok" plain>active</StatusBadge> : <StatusBadge tone="warn" plain>suspended</StatusBadge>;
}

function KeyInspector({ apiKey, roleName, ...pane }: { apiKey: ApiKey; roleName: string | undefined } & PaneActions) {
  const cache = useQueryClient();
  const canUpdate = useCan("api_keys", "update");
  const canDelete = useCan("api_keys", "delete");
  const params = { path: { id: apiKey.id } };
  const refresh = () => cache.invalidateQueries({ queryKey: ["api-keys"] });
  const remove = useMutation({
    mutationFn: () => api.DELETE("/api/v1/api-keys/{id}", { params }),
    onSuccess: async () => {
      pane.onClose();
      told(`The key ${apiKey.name} is deleted.`);
      await refresh();
    },
  });
  return (
    <Inspector
      title={apiKey.name}
      {...pane}
      footer={
        canDelete && (
          <DeleteButton question={{ title: `Delete the key ${apiKey.name}?`, children: "Programs that use it are refused at once.", action: "Delete key" }} isPending={remove.isPending} onDelete={() => remove.mutate()}>
            Delete key
          </DeleteButton>
        )
      }
    >
      <div className={classes.body}>
        {remove.error !== null && <ErrorNotice error={remove.error} />}
        <Suspended by={apiKey.suspended} adopt={canUpdate ? () => api.POST("/api/v1/api-keys/{id}/adopt", { params }) : undefined} onAdopted={refresh} />
        <FactList
          facts={{
            State: <KeyState apiKey={apiKey} />,
            "Begins with": <code className="mono">{apiKey.prefix}…</code>,
            Role: <Link to="/roles/$role" params={{ role: apiKey.roleId }} dir="auto">{roleName ?? apiKey.roleId}</Link>,
            Of: <Actor id={apiKey.userId} />,
            "Made by": apiKey.madeBy === null ? <span className="dim">not known</span> : <Actor id={apiKey.madeBy.apiKeyId ?? apiKey.madeBy.userId} />,
            Created: <Time at={apiKey.createdAt} exact />,
            "Last used": apiKey.lastUsedAt === null ? <span className="dim">never</span> : <Time at={apiKey.lastUsedAt} />,
            Expires: apiKey.expiresAt === null ? <span className="dim">never</span> : <Time at={apiKey.expiresAt} exact />,
          }}
        />
      </div>
    </Inspector>
  );
}

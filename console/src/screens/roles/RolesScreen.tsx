import { Button, TextInput } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { api, dataOf } from "../../api/client";
import { errorBesides, messageAt } from "../../api/errors";
import { useCan } from "../../api/session";
import type { Role } from "../../api/types";
import { CopyAs } from "../../components/CopyAs";
import { type Column, DataTable, NotLoaded } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Find } from "../../components/Find";
import { FormInspector } from "../../components/FormInspector";
import { Page } from "../../components/Page";
import { Time } from "../../components/Time";
import { rolesQuery } from "../users/users";
import classes from "./Roles.module.css";

/** All roles, with what they allow. */
export function RolesScreen() {
  const { q = "", new: creating } = useSearch({ from: "/roles" });
  const navigate = useNavigate({ from: "/roles" });
  const query = useQuery(rolesQuery);
  const roles = query.data;
  const canCreate = useCan("roles", "create");
  const wanted = q.trim().toLowerCase();
  const shown = roles?.filter(({ name, description }) => [name, description ?? ""].some((text) => text.toLowerCase().includes(wanted)));
  return (
    <Page
      title="Roles"
      {...(roles === undefined ? {} : { aside: roles.length })}
      actions={
        <>
          <CopyAs request={{ method: "GET", path: "/api/v1/roles" }} />
          {canCreate && (
            <Button leftSection={<IconPlus size={14} />} renderRoot={(props) => <Link to="/roles" search={{ new: true }} {...props} />}>
              Create role
            </Button>
          )}
        </>
      }
      toolbar={<Find w={260} label="Find a role" value={q} onFind={(text) => void navigate({ search: (before) => ({ ...before, q: text }), replace: true })} />}
      inspector={creating === true && canCreate && <NewRole onClose={() => void navigate({ search: {} })} onCreated={({ id }) => void navigate({ to: "/roles/$role", params: { role: id } })} />}
    >
      {shown === undefined ? (
        <NotLoaded query={query} what="The roles" rows={5} />
      ) : shown.length === 0 ? (
        <EmptyState title="No role matches">No role has “{q}” in its name or description.</EmptyState>
      ) : (
        <DataTable label="Roles" columns={COLUMNS} rows={shown} rowId={({ id }) => id} onOpen={({ id }) => void navigate({ to: "/roles/$role", params: { role: id } })} narrowColumns={["name", "grants"]} />
      )}
    </Page>
  );
}

const COLUMNS: Column<Role>[] = [
  {
    id: "name",
    header: "Role",
    width: 220,
    cell: ({ id, name }) => (
      <Link to="/roles/$role" params={{ role: id }} className={classes.name} dir="auto">
        {name}
      </Link>
    ),
  },
  { id: "description", header: "Description", width: 340, cell: ({ description }) => <bdi className="dim">{description ?? ""}</bdi> },
  {
    id: "grants",
    header: "Grants",
    width: 300,
    cell: ({ permissions }) =>
      permissions.length === 0 ? <span className="dim">none</span> : <span className="mono">{[...new Set(permissions.map(({ resource }) => resource))].join(", ")}</span>,
  },
  { id: "changed", header: "Changed", width: 130, cell: ({ updatedAt }) => (updatedAt.startsWith("1970") ? <span className="dim">with the service</span> : <Time at={updatedAt} />) },
];

function NewRole({ onClose, onCreated }: { onClose: () => void; onCreated: (role: Role) => void }) {
  const cache = useQueryClient();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const create = useMutation({
    mutationFn: () => dataOf(api.POST("/api/v1/roles", { body: { name: name.trim(), ...(description.trim() === "" ? {} : { description: description.trim() }), permissions: [] } })),
    onSuccess: async (role) => {
      await cache.invalidateQueries({ queryKey: ["roles"] });
      onCreated(role);
    },
  });
  return (
    <FormInspector
      title="New role"
      onClose={onClose}
      isDirty={name !== "" || description !== ""}
      action="Create role"
      isWhole={name.trim() !== ""}
      request={create}
      error={errorBesides(create.error, ["name"])}
    >
      <TextInput label="Name" required value={name} error={messageAt(create.error, "name")} onChange={({ currentTarget }) => setName(currentTarget.value)} autoFocus />
      <TextInput label="Description" value={description} onChange={({ currentTarget }) => setDescription(currentTarget.value)} />
      <p className="dim">It begins without grants. Choose them on the next page.</p>
    </FormInspector>
  );
}

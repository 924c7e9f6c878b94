import { Button, Select } from "@mantine/core";
import { IconPlus, IconSearch } from "@tabler/icons-react";
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";
import { address } from "../../api/client";
import { useLive } from "../../api/live";
import { useCan } from "../../api/session";
import type { SeenUser } from "../../api/types";
import { CopyAs } from "../../components/CopyAs";
import { type Column, DataTable, NotLoaded } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Initials } from "../../components/Initials";
import { neighbours } from "../../components/Inspector";
import { Page } from "../../components/Page";
import { SettledInput } from "../../components/SettledInput";
import { Time } from "../../components/Time";
import { NewUser } from "./NewUser";
import { Shown, UserInspector, UserState } from "./UserInspector";
import { PAGE, rolesQuery, usersQuery } from "./users";
import classes from "../../components/Details.module.css";

/** All accounts, with their roles. A dash stands for what this person may not read. */
export function UsersScreen() {
  const { q, role, page = 1, open, new: creating } = useSearch({ from: "/users" });
  const navigate = useNavigate({ from: "/users" });
  const cache = useQueryClient();
  const readsRoles = useCan("roles", "read");
  const canCreate = useCan("users", "create", "all");
  const query = useQuery({ ...usersQuery({ search: q, role, page }), placeholderData: keepPreviousData });
  const refresh = () => void cache.invalidateQueries({ queryKey: ["users"] });
  useLive(["auth.user.#"], refresh, { onGap: refresh, queries: [["users"]] });
  const roles = useQuery({ ...rolesQuery, enabled: readsRoles });
  const search = useCallback((next: string | undefined) => void navigate({ search: (before) => ({ ...before, q: next, page: undefined }), replace: true }), [navigate]);
  const users = query.data?.data;
  const total = query.data?.pagination.totalCount;
  const pages = query.data?.pagination.totalPages ?? 1;
  const at = users?.findIndex(({ id }) => id === open) ?? -1;
  const go = (id: string | undefined) => void navigate({ search: (before) => ({ ...before, open: id, new: undefined }) });
  return (
    <Page
      title="Users"
      {...(total === undefined || total === null ? {} : { aside: total.toLocaleString("en") })}
      actions={
        <>
          <CopyAs request={{ method: "GET", path: address("/api/v1/users", { search: q, role, page, pageSize: PAGE }) }} />
          {canCreate && (
            <Button leftSection={<IconPlus size={14} />} renderRoot={(props) => <Link to="/users" search={(before) => ({ ...before, open: undefined, new: true })} {...props} />}>
              Create user
            </Button>
          )}
        </>
      }
      toolbar={
        <>
          <SettledInput w={260} leftSection={<IconSearch size={14} />} aria-label="Find users" placeholder="Name or email" value={q} onSettled={search} />
          {readsRoles && (
            <Select aria-label="Role" placeholder="Every role" clearable data={roles.data?.map(({ name }) => name) ?? []} value={role ?? null} onChange={(value) => void navigate({ search: (before) => ({ ...before, role: value ?? undefined, page: undefined }) })} w={180} />
          )}
        </>
      }
      inspector={
        creating === true && canCreate ? (
          <NewUser onClose={() => go(undefined)} />
        ) : (
          open !== undefined && (
            <UserInspector
              key={open}
              id={open}
              known={at === -1 ? undefined : users![at]}
              onClose={() => go(undefined)}
              {...neighbours(users ?? [], at, ({ id }) => go(id))}
            />
          )
        )
      }
    >
      {users === undefined ? (
        <NotLoaded query={query} what="The users" rows={12} />
      ) : users.length === 0 ? (
        <EmptyState title="Nobody matches">No user has this name, email or role.</EmptyState>
      ) : (
        <DataTable
          label="Users"
          columns={COLUMNS}
          rows={users}
          rowId={({ id }) => id}
          openId={open}
          onOpen={({ id }) => go(id)}
          narrowColumns={["name", "roles"]}
          footer={
            pages > 1 && (
              <nav className={classes.pages} aria-label="Pages">
                <Button variant="default" size="compact-xs" disabled={page <= 1} onClick={() => void navigate({ search: (before) => ({ ...before, page: page - 1 === 1 ? undefined : page - 1 }) })}>
                  Previous
                </Button>
                <span className="dim">
                  Page {page.toLocaleString("en")} of {pages.toLocaleString("en")}
                </span>
                <Button variant="default" size="compact-xs" disabled={page >= pages} onClick={() => void navigate({ search: (before) => ({ ...before, page: page + 1 }) })}>
                  Next
                </Button>
              </nav>
            )
          }
        />
      )}
    </Page>
  );
}

const COLUMNS: Column<SeenUser>[] = [
  {
    id: "name",
    header: "Name",
    width: 220,
    cell: ({ name, isAnonymous }) => (
      <span className={classes.person}>
        <Initials name={name ?? ""} />
        {name === "" ? <span className="dim">{isAnonymous ? "guest" : "no name"}</span> : <Shown text={name} />}
      </span>
    ),
  },
  { id: "email", header: "Email", width: 260, cell: ({ email }) => <Shown text={email} /> },
  { id: "roles", header: "Roles", width: 240, cell: ({ roles }) => (roles?.length === 0 ? <span className="dim">none</span> : <Shown text={roles?.map(({ name }) => name).join(", ")} />) },
  { id: "state", header: "State", width: 120, cell: (user) => <UserState user={user} /> },
  { id: "created", header: "Created", width: 130, cell: ({ createdAt }) => <Time at={createdAt} /> },
];

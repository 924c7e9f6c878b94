import { Button, UnstyledButton } from "@mantine/core";
import { IconAlertTriangle, IconArrowDown, IconDots, IconEye } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, linkOptions, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { api } from "../../api/client";
import { sameJson } from "../../api/json";
import { quantity } from "../../api/numbers";
import { useCan, usePermissions } from "../../api/session";
import type { Grant } from "../../api/types";
import { useViewAs, viewAs } from "../../api/view-as";
import { confirm } from "../../components/confirm-store";
import { CopyAs } from "../../components/CopyAs";
import { NotLoaded } from "../../components/DataTable";
import { ErrorNotice } from "../../components/ErrorState";
import { Menu } from "../../components/floating";
import { Page } from "../../components/Page";
import { PartNotLoaded } from "../../components/PartNotLoaded";
import { later } from "../../components/later";
import { told } from "../../components/toast";
import { usersQuery } from "../users/users";
import { EffectiveRights } from "./EffectiveRights";
import { type ExplainChoice, explainBody } from "./explain/explain";
import { GrantGrid } from "./GrantGrid";
import { isLimited, normal, refusalOf, roleQuery } from "./roles";
import classes from "./Roles.module.css";

const Conditions = later(() => import("./conditions/Conditions").then((loaded) => loaded.Conditions));
const Explain = later(() => import("./explain/Explain").then((loaded) => loaded.Explain));

const SEEDED = new Set(["admin", "public", "anonymous"]);

/** One role: its grants, its effective rights, its users, and an explanation why they can see a record. */
export function RoleScreen() {
  const { role: id } = useParams({ from: "/roles/$role" });
  const { tab = "grants", q = "", user, object, action, record } = useSearch({ from: "/roles/$role" });
  const navigate = useNavigate({ from: "/roles/$role" });
  const cache = useQueryClient();
  const query = useQuery(roleQuery(id));
  const role = query.data;
  const canUpdate = useCan("roles", "update");
  const canDelete = useCan("roles", "delete");
  const isEnforced = usePermissions()?.enforced === true;
  const [readsRoles, readsUsers, isViewing] = [useCan("roles", "read"), useCan("users", "read", "all"), useViewAs() !== null];
  // The request is a POST, which the console does not send while the person views it as a role.
  const mayExplain = readsRoles && readsUsers && !isViewing;
  const choice: ExplainChoice = { user, object, action, record };
  const asked = tab === "explain" ? explainBody(choice) : undefined;
  const [grants, setGrants] = useState<Grant[]>();
  const stored = role?.permissions;
  useEffect(() => setGrants(undefined), [stored]);
  const shown = grants ?? stored;
  const isChanged = grants !== undefined && stored !== undefined && !sameJson(normal(grants), normal(stored));
  const params = { path: { id } };
  const path = `/api/v1/roles/${id}`;
  const save = useMutation({
    mutationFn: (permissions: Grant[]) => api.PATCH("/api/v1/roles/{id}", { params, body: { permissions } }),
    onSuccess: async () => {
      await Promise.all([cache.invalidateQueries({ queryKey: ["roles"] }), cache.invalidateQueries({ queryKey: ["me", "permissions"] })]);
      told(`The role ${role!.name} is saved. It holds at once.`);
    },
  });
  const remove = useMutation({
    mutationFn: () => api.DELETE("/api/v1/roles/{id}", { params }),
    onSuccess: async () => {
      await navigate({ to: "/roles" });
      await cache.invalidateQueries({ queryKey: ["roles"] });
      told(`The role ${role!.name} is deleted.`);
    },
  });
  const users = useQuery({ ...usersQuery({ role: role?.name, page: 1 }), enabled: role !== undefined && tab === "users" });
  if (role === undefined || shown === undefined)
    return (
      <Page title="Role" crumbs={[{ label: "Roles", link: linkOptions({ to: "/roles" }) }]}>
        <NotLoaded query={query} what="The role" rows={12} />
      </Page>
    );
  const onChange = canUpdate && role.name !== "admin" ? setGrants : undefined;
  const tabLink = (to: "grants" | "effective" | "users" | "explain") => linkOptions({ to: "/roles/$role", params: { role: id }, search: to === "grants" ? {} : { tab: to } });
  return (
    <Page
      title={role.name}
      crumbs={[{ label: "Roles", link: linkOptions({ to: "/roles" }) }]}
      tabs={[
        { label: "Grants", link: tabLink("grants"), active: tab === "grants" },
        { label: "Effective rights", link: tabLink("effective"), active: tab === "effective" },
        { label: "Users", link: tabLink("users"), active: tab === "users" },
        ...(mayExplain ? [{ label: "Explain", link: tabLink("explain"), active: tab === "explain" }] : []),
      ]}
      actions={
        <>
          <CopyAs
            request={
              asked !== undefined
                ? { method: "POST", path: `${path}/explain`, body: asked }
                : isChanged
                  ? { method: "PATCH", path, body: { permissions: normal(grants) } }
                  : { method: "GET", path: tab === "effective" ? `${path}/permissions` : path }
            }
          />
          {isEnforced && (
            <Button
              variant="default"
              leftSection={<IconEye size={14} />}
              onClick={() => {
                viewAs.begin({ id: role.id, name: role.name });
                void navigate({ to: "/" });
              }}
            >
              View as this role
            </Button>
          )}
          {isChanged && (
            <>
              <Button variant="subtle" onClick={() => setGrants(undefined)}>
                Discard
              </Button>
              <Button loading={save.isPending} onClick={() => save.mutate(normal(grants))}>
                Save role
              </Button>
            </>
          )}
          {canDelete && !SEEDED.has(role.name) && (
            <Menu>
              <Menu.Target>
                <Button variant="default" px={6} aria-label="More">
                  <IconDots size={16} />
                </Button>
              </Menu.Target>
              <Menu.Dropdown>
                <Menu.Item
                  color="red"
                  onClick={async () => {
                    if (await confirm({ title: `Delete the role ${role.name}?`, children: "Users lose it, and its API keys stop working.", action: "Delete role", danger: true })) remove.mutate();
                  }}
                >
                  Delete role
                </Menu.Item>
              </Menu.Dropdown>
            </Menu>
          )}
        </>
      }
    >
      <div className={classes.page}>
        {(save.error ?? remove.error) !== null && <ErrorNotice error={save.error ?? remove.error} title="The role is as it was" />}
        {role.description !== null && (
          <p className="dim" dir="auto">
            {role.description}
          </p>
        )}
        {tab === "grants" && (
          <>
            <GrantGrid role={id} grants={shown} onChange={onChange} q={q} onSearch={(value) => void navigate({ search: (before) => ({ ...before, q: value || undefined }), replace: true })} aside={<ConditionsBelow grants={shown} />} />
            <Conditions grants={shown} onChange={onChange} refusal={save.variables === undefined ? undefined : refusalOf(save.error, save.variables)} />
          </>
        )}
        {tab === "effective" && <EffectiveRights role={id} />}
        {tab === "explain" && <Explain role={id} choice={choice} isChanged={isChanged} readsUsers={readsUsers} onChoose={(chosen) => void navigate({ search: { tab: "explain", ...chosen }, replace: true })} />}
        {tab === "users" &&
          (users.data === undefined ? (
            <PartNotLoaded query={users} what="The users" />
          ) : users.data.data.length === 0 ? (
            <p className="dim">{role.name === "public" ? "Everybody has this role, also without an account." : role.name === "anonymous" ? "Every guest has this role." : "No user has this role."}</p>
          ) : (
            <>
              <ul className={classes.users}>
                {users.data.data.map((user) => (
                  <li key={user.id}>
                    <Link to="/users" search={{ open: user.id }} dir="auto">
                      {user.name || (user.isAnonymous ? "guest" : user.name === "" ? "no name" : "–")}
                    </Link>
                    <bdi className="dim">{user.email}</bdi>
                  </li>
                ))}
              </ul>
              {users.data.pagination.hasNextPage && (
                <Link to="/users" search={{ role: role.name }}>
                  All {users.data.pagination.totalCount?.toLocaleString("en")} users
                </Link>
              )}
            </>
          ))}
      </div>
    </Page>
  );
}

/** A link to the grants with conditions or fields, which are below a long table. */
function ConditionsBelow({ grants }: { grants: Grant[] }) {
  const count = grants.filter(isLimited).length;
  const broken = grants.filter((grant) => grant.broken === true).length;
  if (count === 0) return null;
  const Icon = broken > 0 ? IconAlertTriangle : IconArrowDown;
  return (
    <UnstyledButton
      className={classes.below}
      fz="inherit"
      data-broken={broken > 0 || undefined}
      onClick={() => {
        const heading = document.getElementById("conditions");
        heading?.scrollIntoView({ block: "start" });
        heading?.focus({ preventScroll: true });
      }}
    >
      <Icon size={14} aria-hidden="true" />
      {quantity(count, "grant")} with conditions or fields
      {broken > 0 && `, ${broken.toLocaleString("en")} broken`}
    </UnstyledButton>
  );
}

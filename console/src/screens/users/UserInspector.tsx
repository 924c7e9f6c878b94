import { Button, Select } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, dataOf } from "../../api/client";
import { isApiError } from "../../api/errors";
import { useRecordShape } from "../../api/record-shape";
import { useCan, useMe, usePermissions } from "../../api/session";
import type { SeenUser } from "../../api/types";
import { USERS } from "../../api/users-object";
import { confirm } from "../../components/confirm-store";
import { ErrorNotice } from "../../components/ErrorState";
import { FactList } from "../../components/FactList";
import { Id } from "../../components/Id";
import { Inspector, type PaneActions } from "../../components/Inspector";
import { StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { told } from "../../components/toast";
import { PartNotLoaded } from "../../components/PartNotLoaded";
import { dependentsOf, linksOf, sentences } from "../record/dependents";
import { SessionList } from "../account/SessionList";
import { HandOver } from "./HandOver";
import { PasswordLink } from "./PasswordLink";
import { SESSIONS_MAX, calledOf, canBeGiven, rolesQuery, userQuery } from "./users";
import classes from "../../components/Details.module.css";

/**
 * One account: its roles, its sessions, and the actions of an administrator. For a user of whom this person may read some members only,
 * what depends on the others is left out.
 */
export function UserInspector({ id, known, ...pane }: { id: string; known: SeenUser | undefined } & PaneActions) {
  const cache = useQueryClient();
  const me = useMe();
  const query = useQuery({ ...userQuery(id), ...(known === undefined ? {} : { placeholderData: known }) });
  const user = query.data;
  const isMyself = me?.userId === id;
  // A grant for the caller's own account does not include other accounts.
  const canUpdate = useCan("users", "update", isMyself ? "some" : "all");
  const canDelete = useCan("users", "delete");
  const permissions = usePermissions();
  // The relations that lead to users.
  const shape = useRecordShape(USERS).data;
  const isReferredTo = shape !== undefined && shape !== null && shape.reverse.length + shape.links.length > 0;
  const path = { id };
  const refresh = () => cache.invalidateQueries({ queryKey: ["users"] });
  const ban = useMutation({ mutationFn: (banned: boolean) => api.PATCH("/api/v1/users/{id}", { params: { path }, body: { banned } }), onSettled: refresh });
  const reset = useMutation({
    mutationFn: () => dataOf(api.POST("/api/v1/users/{id}/password-link", { params: { path } })),
    // The cache must not keep a secret.
    gcTime: 0,
  });
  const remove = useMutation({
    mutationFn: (query: { handOverTo?: string; suspend?: boolean }) => api.DELETE("/api/v1/users/{id}", { params: { path, query } }),
    onSuccess: async () => {
      pane.onClose();
      told("The user is deleted.");
      await Promise.all([refresh(), cache.invalidateQueries({ queryKey: ["data", USERS] })]);
    },
  });
  const ownsThings = isApiError(remove.error) && remove.error.code === "owns_things" ? remove.error : undefined;
  const error = ban.error ?? reset.error ?? (ownsThings === undefined ? remove.error : null);
  return (
    <Inspector
      title={user?.name || (user?.isAnonymous ? "Guest" : user?.email) || "User"}
      {...pane}
      footer={
        user !== undefined && (
          <>
            {canUpdate && user.isAnonymous === false && (
              <Button
                variant="default"
                loading={reset.isPending}
                onClick={async () => {
                  const children = "You get a link that you give to them. Once they have chosen a new password with it, the old one stops working and all of their sessions end.";
                  if (await confirm({ title: `Reset the password of ${calledOf(user)}?`, children, action: "Create link", danger: false })) reset.mutate();
                }}
              >
                Reset password
              </Button>
            )}
            {canUpdate && !isMyself && user.banned !== undefined && (
              <Button
                variant="default"
                loading={ban.isPending}
                onClick={async () => {
                  if (user.banned || (await confirm({ title: `Ban ${calledOf(user)}?`, children: "Their sessions end at once, and their keys stop. It can be taken back.", action: "Ban user", danger: true }))) ban.mutate(!user.banned);
                }}
              >
                {user.banned ? "Lift ban" : "Ban"}
              </Button>
            )}
            {canDelete && !isMyself && (
              <Button
                variant="subtle"
                color="red"
                loading={remove.isPending}
                onClick={async () => {
                  const along = isReferredTo ? sentences(...(await Promise.all([dependentsOf(shape, id), linksOf(shape, id, permissions)]))) : "";
                  const children = ["Their account, sessions and role assignments go too.", along, `${along === "" ? "Records" : "Other records"} that they created stay, with their id.`].filter(Boolean).join(" ");
                  if (await confirm({ title: `Delete ${calledOf(user)}?`, children, action: "Delete user", danger: true })) remove.mutate({});
                }}
              >
                Delete
              </Button>
            )}
          </>
        )
      }
    >
      {user === undefined ? (
        <PartNotLoaded query={query} what="The user" />
      ) : (
        <div className={classes.body}>
          {error !== null && <ErrorNotice error={error} />}
          {reset.data !== undefined && <PasswordLink key={reset.data.link} link={reset.data} email={user.email ?? calledOf(user)} />}
          {ownsThings !== undefined && <HandOver error={ownsThings} user={user} isPending={remove.isPending} onChoose={(query) => remove.mutate(query)} />}
          <FactList
            facts={{
              Email: <Shown text={user.email} />,
              State: (
                <>
                  <UserState user={user} />
                  {isMyself && <span className="dim"> this is you</span>}
                </>
              ),
              Id: <Id id={user.id} />,
              Created: <Time at={user.createdAt} exact />,
              Roles: user.roles === undefined && <Shown text={undefined} />,
              Records: isReferredTo && <Link to="/data/$object/$id" params={{ object: USERS, id }} search={{ tab: "links" }}>What refers to this user</Link>,
            }}
          />
          {user.roles !== undefined && (
            <>
              <Roles id={user.id} roles={user.roles} canUpdate={canUpdate} />
              <Sessions user={user} canUpdate={canUpdate} />
            </>
          )}
        </div>
      )}
    </Inspector>
  );
}

/** A text of a user, or a dash if this person may not read it. */
export function Shown({ text }: { text: string | null | undefined }) {
  return (text ?? null) === null ? <span className="dim">–</span> : <bdi>{text}</bdi>;
}

export function UserState({ user: { banned, isAnonymous } }: { user: SeenUser }) {
  if (banned === undefined) return <Shown text={undefined} />;
  return (
    <StatusBadge tone={banned ? "bad" : isAnonymous ? "off" : "ok"} plain>
      {banned ? "banned" : isAnonymous ? "guest" : "active"}
    </StatusBadge>
  );
}

function Roles({ id: user, roles: ofUser, canUpdate }: { id: string; roles: NonNullable<SeenUser["roles"]>; canUpdate: boolean }) {
  const cache = useQueryClient();
  const readsRoles = useCan("roles", "read");
  const { data: roles } = useQuery({ ...rolesQuery, enabled: readsRoles });
  const [chosen, setChosen] = useState<string | null>(null);
  const refresh = () => cache.invalidateQueries({ queryKey: ["users"] });
  const give = useMutation({
    mutationFn: (roleId: string) => api.POST("/api/v1/users/{id}/roles", { params: { path: { id: user } }, body: { roleId } }),
    onSuccess: () => setChosen(null),
    onSettled: refresh,
  });
  const take = useMutation({ mutationFn: (role: string) => api.DELETE("/api/v1/users/{id}/roles/{role}", { params: { path: { id: user, role } } }), onSettled: refresh });
  const given = new Set(ofUser.map(({ id }) => id));
  const others = roles?.filter(({ id, name }) => !given.has(id) && canBeGiven({ name })) ?? [];
  const error = give.error ?? take.error;
  return (
    <section>
      <h3 className={classes.head}>Roles</h3>
      {error !== null && <ErrorNotice error={error} />}
      <ul className={classes.list}>
        {ofUser.map(({ id, name }) => (
          <li key={id}>
            {readsRoles ? (
              <Link to="/roles/$role" params={{ role: id }} dir="auto">
                {name}
              </Link>
            ) : (
              <bdi>{name}</bdi>
            )}
            {canUpdate && (
              <Button variant="subtle" size="compact-xs" loading={take.isPending && take.variables === id} onClick={() => take.mutate(id)} aria-label={`Take away the role ${name}`}>
                Take away
              </Button>
            )}
          </li>
        ))}
        {ofUser.length === 0 && <li className="dim">None: only what everybody may do.</li>}
      </ul>
      {canUpdate && others.length > 0 && (
        <div className={classes.give}>
          <Select aria-label="Role to give" placeholder="Choose a role" searchable data={others.map(({ id, name }) => ({ value: id, label: name }))} value={chosen} onChange={setChosen} />
          <Button variant="default" disabled={chosen === null} loading={give.isPending} onClick={() => give.mutate(chosen!)}>
            Give role
          </Button>
        </div>
      )}
    </section>
  );
}

function Sessions({ user, canUpdate }: { user: SeenUser; canUpdate: boolean }) {
  const cache = useQueryClient();
  const { id } = user;
  const query = useQuery({
    queryKey: ["users", user.id, "sessions"],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/users/{id}/sessions", { params: { path: { id }, query: { limit: SESSIONS_MAX } }, signal })),
  });
  const sessions = query.data;
  const end = useMutation({
    mutationFn: async (session: string | undefined) => {
      if (session === undefined) await api.DELETE("/api/v1/users/{id}/sessions", { params: { path: { id } } });
      else await api.DELETE("/api/v1/users/{id}/sessions/{session}", { params: { path: { id, session } } });
    },
    onSettled: () => cache.invalidateQueries({ queryKey: ["users", user.id, "sessions"] }),
  });
  return (
    <section>
      <h3 className={classes.head}>
        Sessions
        {canUpdate && sessions !== undefined && sessions.length > 1 && (
          <Button
            variant="subtle"
            size="compact-xs"
            loading={end.isPending && end.variables === undefined}
            onClick={async () => {
              if (await confirm({ title: `End all ${sessions.length} sessions?`, children: "Open pages and streams end at once. The person can sign in again.", action: "End sessions", danger: true })) end.mutate(undefined);
            }}
          >
            End all
          </Button>
        )}
      </h3>
      {end.error !== null && <ErrorNotice error={end.error} />}
      {sessions === undefined ? (
        <PartNotLoaded query={query} what="The sessions" lines={2} />
      ) : sessions.length === 0 ? (
        <p className="dim">Not signed in anywhere.</p>
      ) : (
        <SessionList sessions={sessions} canEnd={() => canUpdate} ending={end.isPending ? end.variables : undefined} onEnd={end.mutate} />
      )}
    </section>
  );
}

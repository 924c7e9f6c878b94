/** The person's own account: name, password, sessions, and the confirmation of the address. */
import { Button, Group, PasswordInput, Switch, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { auth } from "../../api/auth";
import { type ApiError, isApiError } from "../../api/errors";
import { instanceQuery, meQuery, useMe } from "../../api/session";
import { RestOfError, errorAt } from "../../components/AccountFields";
import { useSignOut } from "../../components/AccountMenu";
import { confirm } from "../../components/confirm-store";
import { CopyAs } from "../../components/CopyAs";
import { ErrorNotice } from "../../components/ErrorState";
import { FactList } from "../../components/FactList";
import { Id } from "../../components/Id";
import { Page } from "../../components/Page";
import { SkeletonLines } from "../../components/Skeleton";
import { StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { failed, told } from "../../components/toast";
import { SessionList } from "./SessionList";
import { submits } from "../../components/submits";
import classes from "./Account.module.css";

export function AccountScreen() {
  const me = useMe();
  const signOut = useSignOut();
  return (
    <Page
      title="Your account"
      padded
      actions={
        <>
          <CopyAs request={{ method: "GET", path: "/api/v1/me" }} />
          <Button variant="default" loading={signOut.isPending} onClick={() => signOut.mutate()}>
            Sign out
          </Button>
        </>
      }
    >
      {me?.user === undefined ? (
        <SkeletonLines />
      ) : (
        <div className={classes.sections}>
          <section className={classes.section} aria-labelledby="account-name">
            <div>
              <h2 id="account-name">You</h2>
              <p>Others see your name beside what you create and change.</p>
            </div>
            <div className={classes.form}>
              <Name key={me.user.name} name={me.user.name} />
              <FactList
                facts={{
                  Email: (
                    <>
                      <bdi>{me.user.email}</bdi>
                      {!me.user.isAnonymous && <Confirmation email={me.user.email} isConfirmed={me.user.emailVerified} />}
                    </>
                  ),
                  Roles: me.roles?.length ? <bdi>{me.roles.join(", ")}</bdi> : <span className="dim">none; somebody who may update users can give you one</span>,
                  "User id": <Id id={me.user.id} />,
                  Since: <Time at={me.user.createdAt} />,
                }}
              />
            </div>
          </section>
          {!me.user.isAnonymous && (
            <section className={classes.section} aria-labelledby="account-password">
              <div>
                <h2 id="account-password">Password</h2>
                <p>8 to 128 characters, and not a common one.</p>
              </div>
              <Password email={me.user.email} />
            </section>
          )}
          <section className={classes.section} aria-labelledby="account-sessions">
            <div>
              <h2 id="account-sessions">Sessions</h2>
              <p>Where you are signed in. A session that you end stops at once, open pages included.</p>
            </div>
            <Sessions />
          </section>
        </div>
      )}
    </Page>
  );
}

function Name({ name }: { name: string }) {
  const [value, setValue] = useState(name);
  const cache = useQueryClient();
  const save = useMutation<unknown, ApiError>({
    mutationFn: () => auth.updateName(value.trim()),
    onSuccess: async () => {
      await cache.invalidateQueries({ queryKey: meQuery.queryKey, exact: true });
      told("Your name is changed.");
    },
  });
  return (
    <form className={classes.row} onSubmit={submits(() => save.mutate())}>
      <TextInput label="Name" value={value} onChange={(event) => setValue(event.currentTarget.value)} error={save.error?.message} autoComplete="name" required withAsterisk={false} />
      <Button type="submit" variant="default" disabled={value.trim() === name || value.trim() === ""} loading={save.isPending}>
        Save name
      </Button>
    </form>
  );
}

/** Shows whether the address is confirmed, with a button to get a link that confirms it. */
function Confirmation({ email, isConfirmed }: { email: string; isConfirmed: boolean }) {
  const cache = useQueryClient();
  const sendsMail = useQuery(instanceQuery).data?.mail === true;
  // The link opens in another tab, so this tab checks again when it gets the focus.
  useQuery({ ...meQuery, refetchOnWindowFocus: isConfirmed ? true : "always" });
  const send = useMutation<unknown, ApiError>({
    mutationFn: () => auth.sendVerification(email, "/admin/account"),
    onSuccess: () => told(`A mail with a link was sent to ${email}.`),
    onError: (error) => {
      if (isApiError(error) && error.code === "EMAIL_ALREADY_VERIFIED") void cache.invalidateQueries({ queryKey: meQuery.queryKey, exact: true });
      else failed("No mail was sent", error);
    },
  });
  return (
    <Group gap="4px 12px" mt="xs">
      <StatusBadge tone={isConfirmed ? "ok" : "off"} plain>
        {isConfirmed ? "confirmed" : "not confirmed"}
      </StatusBadge>
      {!isConfirmed && sendsMail && (
        <Button variant="default" size="compact-xs" loading={send.isPending} onClick={() => send.mutate()}>
          Send a link to confirm
        </Button>
      )}
    </Group>
  );
}

function Password({ email }: { email: string }) {
  const [currentPassword, setCurrent] = useState("");
  const [newPassword, setNew] = useState("");
  const [revokeOtherSessions, setRevoke] = useState(true);
  const cache = useQueryClient();
  const change = useMutation<unknown, ApiError>({
    mutationFn: () => auth.changePassword({ currentPassword, newPassword, revokeOtherSessions }),
    onSuccess: async () => {
      setCurrent("");
      setNew("");
      await cache.invalidateQueries({ queryKey: ["me", "sessions"] });
      told(revokeOtherSessions ? "Your password is changed, and your other sessions have ended." : "Your password is changed.");
    },
  });
  const newProblem = errorAt(change.error, "password") ?? errorAt(change.error, "newPassword");
  return (
    <form className={classes.form} onSubmit={submits(() => change.mutate())}>
      {/* Password managers need to know which account the password belongs to. */}
      <input type="hidden" name="username" autoComplete="username" value={email} readOnly />
      <PasswordInput
        label="Current password"
        autoComplete="current-password"
        value={currentPassword}
        onChange={(event) => setCurrent(event.currentTarget.value)}
        error={errorAt(change.error, "currentPassword")}
        aria-invalid={errorAt(change.error, "currentPassword") !== undefined}
        visibilityToggleButtonProps={{ "aria-label": "Show the current password" }}
        required
        withAsterisk={false}
      />
      <PasswordInput
        label="New password"
        autoComplete="new-password"
        value={newPassword}
        onChange={(event) => setNew(event.currentTarget.value)}
        error={newProblem}
        aria-invalid={newProblem !== undefined}
        visibilityToggleButtonProps={{ "aria-label": "Show the new password" }}
        minLength={8}
        maxLength={128}
        required
        withAsterisk={false}
      />
      <Switch label="End my other sessions" checked={revokeOtherSessions} onChange={(event) => setRevoke(event.currentTarget.checked)} />
      <RestOfError error={change.error} fields={["currentPassword", "password", "newPassword"]} />
      <div>
        <Button type="submit" loading={change.isPending} disabled={currentPassword === "" || newPassword === ""}>
          Change password
        </Button>
      </div>
    </form>
  );
}

function Sessions() {
  const cache = useQueryClient();
  const sessions = useQuery({ queryKey: ["me", "sessions"], queryFn: () => auth.sessions() });
  const again = () => cache.invalidateQueries({ queryKey: ["me", "sessions"] });
  const revoke = useMutation({ mutationFn: (id: string) => auth.revokeSession(id), onSettled: again, onError: (error) => failed("The session goes on", error) });
  const revokeOthers = useMutation({ mutationFn: () => auth.revokeOtherSessions(), onSettled: again, onError: (error) => failed("Your other sessions go on", error) });
  if (sessions.isError) return <ErrorNotice error={sessions.error} onRetry={() => void sessions.refetch()} />;
  if (sessions.data === undefined) return <SkeletonLines lines={2} />;
  const others = sessions.data.filter(({ current }) => !current).length;
  const newestFirst = sessions.data.toSorted((one, other) => Number(other.current) - Number(one.current) || other.updatedAt.localeCompare(one.updatedAt));
  return (
    <div className={classes.form}>
      <SessionList sessions={newestFirst} canEnd={({ current }) => !current} ending={revoke.isPending ? revoke.variables : undefined} onEnd={revoke.mutate} />
      {others > 0 && (
        <div>
          <Button
            variant="default"
            loading={revokeOthers.isPending}
            onClick={async () => {
              const agreed = await confirm({ title: "End your other sessions?", children: `${others} ${others === 1 ? "session ends" : "sessions end"} at once. This one goes on.`, action: others === 1 ? "End the session" : `End ${others} sessions` });
              if (agreed) revokeOthers.mutate();
            }}
          >
            End all others
          </Button>
        </div>
      )}
    </div>
  );
}

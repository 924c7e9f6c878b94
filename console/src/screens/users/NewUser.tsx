import { MultiSelect, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, ok } from "../../api/client";
import { isApiError } from "../../api/errors";
import { instanceQuery, useCan } from "../../api/session";
import { ErrorNotice } from "../../components/ErrorState";
import { FormInspector } from "../../components/FormInspector";
import { Ticked } from "../../components/Ticked";
import { MAIL } from "../deliveries/consumers";
import { EMPTY, bodyOf, handedOver, isTyped, problemsOf } from "./new-user";
import { PasswordLink } from "./PasswordLink";
import { canBeGiven, rolesQuery } from "./users";

/**
 * Creates an account and a link with which its owner sets a password. The server mails the link, or the page shows it. Only this component
 * has the shown link, and drops it when it closes.
 */
export function NewUser({ onClose }: { onClose: () => void }) {
  const cache = useQueryClient();
  const readsRoles = useCan("roles", "read");
  const roles = useQuery({ ...rolesQuery, enabled: readsRoles });
  const readsEvents = useCan("events", "read");
  const sendsMail = useQuery(instanceQuery).data?.mail === true;
  const [draft, setDraft] = useState(EMPTY);
  const change = (part: Partial<typeof draft>) => setDraft((before) => ({ ...before, ...part }));
  const create = useMutation({
    mutationFn: () => ok(api.POST("/api/v1/users", { body: bodyOf(draft) })),
    onSuccess: () => cache.invalidateQueries({ queryKey: ["users"] }),
    // The cache must not keep a secret.
    gcTime: 0,
  });
  const { data: result } = create;
  const link = result?.link;
  // The answer lacks the address if the caller may read the user, but not the address.
  const email = result?.data.email ?? draft.email.trim();
  const expiresAt = result?.linkExpiresAt;
  const made = result && {
    title: "User created",
    onDone: onClose,
    content: (
      <>
        {link === undefined || expiresAt === undefined ? (
          <p role="status">
            A mail with a link was sent to <bdi>{email}</bdi>.
          </p>
        ) : (
          <>
            <PasswordLink link={{ link, expiresAt }} email={email} />
            <p>
              <Ticked text={handedOver(sendsMail)} />
            </p>
          </>
        )}
        <p className="dim">They choose a password with it, and then sign in. If it expires before, reset the password of the user to get a new link.</p>
        {link === undefined && readsEvents && (
          <p className="dim">
            <Link to="/deliveries" search={{ consumer: MAIL }}>
              Deliveries of mail
            </Link>{" "}
            show whether the mail server has taken it.
          </p>
        )}
      </>
    ),
  };
  const error = isApiError(create.error) ? create.error : null;
  const problems = problemsOf(error);
  const isAtField = problems.email !== undefined || problems.name !== undefined || (readsRoles && problems.roles !== undefined);
  return (
    <FormInspector
      title="New user"
      onClose={onClose}
      isDirty={isTyped(draft)}
      action="Create user"
      isWhole={draft.email.trim() !== ""}
      request={create}
      made={made}
      error={isAtField ? null : create.error}
    >
      {roles.error !== null && <ErrorNotice error={roles.error} title="The roles could not be loaded" onRetry={() => void roles.refetch()} />}
      <TextInput label="Email" type="email" description="They sign in with it" autoComplete="off" required value={draft.email} error={problems.email} onChange={({ currentTarget }) => change({ email: currentTarget.value })} autoFocus />
      <TextInput label="Name" autoComplete="off" value={draft.name} error={problems.name} onChange={({ currentTarget }) => change({ name: currentTarget.value })} />
      {readsRoles && (
        <MultiSelect
          label="Roles"
          description="What they may do; never more than you may"
          searchable
          hidePickedOptions
          size="xs"
          placeholder={draft.roles.length === 0 ? "Choose roles" : ""}
          nothingFoundMessage="No role matches"
          data={roles.data?.filter(canBeGiven).map(({ id, name }) => ({ value: id, label: name })) ?? []}
          value={draft.roles}
          error={problems.roles}
          onChange={(chosen) => change({ roles: chosen })}
        />
      )}
      <p className="dim">{sendsMail ? "They get a mail with a link, and choose a password with it." : "You get a link that you give to them. They choose a password with it."}</p>
    </FormInspector>
  );
}

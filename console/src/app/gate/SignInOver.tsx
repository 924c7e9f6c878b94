import { Modal } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { auth } from "../../api/auth";
import type { ApiError } from "../../api/errors";
import { meQuery } from "../../api/session";
import { signedInAgain } from "../../api/session-lost";
import type { Me } from "../../api/types";
import { later } from "../../components/later";
import { EmailField, PasswordField, RestOfError, SubmitButton, errorAt, isUnconfirmed } from "../../components/AccountFields";
import classes from "./Gate.module.css";

const ConfirmAddress = later(() => import("./ConfirmAddress").then((loaded) => loaded.ConfirmAddress));

/**
 * The sign-in over an open page whose session has ended. The text that the person typed stays in the page below, and they continue after
 * the sign-in.
 */
export default function SignInOver({ me }: { me: Me }) {
  const [password, setPassword] = useState("");
  const cache = useQueryClient();
  const email = me.user?.email ?? "";
  const enter = useMutation<unknown, ApiError>({
    mutationFn: async () => {
      await auth.signIn({ email, password });
      await cache.refetchQueries({ queryKey: meQuery.queryKey, exact: true });
      signedInAgain();
    },
  });
  return (
    <Modal opened onClose={() => {}} withCloseButton={false} closeOnEscape={false} closeOnClickOutside={false} title="Your session has ended" centered size="sm" zIndex={400}>
      <form
        className={classes.form}
        onSubmit={(event) => {
          event.preventDefault();
          enter.mutate();
        }}
      >
        <p className={classes.lead} style={{ margin: 0 }}>
          Sign in to go on. What you typed is still there.
        </p>
        <EmailField value={email} onChange={() => {}} readOnly />
        <PasswordField value={password} onChange={setPassword} error={errorAt(enter.error, "password")} autoFocus />
        <RestOfError error={isUnconfirmed(enter.error) ? null : enter.error} fields={["password"]} />
        <SubmitButton error={enter.error} busy={enter.isPending}>
          Sign in
        </SubmitButton>
        <button type="button" className={classes.link} onClick={() => location.reload()}>
          Sign in as somebody else
        </button>
      </form>
      {isUnconfirmed(enter.error) && (
        <section className={classes.form} style={{ marginTop: 16 }}>
          <p className={classes.told} role="alert">
            Confirm your address: a mail with a link was sent to <bdi>{email}</bdi>. Then sign in here.
          </p>
          <ConfirmAddress email={email} />
        </section>
      )}
    </Modal>
  );
}

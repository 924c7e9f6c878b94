import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { auth } from "../../api/auth";
import { ApiError, isApiError } from "../../api/errors";
import { forgetAll, instanceQuery, meQuery, useMe } from "../../api/session";
import { sessionEstablished } from "../../api/session-lost";
import { PasswordField, errorAt } from "../../components/AccountFields";
import { GateForm } from "./GateForm";
import { leaveFarewell } from "./farewell";
import { GatePage } from "./GatePage";
import { useLinkToken } from "./link-token";
import classes from "./Gate.module.css";

/**
 * The page of a link to set a password. A mail or an administrator gives this link. The person chooses a password and then signs in with
 * it. The page needs no session.
 */
export function SetPassword() {
  const token = useLinkToken();
  const [refused, setRefused] = useState<string | null>(null);
  const sendsMail = useQuery(instanceQuery).data?.mail === true;
  if (token === null)
    return (
      <WithoutForm title="Open your link again">
        This page works with the link that you got. Open that link again: the page forgets it when it is reloaded.
      </WithoutForm>
    );
  if (token === refused)
    return (
      <WithoutForm title="This link does not work">
        {`It was used already, it has expired, or a part of it is missing. ${sendsMail ? "“Forgot password?” on the sign-in page sends you another one." : "Somebody who may update users can give you a new one."}`}
      </WithoutForm>
    );
  return <Choose key={token} token={token} onRefused={() => setRefused(token)} />;
}

function WithoutForm({ title, children }: { title: string; children: string }) {
  const isSignedIn = useMe()?.authenticated === true;
  return (
    <GatePage title={title} lead={children}>
      <Link to="/" replace className={classes.link}>
        {isSignedIn ? "Go to the console" : "Go to the sign-in"}
      </Link>
    </GatePage>
  );
}

function Choose({ token, onRefused }: { token: string; onRefused: () => void }) {
  const me = useMe();
  const isSignedIn = me?.authenticated === true;
  const [newPassword, setNewPassword] = useState("");
  const [again, setAgain] = useState("");
  const navigate = useNavigate();
  const cache = useQueryClient();
  const choose = useMutation<unknown, ApiError>({
    mutationFn: async () => {
      if (newPassword !== again) throw new ApiError(400, "PASSWORDS_DIFFER", "The two passwords differ. Type the same twice.", { field: "again" });
      await auth.resetPassword({ newPassword, token });
      // The person who is signed in here may not be the one who got the link.
      const { authenticated } = await cache.ensureQueryData(meQuery).catch(() => ({ authenticated: true }));
      if (authenticated) await auth.signOut().catch(() => undefined);
      sessionEstablished(false);
      cache.setQueryData(meQuery.queryKey, { authenticated: false });
      forgetAll(cache);
      leaveFarewell("Your password is set. Sign in with it.");
      await navigate({ to: "/", replace: true });
    },
    onError: (error) => {
      if (isApiError(error) && error.code === "INVALID_TOKEN") onRefused();
    },
  });
  const { error } = choose;
  return (
    <GatePage
      title="Choose a password"
      lead={
        <>
          Then sign in with your email address and this password. The link works once.
          {isSignedIn && (
            <>
              {" "}
              <bdi>{me.user?.email ?? "Somebody"}</bdi> is signed in here, and will be signed out.
            </>
          )}
        </>
      }
    >
      <GateForm request={choose} fields={["newPassword", "password", "again"]} action="Set password">
        <PasswordField label="New password" name="new-password" value={newPassword} onChange={setNewPassword} error={errorAt(error, "newPassword") ?? errorAt(error, "password")} isNew autoFocus />
        <PasswordField label="New password again" name="again" value={again} onChange={setAgain} error={errorAt(error, "again")} isRepeated />
      </GateForm>
    </GatePage>
  );
}

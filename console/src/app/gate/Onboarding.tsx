import { TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../api/client";
import { ApiError } from "../../api/errors";
import { auth } from "../../api/auth";
import { meQuery, useMe } from "../../api/session";
import { PasswordField, errorAt } from "../../components/AccountFields";
import { GateForm } from "./GateForm";
import { leaveFarewell } from "./farewell";
import { GatePage } from "./GatePage";
import { useSignedIn } from "./useSignedIn";
import { sessionEstablished } from "../../api/session-lost";

const LOST = "Somebody else has taken this account over with the first password. Sign in with an account of your own, or ask them.";

/** Gives the admin account that was configured at the start of the server a name and a password of its own. */
export function Onboarding() {
  const me = useMe();
  const { to } = useSearch({ from: "/onboarding" });
  const [name, setName] = useState("");
  const [newPassword, setNewPassword] = useState("");
  const [again, setAgain] = useState("");
  const navigate = useNavigate();
  const cache = useQueryClient();
  const signedIn = useSignedIn();
  const claim = useMutation<unknown, ApiError>({
    mutationFn: async () => {
      if (newPassword !== again) throw new ApiError(400, "PASSWORDS_DIFFER", "The two passwords differ. Type the same twice.", { field: "again" });
      // If the session has ended, another person has claimed the account, and a new sign-in would not help. So a 401 must not open the
      // sign-in here.
      sessionEstablished(false);
      try {
        await api.POST("/api/v1/admin/claim", { body: { name, newPassword } });
      } catch (error) {
        if (!(error instanceof ApiError) || (error.status !== 409 && error.status !== 401)) throw error;
        leaveFarewell(LOST);
        if (error.status === 409) await auth.signOut().catch(() => undefined);
        cache.setQueryData(meQuery.queryKey, { authenticated: false });
        await signedIn();
        return;
      }
      await signedIn();
      await navigate({ to: to ?? "/", replace: true });
    },
  });
  const error = claim.error;
  return (
    <GatePage
      title="Make this account yours"
      lead={
        <>
          You signed in as {me?.user?.email} with the password that the server was started with. Choose your own; the first one stops working.
        </>
      }
    >
      <GateForm request={claim} fields={["name", "newPassword", "password", "again"]} action="Take over the account">
        <TextInput size="sm" label="Your name" name="name" autoComplete="name" required withAsterisk={false} value={name} onChange={(event) => setName(event.currentTarget.value)} error={errorAt(error, "name")} autoFocus />
        <PasswordField label="New password" name="new-password" value={newPassword} onChange={setNewPassword} error={errorAt(error, "newPassword") ?? errorAt(error, "password")} isNew />
        <PasswordField label="New password again" name="again" value={again} onChange={setAgain} error={errorAt(error, "again")} isRepeated />
      </GateForm>
    </GatePage>
  );
}

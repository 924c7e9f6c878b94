import { TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { auth } from "../../api/auth";
import type { ApiError } from "../../api/errors";
import { instanceQuery } from "../../api/session";
import type { Instance } from "../../api/types";
import { EmailField, PasswordField, errorAt } from "../../components/AccountFields";
import { GateForm } from "./GateForm";
import { GatePage } from "./GatePage";
import { useSignedIn } from "./useSignedIn";

/** The first page of a fresh server. The first account becomes admin. */
export function FirstRun({ instance }: { instance: Instance }) {
  const [name, setName] = useState("");
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [setupToken, setSetupToken] = useState("");
  const cache = useQueryClient();
  const signedIn = useSignedIn();
  const create = useMutation<unknown, ApiError>({
    mutationFn: async () => {
      try {
        await auth.signUp({ name, email, password, ...(instance.setupToken ? { setupToken: setupToken.trim() } : {}) });
      } catch (error) {
        // Another person may have created the first account. The page then becomes the sign-in.
        await cache.invalidateQueries({ queryKey: instanceQuery.queryKey });
        throw error;
      }
      await signedIn();
    },
  });
  const error = create.error;
  return (
    <GatePage title="Create the admin account" lead="This server is new. The first account may do everything: define objects, manage access, install blocks.">
      <GateForm request={create} fields={["name", "email", "password", "setupToken"]} action="Create admin account">
        {instance.setupToken && (
          <TextInput
            size="sm"
            label="Setup token"
            description="The server printed it when it started, or it is the value of SVC_SETUP_TOKEN."
            name="setup-token"
            autoComplete="off"
            required
            withAsterisk={false}
            value={setupToken}
            onChange={(event) => setSetupToken(event.currentTarget.value)}
            error={errorAt(error, "setupToken")}
            autoFocus
            styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
          />
        )}
        <TextInput size="sm" label="Name" name="name" autoComplete="name" required withAsterisk={false} value={name} onChange={(event) => setName(event.currentTarget.value)} error={errorAt(error, "name")} autoFocus={!instance.setupToken} />
        <EmailField value={email} onChange={setEmail} error={errorAt(error, "email")} />
        <PasswordField value={password} onChange={setPassword} error={errorAt(error, "password")} isNew />
      </GateForm>
    </GatePage>
  );
}

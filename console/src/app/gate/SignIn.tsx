import { Checkbox, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { auth } from "../../api/auth";
import type { ApiError } from "../../api/errors";
import type { Instance } from "../../api/types";
import { EmailField, PasswordField, RestOfError, SubmitButton, errorAt } from "./Fields";
import { GatePage } from "./GatePage";
import classes from "./Gate.module.css";
import { useSignedIn } from "./useSignedIn";
import { farewell } from "./farewell";

/** Sign-in, and sign-up where it is open. The address stays, so that a deep link is shown afterwards. */
export default function SignIn({ instance }: { instance: Instance }) {
  const [signsUp, setSignsUp] = useState(false);
  const [name, setName] = useState("");
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [rememberMe, setRememberMe] = useState(true);
  const signedIn = useSignedIn();
  const enter = useMutation<unknown, ApiError>({
    mutationFn: async () => {
      await (signsUp ? auth.signUp({ name, email, password }) : auth.signIn({ email, password, rememberMe }));
      await signedIn();
    },
  });
  const error = enter.error;
  return (
    <GatePage title={signsUp ? "Create an account" : "Sign in"} lead={farewell() ?? (signsUp ? "A new account sees what its roles allow." : location.host)}>
      <form
        className={classes.form}
        onSubmit={(event) => {
          event.preventDefault();
          enter.mutate();
        }}
      >
        {signsUp && (
          <TextInput size="sm" label="Name" name="name" autoComplete="name" required withAsterisk={false} value={name} onChange={(event) => setName(event.currentTarget.value)} error={errorAt(error, "name")} autoFocus />
        )}
        <EmailField value={email} onChange={setEmail} error={errorAt(error, "email")} autoFocus={!signsUp} />
        <PasswordField value={password} onChange={setPassword} error={errorAt(error, "password")} isNew={signsUp} />
        {!signsUp && <Checkbox label="Keep me signed in for 7 days" checked={rememberMe} onChange={(event) => setRememberMe(event.currentTarget.checked)} />}
        <RestOfError error={error} fields={["name", "email", "password"]} />
        <SubmitButton error={error} busy={enter.isPending}>
          {signsUp ? "Create account" : "Sign in"}
        </SubmitButton>
      </form>
      {instance.signUp && (
        <p className={classes.foot}>
          {signsUp ? "You have an account? " : "No account yet? "}
          <button
            type="button"
            className={classes.link}
            onClick={() => {
              enter.reset();
              setSignsUp(!signsUp);
            }}
          >
            {signsUp ? "Sign in" : "Create one"}
          </button>
        </p>
      )}
    </GatePage>
  );
}

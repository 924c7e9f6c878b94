import { Checkbox, TextInput } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { auth } from "../../api/auth";
import type { ApiError } from "../../api/errors";
import { meQuery } from "../../api/session";
import type { Instance } from "../../api/types";
import { later } from "../../components/later";
import { EmailField, PasswordField, errorAt, isUnconfirmed } from "../../components/AccountFields";
import { GateForm } from "./GateForm";
import { GatePage } from "./GatePage";
import classes from "./Gate.module.css";
import { useSignedIn } from "./useSignedIn";
import { farewell } from "./farewell";
import { forgetRefusedLink, useRefusedLink } from "./refused-link";

const AskForMail = later(() => import("./AskForMail").then((loaded) => loaded.AskForMail));
const ConfirmAddress = later(() => import("./ConfirmAddress").then((loaded) => loaded.ConfirmAddress));

/** `waits`: the person has to confirm their address first. `reset` and `confirm` ask for a mail. */
type Stage = "signIn" | "signUp" | "waits" | "reset" | "confirm";

/** Sign-in, and sign-up if it is open. The address in the browser does not change, so a deep link opens after the sign-in. */
export function SignIn({ instance }: { instance: Instance }) {
  const [stage, setStage] = useState<Stage>("signIn");
  const [name, setName] = useState("");
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [rememberMe, setRememberMe] = useState(true);
  const isRefused = useRefusedLink();
  const signedIn = useSignedIn();
  const signsUp = stage === "signUp";
  // The link in the mail opens in another tab and signs in this browser.
  useQuery({ ...meQuery, refetchOnWindowFocus: stage === "waits" ? "always" : true });
  const enter = useMutation<unknown, ApiError>({
    mutationFn: async () => {
      try {
        const { token } = await (signsUp ? auth.signUp({ name, email, password }) : auth.signIn({ email, password, rememberMe }));
        if (token === null) return setStage("waits");
      } catch (error) {
        if (isUnconfirmed(error)) return setStage("waits");
        throw error;
      }
      forgetRefusedLink();
      await signedIn();
    },
  });
  const error = enter.error;
  const go = (next: Stage) => {
    enter.reset();
    setStage(next);
  };

  if (stage === "reset" || stage === "confirm")
    return (
      <AskForMail
        kind={stage}
        known={email}
        onBack={(typed) => {
          setEmail(typed);
          if (stage === "confirm") forgetRefusedLink();
          go("signIn");
        }}
      />
    );
  if (stage === "waits")
    return (
      <GatePage
        title="Confirm your address"
        lead={
          <>
            A mail with a link was sent to <bdi>{email}</bdi>. You can sign in once you have opened it.
          </>
        }
      >
        <ConfirmAddress email={email} />
        <p className={classes.foot}>
          <button type="button" className={classes.link} onClick={() => go("signIn")}>
            Back to the sign-in
          </button>
        </p>
      </GatePage>
    );
  const refusal = (
    <>
      The link is no longer valid: it was used already, or it has expired. If you have used it, sign in.{" "}
      {instance.mail && (
        <button type="button" className={classes.link} onClick={() => go("confirm")}>
          Send another link
        </button>
      )}
    </>
  );
  return (
    <GatePage title={signsUp ? "Create an account" : "Sign in"} lead={isRefused && !signsUp ? refusal : (farewell() ?? (signsUp ? "A new account sees what its roles allow." : location.host))}>
      <GateForm request={enter} fields={["name", "email", "password"]} action={signsUp ? "Create account" : "Sign in"}>
        {signsUp && (
          <TextInput size="sm" label="Name" name="name" autoComplete="name" required withAsterisk={false} value={name} onChange={(event) => setName(event.currentTarget.value)} error={errorAt(error, "name")} autoFocus />
        )}
        <EmailField value={email} onChange={setEmail} error={errorAt(error, "email")} autoFocus={!signsUp} />
        <PasswordField value={password} onChange={setPassword} error={errorAt(error, "password")} isNew={signsUp} />
        {!signsUp && (
          <div className={classes.between}>
            <Checkbox label="Keep me signed in for 7 days" checked={rememberMe} onChange={(event) => setRememberMe(event.currentTarget.checked)} />
            {instance.mail && (
              <button type="button" className={classes.link} onClick={() => go("reset")}>
                Forgot password?
              </button>
            )}
          </div>
        )}
      </GateForm>
      {instance.signUp && (
        <p className={classes.foot}>
          {signsUp ? "You have an account? " : "No account yet? "}
          <button type="button" className={classes.link} onClick={() => go(signsUp ? "signIn" : "signUp")}>
            {signsUp ? "Sign in" : "Create one"}
          </button>
        </p>
      )}
      {!instance.mail && !signsUp && <p className={classes.foot}>Forgot your password? An administrator can give you a link.</p>}
    </GatePage>
  );
}

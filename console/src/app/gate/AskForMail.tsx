import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { auth } from "../../api/auth";
import type { ApiError } from "../../api/errors";
import { EmailField, errorAt } from "../../components/AccountFields";
import { GateForm } from "./GateForm";
import { GatePage } from "./GatePage";
import classes from "./Gate.module.css";

/** The purpose of the link in the mail. */
export type MailKind = "reset" | "confirm";

const WORDS: Record<MailKind, { title: string; lead: string; done: string; send: (email: string) => Promise<unknown> }> = {
  reset: {
    title: "Forgot your password?",
    lead: "Type the address of your account. You get a mail with a link to choose another password.",
    done: "If an account has this address, a mail with a link is on its way.",
    send: auth.requestPasswordReset,
  },
  confirm: {
    title: "Confirm your address",
    lead: "Type the address of your account. You get a mail with another link.",
    done: "If an account has this address, and it is not confirmed yet, a mail with a link is on its way.",
    send: (email) => auth.sendVerification(email),
  },
};

/** Asks for an address and lets the server send a mail to it. The page shows the same text whether or not an account has the address. */
export function AskForMail({ kind, known, onBack }: { kind: MailKind; known: string; onBack: (email: string) => void }) {
  const [email, setEmail] = useState(known);
  const { title, lead, done, send } = WORDS[kind];
  const ask = useMutation<unknown, ApiError>({ mutationFn: () => send(email) });
  const { error } = ask;
  return (
    <GatePage title={ask.isSuccess ? "Look into your mail" : title} lead={ask.isSuccess ? done : lead}>
      {ask.isSuccess ? (
        <p className={classes.note}>If no mail comes, look among your spam. One address gets at most five mails an hour.</p>
      ) : (
        <GateForm request={ask} fields={["email"]} action="Send link">
          <EmailField value={email} onChange={setEmail} error={errorAt(error, "email")} autoFocus />
        </GateForm>
      )}
      <p className={classes.foot}>
        <button type="button" className={classes.link} onClick={() => onBack(email)}>
          Back to the sign-in
        </button>
      </p>
    </GatePage>
  );
}

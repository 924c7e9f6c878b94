import { useMutation } from "@tanstack/react-query";
import { auth } from "../../api/auth";
import type { ApiError } from "../../api/errors";
import { GateForm } from "./GateForm";
import classes from "./Gate.module.css";

/**
 * For a person who cannot sign in before they have confirmed their address. The server has already sent a mail. This form sends it again.
 */
export function ConfirmAddress({ email }: { email: string }) {
  const send = useMutation<unknown, ApiError>({ mutationFn: () => auth.sendVerification(email) });
  return (
    <GateForm request={send} fields={[]} action="Send again">
      <p className={classes.note}>Open the link in the browser in which you signed up. If you open it elsewhere, your password ends, and you choose another one with “Forgot password?”.</p>
      <p className={classes.note}>If no mail comes, look among your spam. One address gets at most five mails an hour.</p>
      {send.isSuccess && (
        <p className={classes.told} role="status">
          Another mail is on its way.
        </p>
      )}
    </GateForm>
  );
}

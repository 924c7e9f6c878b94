import type { ReactNode } from "react";
import type { ApiError } from "../../api/errors";
import { RestOfError, SubmitButton } from "../../components/AccountFields";
import classes from "./Gate.module.css";

export interface GateFormProps {
  /** What the form sends. */
  request: { mutate: () => void; isPending: boolean; error: ApiError | null };
  /** The fields that show their own errors. Every other error is above the button. */
  fields: string[];
  /** The label of the button. */
  action: string;
  children: ReactNode;
}

export function GateForm({ request, fields, action, children }: GateFormProps) {
  return (
    <form
      className={classes.form}
      onSubmit={(event) => {
        event.preventDefault();
        request.mutate();
      }}
    >
      {children}
      <RestOfError error={request.error} fields={fields} />
      <SubmitButton error={request.error} busy={request.isPending}>
        {action}
      </SubmitButton>
    </form>
  );
}

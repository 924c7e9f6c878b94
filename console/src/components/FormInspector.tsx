import { Button } from "@mantine/core";
import { type ReactNode, useId } from "react";
import { ErrorNotice } from "./ErrorState";
import { Inspector } from "./Inspector";
import { submits } from "./submits";
import classes from "./Details.module.css";

export interface FormInspectorProps {
  title: string;
  onClose: () => void;
  /** Whether the form has text that is not saved. */
  isDirty: boolean;
  /** The label of the button, such as "Create role". */
  action: string;
  /** Whether the form has all that the request needs. */
  isWhole: boolean;
  /** What the form sends. */
  request: { mutate: () => void; isPending: boolean };
  /** The error of the request. Null if there is none, or if a field shows it. */
  error: unknown;
  children: ReactNode;
}

/** The right pane with a form that creates something. */
export function FormInspector({ title, onClose, isDirty, action, isWhole, request, error, children }: FormInspectorProps) {
  const id = useId();
  return (
    <Inspector
      title={title}
      onClose={onClose}
      isDirty={isDirty}
      footer={
        <Button type="submit" form={id} disabled={!isWhole} loading={request.isPending}>
          {action}
        </Button>
      }
    >
      <form id={id} className={classes.body} onSubmit={submits(() => request.mutate())}>
        {error !== null && <ErrorNotice error={error} />}
        {children}
      </form>
    </Inspector>
  );
}

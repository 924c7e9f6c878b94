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
  /** Replaces the form after the request, such as with a secret that is shown once. Absent if the pane closes then. */
  made?: { title: string; content: ReactNode; onDone: () => void } | undefined;
  children: ReactNode;
}

/** The right pane with a form that creates something. */
export function FormInspector({ title, onClose, isDirty, action, isWhole, request, error, made, children }: FormInspectorProps) {
  const id = useId();
  // Both have the same pane, which knows where the focus was before it opened.
  return (
    <Inspector
      title={made?.title ?? title}
      onClose={onClose}
      isDirty={isDirty && made === undefined}
      footer={
        made === undefined ? (
          <Button type="submit" form={id} disabled={!isWhole} loading={request.isPending}>
            {action}
          </Button>
        ) : (
          <Button onClick={made.onDone}>Done</Button>
        )
      }
    >
      {made === undefined ? (
        <form id={id} className={classes.body} onSubmit={submits(() => request.mutate())}>
          {error !== null && <ErrorNotice error={error} />}
          {children}
        </form>
      ) : (
        <div className={classes.body}>{made.content}</div>
      )}
    </Inspector>
  );
}

import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useRef, useState } from "react";
import { isApiError, messageOf } from "../api/errors";
import { CopyText } from "./Copy";
import { Ticked } from "./Ticked";
import classes from "./toast.module.css";

/** The time in which a person can undo a deletion. */
export const UNDO_MS = 8_000;

const CLOSE = { "aria-label": "Close" };

/** Shows that an action succeeded: one sentence in the past tense. */
export function told(message: string): void {
  notifications.show({ message, autoClose: 4_000, withBorder: true, closeButtonProps: CLOSE });
}

/** Shows an error outside of a form, with the server's message. It stays until the person closes it. */
export function failed(what: string, error: unknown): void {
  const requestId = isApiError(error) ? error.requestId : undefined;
  notifications.show({
    title: what,
    message: (
      <>
        <Ticked text={messageOf(error)} />
        {requestId !== undefined && (
          <div className="dim">
            Request <CopyText text={requestId} label="Copy the request id" />
          </div>
        )}
      </>
    ),
    color: "red",
    autoClose: false,
    withBorder: true,
    closeButtonProps: CLOSE,
    role: "alert",
  });
}

export interface UndoOptions {
  /** A sentence such as "Task deleted." */
  message: string;
  /** Reverts the change on the screen. */
  onUndo: () => void;
  /** Makes the change on the server. It is called once, when the time is over or the person leaves the page. */
  commit: () => Promise<void> | void;
}

/** Says what happened and offers to undo it for 8 seconds. After that, `commit` runs. */
export function undoable({ message, onUndo, commit }: UndoOptions): void {
  let settled = false;
  const finish = () => {
    if (settled) return;
    settled = true;
    removeEventListener("pagehide", finish);
    notifications.hide(id);
    void commit();
  };
  const undo = () => {
    if (settled) return;
    settled = true;
    removeEventListener("pagehide", finish);
    notifications.hide(id);
    onUndo();
  };
  const id = notifications.show({ message: <Undo message={message} onUndo={undo} />, autoClose: UNDO_MS, withBorder: true, withCloseButton: false, onClose: finish });
  addEventListener("pagehide", finish);
}

function Undo({ message, onUndo }: { message: string; onUndo: () => void }) {
  const [done, setDone] = useState(false);
  const once = useRef(false);
  return (
    <div className={classes.undo}>
      <span dir="auto">{message}</span>
      <Button
        variant="default"
        size="compact-xs"
        disabled={done}
        onClick={() => {
          if (once.current) return;
          once.current = true;
          setDone(true);
          onUndo();
        }}
      >
        Undo
      </Button>
    </div>
  );
}

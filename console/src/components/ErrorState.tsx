import { Button } from "@mantine/core";
import { IconAlertTriangle, IconLock, IconPlugConnectedX } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { isApiError, messageOf } from "../api/errors";
import { CopyText } from "./Copy";
import { Ticked } from "./Ticked";
import classes from "./States.module.css";

export interface ErrorProps {
  error: unknown;
  /** What was being done: "The roles could not be loaded". */
  title?: string;
  /** Tries again; a button is shown for it. */
  onRetry?: (() => void) | undefined;
}

/** The permission that a refusal names, such as "`read` on `events`". */
function missingPermission(message: string): string | undefined {
  return /`\w+` on `[^`]+`/.exec(message)?.[0];
}

function describe(error: unknown): { title: string; what: string; todo?: string } {
  if (!isApiError(error)) return { title: "Something in this page failed", what: messageOf(error), todo: "Reload the page. If it happens again, report it with this sentence." };
  const what = error.message;
  switch (error.status) {
    case 0:
      return { title: "The server does not answer", what, todo: "What you typed stays here." };
    case 401:
      return { title: "You are not signed in", what };
    case 403: {
      const missing = missingPermission(what);
      const who = "Somebody who may update roles can give it to you, on the Roles page.";
      return { title: missing === undefined ? "You may not do this" : `You need ${missing}`, what, todo: who };
    }
    case 404:
      return { title: "There is nothing here", what };
    case 409:
      return { title: "This conflicts with what is there", what };
    case 412:
      return { title: "Somebody changed it in the meantime", what };
    case 413:
      return { title: "This is too large", what };
    case 429:
      return { title: "Too many requests", what };
    default:
      return error.status >= 500
        ? { title: "The server failed", what, todo: "Try again. If it happens again, look for the request id in the server's log." }
        : { title: "The server refused this", what };
  }
}

/** An error inside a screen or a form: what happened, why, what to do, and the request id to copy. */
export function ErrorNotice({ error, title, onRetry }: ErrorProps) {
  const described = describe(error);
  const api = isApiError(error) ? error : undefined;
  const seconds = useCountdown(api?.retryAfterSeconds, error);
  const Icon = api?.status === 0 ? IconPlugConnectedX : api?.status === 403 ? IconLock : IconAlertTriangle;
  return (
    <div className={classes.error} role="alert" data-tone={api?.status === 403 || api?.status === 429 ? "amber" : undefined}>
      <Icon size={18} className={classes.errorIcon} aria-hidden="true" />
      <div className={classes.errorBody}>
        <div className={classes.errorTitle}>
          <Ticked text={title ?? described.title} />
        </div>
        <div>
          <Ticked text={title === undefined ? described.what : `${described.title}. ${described.what}`} />
        </div>
        {seconds !== undefined && <div>{seconds > 0 ? `Wait ${seconds} ${seconds === 1 ? "second" : "seconds"}, then try again.` : "You can try again now."}</div>}
        {api !== undefined && api.issues.length > 0 && (
          <ul className={classes.issues}>
            {api.issues.map(({ path, message }) => (
              <li key={path + message}>
                {path !== "" && <code className="mono">{path}</code>} <Ticked text={message} />
              </li>
            ))}
          </ul>
        )}
        {described.todo !== undefined && <div className="dim">{described.todo}</div>}
        {(api?.requestId !== undefined || onRetry !== undefined) && (
          <div className={classes.errorMeta}>
            {onRetry !== undefined && (
              <Button variant="default" size="compact-xs" onClick={onRetry} disabled={seconds !== undefined && seconds > 0}>
                Try again
              </Button>
            )}
            {api?.requestId !== undefined && (
              <span>
                <span>Request</span> <CopyText text={api.requestId} label="Copy the request id" />
              </span>
            )}
          </div>
        )}
      </div>
    </div>
  );
}

/** An error instead of a screen. */
export function ErrorState(props: ErrorProps) {
  return (
    <div className={classes.center}>
      <ErrorNotice {...props} />
    </div>
  );
}

/** Seconds that are left of a wait, counted down; begins anew with each error. */
export function useCountdown(seconds: number | undefined, error: unknown): number | undefined {
  const [left, setLeft] = useState(seconds);
  useEffect(() => {
    setLeft(seconds);
    if (seconds === undefined) return;
    const end = Date.now() + seconds * 1_000;
    const timer = setInterval(() => {
      const rest = Math.max(0, Math.ceil((end - Date.now()) / 1_000));
      setLeft(rest);
      if (rest === 0) clearInterval(timer);
    }, 250);
    return () => clearInterval(timer);
  }, [seconds, error]);
  return left;
}

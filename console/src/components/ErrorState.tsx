import { Button } from "@mantine/core";
import { IconAlertTriangle, IconLock, IconPlugConnectedX } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { describeError, isApiError } from "../api/errors";
import { quantity } from "../api/numbers";
import { CopyText } from "./Copy";
import { Ticked } from "./Ticked";
import classes from "./States.module.css";

export interface ErrorProps {
  error: unknown;
  /** The action that failed: "The roles could not be loaded". */
  title?: string;
  /** Tries again. If it is given, a button appears. */
  onRetry?: (() => void) | undefined;
}

/** An error in a screen or a form: what happened, why, what to do next, and the request id to copy. */
export function ErrorNotice({ error, title, onRetry }: ErrorProps) {
  const described = describeError(error);
  const what = title === undefined ? described.what : `${described.title}. ${described.what}`.trim();
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
        {what !== "" && (
          <div>
            <Ticked text={what} />
          </div>
        )}
        {seconds !== undefined && <div>{seconds > 0 ? `Wait ${quantity(seconds, "second")}, then try again.` : "You can try again now."}</div>}
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

/** An error that replaces a screen. */
export function ErrorState(props: ErrorProps) {
  return (
    <div className={classes.center}>
      <ErrorNotice {...props} />
    </div>
  );
}

/** Counts down the seconds of a wait. A new error starts it again. */
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

import { Kbd, UnstyledButton } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type LiveState, useLiveState } from "../../api/live";
import { useObjects } from "../../api/objects";
import { statusQuery } from "../../api/status";
import { useCan } from "../../api/session";
import { openPalette } from "./palette-store";
import classes from "./Shell.module.css";

const WORDS: Record<LiveState, [string, string]> = {
  off: ["idle", "Nothing on this page changes by itself."],
  connecting: ["connecting", "The event stream is being opened."],
  live: ["live", "Changes show as they happen."],
  reconnecting: ["reconnecting", "The event stream broke off. It goes on where it stopped."],
  offline: ["offline", "The server does not answer. What you see may be old."],
  forbidden: ["not live", "You may not read events, so pages do not change by themselves."],
};

const isMac = typeof navigator !== "undefined" && /Mac|iPhone|iPad/.test(navigator.platform);

/** The last line: the state of the live stream, a few counts, and the server. */
export function StatusBar() {
  const live = useLiveState();
  const { data: objects } = useObjects();
  const canRead = useCan("settings", "read");
  const { data: status } = useQuery({ ...statusQuery, enabled: canRead });
  const [word, meaning] = WORDS[live];
  return (
    <footer className={classes.status} aria-label="Status">
      <span className={classes.live} role="status" data-tip={meaning} data-live={live}>
        <span className={classes.dot} data-state={live} aria-hidden="true" />
        {word}
      </span>
      {objects !== undefined && (
        <Link to="/objects" className={classes.statusLink}>
          objects {objects.length}
        </Link>
      )}
      {status !== undefined && (
        <>
          <Link to="/deliveries" search={{ status: "pending" }} className={classes.statusLink}>
            queue {status.deliveries.pending}
          </Link>
          {status.deliveries.dead > 0 && (
            <Link to="/deliveries" search={{ status: "dead" }} className={classes.statusLink}>
              dead {status.deliveries.dead}
            </Link>
          )}
          <Link to="/settings" className={`${classes.statusLink} ${classes.wideOnly}`}>
            v{status.version}
          </Link>
          <span className={classes.wideOnly}>{status.engine}</span>
        </>
      )}
      <UnstyledButton className={`${classes.statusButton} ${classes.push} ${classes.wideOnly}`} onClick={openPalette} aria-keyshortcuts={isMac ? "Meta+K" : "Control+K"}>
        <IconSearch size={13} aria-hidden="true" />
        <span className="sr-only">Search and commands</span>
        <Kbd>{isMac ? "⌘ K" : "Ctrl K"}</Kbd>
      </UnstyledButton>
    </footer>
  );
}

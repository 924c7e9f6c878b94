import { Button } from "@mantine/core";
import type { Session } from "../../api/types";
import { StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { describeAgent } from "./agent";
import classes from "../../components/Details.module.css";

export interface SessionListProps {
  sessions: Session[];
  canEnd: (session: Session) => boolean;
  /** The session that is being ended. */
  ending: string | undefined;
  onEnd: (id: string) => void;
}

/** Where somebody is signed in, with buttons that end a session. */
export function SessionList({ sessions, canEnd, ending, onEnd }: SessionListProps) {
  return (
    <ul className={classes.list}>
      {sessions.map((session) => (
        <li key={session.id}>
          <span className={classes.session}>
            <bdi className="ellipsis" title={session.userAgent ?? undefined}>
              {describeAgent(session.userAgent)}
            </bdi>
            <span className="dim">
              {session.ipAddress ?? "unknown address"} · began <Time at={session.createdAt} /> · ends <Time at={session.expiresAt} /> {session.current && <StatusBadge tone="ok">this one</StatusBadge>}
            </span>
          </span>
          {canEnd(session) && (
            <Button variant="subtle" size="compact-xs" loading={ending === session.id} onClick={() => onEnd(session.id)} aria-label={`End the session of ${describeAgent(session.userAgent)}`}>
              End
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}

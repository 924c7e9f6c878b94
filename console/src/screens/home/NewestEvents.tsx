import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { isApiError } from "../../api/errors";
import { recordedEvents } from "../../api/events";
import { useLive, useLiveState } from "../../api/live";
import { isJsonObject } from "../../api/json";
import type { LiveEvent } from "../../api/types";
import { Actor } from "../../components/Actor";
import { ErrorNotice } from "../../components/ErrorState";
import { shortId } from "../../components/Id";
import { Bone, Late } from "../../components/Skeleton";
import { Time } from "../../components/Time";
import classes from "./Home.module.css";

const SHOWN_MAX = 12;

const newestQuery = {
  queryKey: ["events", "home"],
  queryFn: async ({ signal }: { signal: AbortSignal }) => (await recordedEvents({}, SHOWN_MAX, undefined, signal)).events,
};

/** The newest events that this person may read. New ones appear at the top. Needs read on `events`. */
export function NewestEvents() {
  const newest = useQuery(newestQuery);
  const live = useLiveState();
  const [since, setSince] = useState<LiveEvent[]>([]);
  const isRefused = isApiError(newest.error) && (newest.error.status === 403 || newest.error.status === 404);
  useLive(["#"], (events) => setSince((before) => [...events.slice(-SHOWN_MAX).reverse(), ...before].slice(0, SHOWN_MAX)), { onGap: () => void newest.refetch(), enabled: !isRefused });
  if (isRefused) return null;
  const known = new Set(since.map(({ id }) => id));
  const events = newest.data === undefined ? undefined : [...since, ...newest.data.filter(({ id }) => !known.has(id))].slice(0, SHOWN_MAX);
  return (
    <section className={classes.card} aria-label="Newest events">
      <div className={classes.headRow}>
        <h2 className={classes.head}>Newest events</h2>
        <span className={classes.push}>{live === "live" ? "live" : live === "forbidden" ? "" : live}</span>
        <Link to="/events" search={{}} className={classes.more}>
          All events
        </Link>
      </div>
      {newest.error !== null && !isRefused ? (
        <ErrorNotice error={newest.error} title="The events could not be loaded" onRetry={() => void newest.refetch()} />
      ) : events === undefined ? (
        <Late>
          <div aria-busy="true" aria-label="Loading" role="status">
            {Array.from({ length: 6 }, (_, row) => (
              <Bone key={row} height={14} width={`${50 + ((row * 17) % 40)}%`} style={{ marginBlock: 11 }} />
            ))}
          </div>
        </Late>
      ) : events.length === 0 ? (
        <p className="dim">No event yet. Each write of a record makes one.</p>
      ) : (
        <ol className={classes.events}>
          {events.map((event) => (
            <EventLine key={event.id} event={event} isNew={known.has(event.id)} />
          ))}
        </ol>
      )}
    </section>
  );
}

function EventLine({ event: { id, topic, payload, occurredAt }, isNew }: { event: LiveEvent; isNew: boolean }) {
  const { object, op } = payload;
  const record = typeof payload.id === "string" ? payload.id : undefined;
  const actor = isJsonObject(payload.actor) ? (payload.actor.userId ?? payload.actor.apiKeyId) : null;
  const isRecord = topic.startsWith("data.") && typeof object === "string";
  return (
    <li className={classes.event} data-new={isNew || undefined}>
      <span className={`${classes.eventWhat} ellipsis`}>
        {isRecord ? (
          <>
            <code>{object}</code> {String(op ?? topic.split(".").at(-1))}{" "}
            {record !== undefined &&
              (op === "deleted" ? (
                <span className="mono dim">{shortId(record)}</span>
              ) : (
                <Link to="/data/$object/$id" params={{ object, id: record }} className="mono">
                  {shortId(record)}
                </Link>
              ))}
          </>
        ) : (
          <>
            <code dir="auto">{topic}</code>
            {typeof object === "string" && <> {object}</>}
          </>
        )}
      </span>
      <span className={classes.eventWho}>
        <Actor id={typeof actor === "string" ? actor : null} />
      </span>
      <Link to="/events" search={{ open: id }} className={classes.eventTime}>
        <span className="sr-only">Open the event {topic}, </span>
        <Time at={occurredAt} />
      </Link>
    </li>
  );
}

import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { actorOf, changesOf, recordedEvents } from "../../api/events";
import { isJsonObject, type JsonObject, type JsonValue } from "../../api/json";
import { SYSTEM_COLUMNS, columnLabel, type RecordShape } from "../../api/record-shape";
import { useRelated } from "../../api/related";
import type { LiveEvent } from "../../api/types";
import { Changes, type FieldChange } from "../../components/Changes";
import { ErrorNotice } from "../../components/ErrorState";
import { Id } from "../../components/Id";
import { RecordLink } from "../../components/RecordLink";
import { Actor } from "../../components/Actor";
import { SkeletonLines } from "../../components/Skeleton";
import { Time } from "../../components/Time";
import classes from "./record.module.css";

const PAGE = 25;
/** The maximum number of links of one event that are listed. Further ones are only counted. */
const LINKS_SHOWN = 8;

/** All events of a record, newest first. */
export function HistoryTab({ shape, id }: { shape: RecordShape; id: string }) {
  const { object } = shape;
  const query = useInfiniteQuery({
    queryKey: ["record-history", object, id],
    queryFn: ({ pageParam, signal }) => recordedEvents({ object, record: id }, PAGE, pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
  });
  if (query.isPending) return <SkeletonLines lines={6} />;
  if (query.isError) return <ErrorNotice error={query.error} title="The history could not be loaded" onRetry={() => void query.refetch()} />;
  const events = query.data.pages.flatMap((page) => page.events);
  if (events.length === 0 && !query.hasNextPage)
    return <p className={classes.sectionNote}>The event log holds nothing about this record. Events are kept for a time (SVC_EVENTS_RETENTION_DAYS), or they are turned off.</p>;
  return (
    <>
      <ol className={classes.timeline} aria-label="History, newest first">
        {events.map((event) => (
          <Entry key={event.id} event={event} shape={shape} />
        ))}
      </ol>
      {query.hasNextPage ? (
        <Button variant="default" mt="md" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          Show older events
        </Button>
      ) : (
        events[events.length - 1]?.payload.op !== "created" && <p className={classes.sectionNote}>Older events are no longer kept.</p>
      )}
    </>
  );
}

const WORDS: Record<string, string> = { created: "created it", updated: "changed it", deleted: "deleted it", linked: "linked", unlinked: "unlinked" };

function Entry({ event, shape }: { event: LiveEvent; shape: RecordShape }) {
  const { payload, occurredAt } = event;
  const actor = isJsonObject(payload.actor) ? payload.actor : null;
  const op = String(payload.op);
  const changes = shownChanges(payload, shape);
  return (
    <li className={classes.event} data-op={op}>
      <div className={classes.eventHead}>
        <Actor picture id={actorOf(event)} isKey={actor?.via === "api_key"} nobody="nobody signed in, or the system" />
        <span className={classes.eventWord}>{WORDS[op] ?? op}</span>
        {actor?.via === "api_key" && <span className="dim">by API key</span>}
        <span>
          <Time at={occurredAt} />{" "}
          <Link to="/events" search={{ open: event.id }} aria-label={`The event ${event.id}`} className={classes.sectionNote}>
            event
          </Link>
        </span>
      </div>
      {changes.length > 0 && <Changes changes={changes} label={`What was ${op}`} />}
      {op === "updated" && changes.length === 0 && <p className={classes.sectionNote}>No field that you may see changed.</p>}
      {(op === "linked" || op === "unlinked") && <LinkedIds payload={payload} />}
    </li>
  );
}

const text = (value: JsonValue | undefined): string | null => (typeof value === "string" ? value : null);

function shownChanges(payload: JsonObject, shape: RecordShape): FieldChange[] {
  const known = new Map(shape.columns.map((column) => [column.name, column]));
  const described = (field: string) => {
    const column = known.get(field);
    return { field, ...(column === undefined ? {} : { label: columnLabel(column), type: column.type }) };
  };
  if (isJsonObject(payload.diff)) return changesOf(payload).map((change) => ({ ...described(change.field), ...change }));
  const image = payload.op === "created" ? payload.after : payload.op === "deleted" ? payload.before : null;
  if (!isJsonObject(image)) return [];
  return Object.entries(image)
    .filter(([field, value]) => value !== null && !(SYSTEM_COLUMNS as readonly string[]).includes(field))
    .map(([field, value]) => (payload.op === "created" ? { ...described(field), before: undefined, after: value } : { ...described(field), before: value, after: null }));
}

function LinkedIds({ payload }: { payload: JsonObject }) {
  const target = text(payload.targetObject);
  const ids = Array.isArray(payload.targetIds) ? payload.targetIds.map(String) : [];
  return (
    <p className={classes.sectionNote}>
      <code className="mono">{text(payload.relationship)}</code> to {target ?? "records"}:{" "}
      {ids.slice(0, LINKS_SHOWN).map((id) => (
        <LinkedName key={id} target={target} id={id} />
      ))}
      {ids.length > LINKS_SHOWN && ` and ${ids.length - LINKS_SHOWN} more`}
    </p>
  );
}

function LinkedName({ target, id }: { target: string | null; id: string }) {
  const related = useRelated(target ?? "", target === null ? null : id);
  if (target === null || related === null || related === undefined) return <Id id={id} />;
  return (
    <>
      <RecordLink object={target} id={id} dir="auto">
        {related.label ?? id.slice(-8)}
      </RecordLink>{" "}
    </>
  );
}

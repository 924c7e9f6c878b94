import { Button } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay, IconSearch, IconX } from "@tabler/icons-react";
import { type InfiniteData, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { address } from "../../api/client";
import { useAfterAnswers } from "../../api/after-answers";
import { type RecordedPage, actorOf } from "../../api/events";
import { useLive } from "../../api/live";
import { topicPasses } from "../../api/topics";
import type { LiveEvent } from "../../api/types";
import { Actor } from "../../components/Actor";
import { CopyAs, asCurl } from "../../components/CopyAs";
import { type Column, DataTable, type DataTableHandle, NotLoaded } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNotice } from "../../components/ErrorState";
import { shortId } from "../../components/Id";
import { neighbours } from "../../components/Inspector";
import { Page } from "../../components/Page";
import { SettledInput } from "../../components/SettledInput";
import { StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { EventInspector } from "./EventInspector";
import { eventsQuery, recordOf, toneOf } from "./events";

/**
 * The maximum number of rows in the page. When live events exceed it, the older half is dropped, and "Show older events" loads them again.
 */
const KEPT_MAX = 2_000;

/** All events as they happen, the newest first. */
export function EventsScreen() {
  const { topic, object, record, paused, open } = useSearch({ from: "/events" });
  const navigate = useNavigate({ from: "/events" });
  const cache = useQueryClient();
  const filter = useMemo(() => ({ topic, object, record }), [topic, object, record]);
  const query = useInfiniteQuery(eventsQuery(filter));
  const queries = [eventsQuery(filter).queryKey];
  const table = useRef<DataTableHandle>(null);
  // New events wait here while the list is paused or not scrolled to the top.
  const [waiting, setWaiting] = useState<LiveEvent[]>([]);
  const [arrived, setArrived] = useState<ReadonlySet<string>>(new Set());

  const put = (events: LiveEvent[]) => {
    setArrived(new Set(events.map(({ id }) => id)));
    cache.setQueryData<InfiniteData<RecordedPage, string | undefined>>(eventsQuery(filter).queryKey, (before) => {
      if (before === undefined) return before;
      const known = new Set(before.pages.flatMap((page) => page.events).map(({ id }) => id));
      const fresh = events.filter(({ id }) => !known.has(id));
      if (fresh.length === 0) return before;
      const [first = { events: [], next: undefined }, ...rest] = before.pages;
      const pages = [{ ...first, events: [...fresh.reverse(), ...first.events] }, ...rest];
      const all = pages.flatMap((page) => page.events);
      if (all.length <= KEPT_MAX) return { ...before, pages };
      const kept = all.slice(0, KEPT_MAX / 2);
      return { pages: [{ events: kept, next: kept.at(-1)?.id }], pageParams: [undefined] };
    });
  };
  const wanted = (event: LiveEvent) =>
    (object === undefined || event.payload.object === object) && (record === undefined || event.payload.id === record) && (topic === undefined || topicPasses(topic, event.topic));
  useLive(
    ["#"],
    (events) => {
      const fresh = events.filter(wanted);
      if (fresh.length === 0) return;
      if (paused === true || table.current?.isAtTop() === false) setWaiting((before) => [...before, ...fresh].slice(-KEPT_MAX / 2));
      else put(fresh);
    },
    { onGap: () => void query.refetch(), queries },
  );
  const afterAnswers = useAfterAnswers(queries);
  const showWaiting = () => {
    afterAnswers(() => put(waiting));
    setWaiting([]);
    table.current?.scrollToTop();
  };
  useEffect(() => setWaiting([]), [filter]);

  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.events) ?? [], [query.data]);
  const at = rows.findIndex(({ id }) => id === open);
  const go = (id: string | undefined) => void navigate({ search: (before) => ({ ...before, open: id }) });
  const path = address("/api/v1/events", { ...filter, limit: 100 });
  const isFiltered = topic !== undefined || object !== undefined || record !== undefined;
  return (
    <Page
      title="Events"
      actions={
        <>
          <CopyAs request={{ method: "GET", path }} />
          <Button
            variant="default"
            leftSection={paused === true ? <IconPlayerPlay size={14} /> : <IconPlayerPause size={14} />}
            aria-pressed={paused === true}
            onClick={() => {
              if (paused === true) showWaiting();
              void navigate({ search: (before) => ({ ...before, paused: paused === true ? undefined : true }), replace: true });
            }}
          >
            {paused === true ? "Go on" : "Pause"}
          </Button>
        </>
      }
      toolbar={
        <>
          <TopicFilter value={topic} />
          {object !== undefined && <Chip label={`object is ${object}`} onRemove={() => void navigate({ search: (before) => ({ ...before, object: undefined, record: undefined }) })} />}
          {record !== undefined && <Chip label={`record is ${shortId(record)}`} onRemove={() => void navigate({ search: (before) => ({ ...before, record: undefined }) })} />}
          {waiting.length > 0 && (
            <Button size="compact-xs" variant="light" onClick={showWaiting}>
              {waiting.length.toLocaleString("en")} new
            </Button>
          )}
          {paused === true && waiting.length === 0 && <StatusBadge tone="off">paused</StatusBadge>}
        </>
      }
      inspector={
        open !== undefined && (
          <EventInspector
            key={open}
            id={open}
            known={rows[at]}
            onClose={() => go(undefined)}
            {...neighbours(rows, at, (row) => go(row.id))}
          />
        )
      }
    >
      {query.data === undefined ? (
        <NotLoaded query={query} what="The events" rows={16} />
      ) : rows.length === 0 && !query.hasNextPage ? (
        isFiltered ? (
          <EmptyState title="No event matches">No recorded event has this topic or record. A pattern has dots: <code className="mono">*</code> is one segment, <code className="mono">#</code> any number.</EmptyState>
        ) : (
          <EmptyState title="No events yet" docs="GET /api/v1/events" action={<Button component={Link} to="/objects">Show the objects</Button>} curl={asCurl({ method: "GET", path: "/api/v1/events" })}>
            Every create, update, delete and link leaves an event. Change a record, and it shows here.
          </EmptyState>
        )
      ) : (
        <DataTable
          label="Events"
          handle={table}
          columns={COLUMNS}
          rows={rows}
          rowId={({ id }) => id}
          openId={open}
          onOpen={({ id }) => go(id)}
          isNew={({ id }) => arrived.has(id)}
          narrowColumns={["topic", "at"]}
          footer={
            query.isFetchNextPageError ? (
              <ErrorNotice error={query.error} onRetry={() => void query.fetchNextPage()} />
            ) : query.hasNextPage ? (
              <Button variant="default" m="sm" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                Show older events
              </Button>
            ) : undefined
          }
        />
      )}
    </Page>
  );
}

const COLUMNS: Column<LiveEvent>[] = [
  { id: "topic", header: "Topic", width: 320, cell: ({ topic }) => <StatusBadge tone={toneOf(topic)} plain><span className="mono">{topic}</span></StatusBadge> },
  {
    id: "record",
    header: "Record",
    width: 140,
    cell: (event) => {
      const record = recordOf(event);
      return record === undefined ? <span className="dim">–</span> : <code className="mono">{shortId(record.id)}</code>;
    },
  },
  {
    id: "changed",
    header: "Changed",
    width: 260,
    cell: ({ payload }) => (typeof payload.diff === "object" && payload.diff !== null ? <span dir="auto">{Object.keys(payload.diff).join(", ")}</span> : <span className="dim">–</span>),
  },
  { id: "actor", header: "By", width: 180, cell: (event) => <Actor id={actorOf(event)} /> },
  { id: "at", header: "When", width: 130, cell: ({ occurredAt }) => <Time at={occurredAt} /> },
];

function TopicFilter({ value }: { value: string | undefined }) {
  const navigate = useNavigate({ from: "/events" });
  const filter = useCallback((topic: string | undefined) => void navigate({ search: (before) => ({ ...before, topic }), replace: true }), [navigate]);
  return <SettledInput w={280} leftSection={<IconSearch size={14} />} aria-label="Topic" placeholder="Topic, such as data.*.created" spellCheck={false} value={value} onSettled={filter} />;
}

function Chip({ label, onRemove }: { label: string; onRemove: () => void }) {
  return (
    <Button variant="default" size="compact-xs" rightSection={<IconX size={12} />} onClick={onRemove} aria-label={`Remove the filter: ${label}`}>
      <bdi>{label}</bdi>
    </Button>
  );
}

import { Button, Group, SegmentedControl, Select, TextInput } from "@mantine/core";
import { IconRefresh } from "@tabler/icons-react";
import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { address, api, dataOf } from "../../api/client";
import { messageOf } from "../../api/errors";
import { fromLocal, toLocal } from "../../api/local-time";
import { quantity } from "../../api/numbers";
import { every } from "../../api/poll";
import { useCan } from "../../api/session";
import type { Delivery } from "../../api/types";
import { CopyAs, asCurl } from "../../components/CopyAs";
import { type Column, DataTable, NotLoaded } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { confirm } from "../../components/confirm-store";
import { neighbours } from "../../components/Inspector";
import { Page } from "../../components/Page";
import { SettledInput } from "../../components/SettledInput";
import { Time } from "../../components/Time";
import { failed, told } from "../../components/toast";
import { DeliveryInspector } from "./DeliveryInspector";
import { DeliveryStatus, type LedgerFilter, type LedgerStart, countsQuery, ledgerPage, parametersOf, stateOf, useConsumerName } from "./deliveries";
import classes from "./Deliveries.module.css";

const keyOf = ({ eventId, consumer }: Delivery) => `${eventId}/${consumer}`;

/** All deliveries, with their consumer groups and errors. Failed and dead ones can be sent again. */
export function DeliveriesScreen() {
  const { open, ...filter } = useSearch({ from: "/deliveries" });
  const navigate = useNavigate({ from: "/deliveries" });
  const cache = useQueryClient();
  const canRetry = useCan("events", "update");
  const createsWebhooks = useCan("webhooks", "create");
  const [selected, setSelected] = useState<Set<string>>(new Set());
  const [progress, setProgress] = useState<{ done: number; of: number; what: string }>();
  const parameters = parametersOf(filter);
  const query = useInfiniteQuery({
    queryKey: ["deliveries", "list", filter],
    queryFn: ({ pageParam, signal }) => ledgerPage(filter, pageParam, signal),
    initialPageParam: { offset: 0 } as LedgerStart,
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
    refetchInterval: every(5_000),
  });
  const { status: _, ...withoutStatus } = filter;
  // The number of dead deliveries that the person sent again. The waiting ones among them show the progress.
  const [retried, setRetried] = useState<number>();
  const counts = useQuery({ ...countsQuery(withoutStatus), ...(retried === undefined ? {} : { refetchInterval: every(1_000) }) });
  const sum = (state: "pending" | "failed" | "dead") => counts.data?.reduce((total, each) => total + each[state], 0);
  const waiting = sum("pending") ?? 0;
  useEffect(() => {
    if (retried !== undefined && waiting === 0) setRetried(undefined);
  }, [waiting, retried]);
  const shown = progress ?? (retried === undefined ? undefined : { done: Math.max(0, retried - waiting), of: retried, what: "Delivering" });
  // A list that goes on where the server stopped can repeat deliveries of the list before it.
  const rows = useMemo(() => {
    const all = query.data?.pages.flatMap((page) => page.rows) ?? [];
    const once = [...new Map(all.map((row) => [keyOf(row), row])).values()];
    return once.length === all.length ? all : once.sort((a, b) => b.occurredAt.localeCompare(a.occurredAt));
  }, [query.data]);
  const nameOf = useConsumerName();
  const columns = useMemo(() => COLUMNS.map((column) => (column.id === "consumer" ? { ...column, cell: ({ consumer }: Delivery) => <bdi title={consumer}>{nameOf(consumer)}</bdi> } : column)), [nameOf]);
  const at = rows.findIndex((row) => keyOf(row) === open);
  const change = (changes: Partial<LedgerFilter>) => void navigate({ search: (before) => ({ ...before, ...changes, open: undefined }), replace: true });
  const go = (key: string | undefined) => void navigate({ search: (before) => ({ ...before, open: key }) });
  const refresh = () => cache.invalidateQueries({ queryKey: ["deliveries"] });
  useEffect(() => setSelected(new Set()), [filter.status, filter.consumer, filter.topic, filter.event, filter.since, filter.until]);

  const chosen = rows.filter((row) => selected.has(keyOf(row)) && stateOf(row) !== "delivered" && stateOf(row) !== "pending");
  const retrySelected = async () => {
    const refused: string[] = [];
    for (const [index, { eventId, consumer }] of chosen.entries()) {
      setProgress({ done: index, of: chosen.length, what: "Retrying" });
      try {
        await api.POST("/api/v1/events/deliveries/retry", { body: { eventId, consumer } });
      } catch (error) {
        refused.push(messageOf(error));
      }
    }
    setProgress(undefined);
    setSelected(new Set());
    await refresh();
    if (refused.length === 0) told(onTheWay(chosen.length));
    else failed(`${refused.length} of ${chosen.length} deliveries could not be retried`, new Error([...new Set(refused)].join(" ")));
  };
  const dead = sum("dead") ?? 0;
  const retryAllDead = async () => {
    const { consumer, topic, since, until } = filter;
    if (!(await confirm({ title: `Retry ${quantity(dead, "dead delivery", "dead deliveries")}?`, children: "They are sent in order at the ordinary pace. A receiver may get an event that it has seen before.", action: "Retry all dead", danger: false }))) return;
    try {
      const answer = await dataOf(api.POST("/api/v1/events/deliveries/retry", { body: { dead: true, consumer, topic, since, until } }));
      const count = "count" in answer ? answer.count : 1;
      await refresh();
      setRetried(count);
      told(onTheWay(count));
    } catch (error) {
      failed("The dead deliveries could not be retried", error);
    }
  };
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  const consumers = [...new Set([...(counts.data?.map(({ consumer }) => consumer) ?? []), ...(filter.consumer === undefined ? [] : [filter.consumer])])].sort();
  return (
    <Page
      title="Deliveries"
      actions={
        <>
          <CopyAs request={{ method: "GET", path: address("/api/v1/events/deliveries", parameters) }} />
          {canRetry && chosen.length > 0 && (
            <Button leftSection={<IconRefresh size={14} />} loading={progress !== undefined} onClick={() => void retrySelected()}>
              Retry {quantity(chosen.length, "delivery", "deliveries")}
            </Button>
          )}
          {canRetry && chosen.length === 0 && dead > 0 && filter.event === undefined && (
            <Button leftSection={<IconRefresh size={14} />} onClick={() => void retryAllDead()}>
              Retry all {dead.toLocaleString("en")} dead
            </Button>
          )}
        </>
      }
      toolbar={
        <>
          <SegmentedControl
            aria-label="State"
            value={filter.status ?? "all"}
            onChange={(value) => change({ status: value === "all" ? undefined : (value as LedgerFilter["status"]) })}
            data={[
              { value: "all", label: "All" },
              { value: "pending", label: labelOf("Pending", sum("pending")) },
              { value: "failed", label: labelOf("Failed", sum("failed")) },
              { value: "dead", label: labelOf("Dead", sum("dead")) },
              { value: "delivered", label: "Delivered" },
            ]}
          />
          <Select aria-label="Consumer" placeholder="Every consumer" clearable searchable data={consumers.map((value) => ({ value, label: nameOf(value) }))} value={filter.consumer ?? null} onChange={(value) => change({ consumer: value ?? undefined })} w={220} />
          <Typed label="Topic" placeholder="Topic, such as data.task.#" value={filter.topic} onChange={(topic) => change({ topic })} />
          <Group gap="sm">
            <Instant label="Since" value={filter.since} onChange={(since) => change({ since })} />
            <Instant label="Until" value={filter.until} onChange={(until) => change({ until })} />
          </Group>
          {shown !== undefined && (
            <span role="status" className="dim">
              {shown.what} {shown.done.toLocaleString("en")} of {shown.of.toLocaleString("en")}
            </span>
          )}
        </>
      }
      inspector={
        at !== -1 && (
          <DeliveryInspector
            key={open}
            delivery={rows[at]!}
            onClose={() => go(undefined)}
            {...neighbours(rows, at, (row) => go(keyOf(row)))}
          />
        )
      }
    >
      {query.data === undefined ? (
        <NotLoaded query={query} what="The deliveries" rows={14} />
      ) : rows.length === 0 && !query.hasNextPage ? (
        isFiltered ? (
          <EmptyState title="No delivery matches">Change the state, the consumer, the topic or the time above.</EmptyState>
        ) : (
          <EmptyState
            title="No deliveries yet"
            docs="GET /api/v1/events/deliveries"
            action={createsWebhooks && <Button renderRoot={(props) => <Link to="/webhooks" search={{ new: true }} {...props} />}>Create webhook</Button>}
            curl={asCurl({ method: "GET", path: "/api/v1/events/deliveries" })}
          >
            Each webhook, subscription and block gets its own copy of an event. Create a webhook, then change a record.
          </EmptyState>
        )
      ) : (
        <DataTable
          label="Deliveries"
          columns={columns}
          rows={rows}
          rowId={keyOf}
          openId={open}
          onOpen={(row) => go(keyOf(row))}
          {...(canRetry ? { selected, onSelect: setSelected } : {})}
          narrowColumns={["topic", "state"]}
          footer={
            query.hasNextPage ? (
              <Button variant="default" m="sm" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                Show older deliveries
              </Button>
            ) : undefined
          }
        />
      )}
    </Page>
  );
}

const onTheWay = (count: number) => `${quantity(count, "delivery is", "deliveries are")} on the way again.`;
const labelOf = (word: string, count: number | undefined) => (count === undefined || count === 0 ? word : `${word} ${count.toLocaleString("en")}`);

const COLUMNS: Column<Delivery>[] = [
  { id: "topic", header: "Topic", width: 260, cell: ({ topic }) => <span className="mono">{topic}</span> },
  { id: "consumer", header: "Consumer", width: 240, cell: ({ consumer }) => <bdi>{consumer}</bdi> },
  { id: "state", header: "State", width: 120, cell: (delivery) => <DeliveryStatus delivery={delivery} /> },
  { id: "attempts", header: "Attempts", width: 90, numeric: true, cell: ({ attempts }) => attempts },
  { id: "error", header: "Error", width: 320, cell: ({ error }) => (error === null ? <span className="dim">–</span> : <bdi title={error}>{error}</bdi>) },
  { id: "next", header: "Next attempt", width: 130, cell: ({ nextAttemptAt }) => <Time at={nextAttemptAt} /> },
  { id: "at", header: "Event", width: 130, cell: ({ occurredAt }) => <Time at={occurredAt} /> },
];

function Typed({ value, label, placeholder, onChange }: { label: string; placeholder: string; value: string | undefined; onChange: (value: string | undefined) => void }) {
  return <SettledInput w={200} aria-label={label} placeholder={placeholder} spellCheck={false} value={value} onSettled={onChange} />;
}

/** A field for a point in time in the reader's time zone. The address has it in UTC. */
function Instant({ label, value, onChange }: { label: string; value: string | undefined; onChange: (value: string | undefined) => void }) {
  return (
    <TextInput
      type="datetime-local"
      aria-label={label}
      leftSection={<span className={classes.timeLabel}>{label}</span>}
      leftSectionWidth={48}
      value={toLocal(value ?? "")}
      onChange={({ currentTarget }) => onChange(fromLocal(currentTarget.value) ?? undefined)}
    />
  );
}

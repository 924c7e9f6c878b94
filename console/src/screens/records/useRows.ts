/**
 * The rows of a view, by their index. Pages are loaded when they become visible, so the cost of a large table depends only on the visible
 * rows. A page is read by a cursor of the page next to it, if there is one (`page-request.ts`). Pages stay in the cache of TanStack Query
 * for a minute. Code that changes a row changes it there.
 */
import { type QueryClient, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { isApiError } from "../../api/errors";
import type { RecordRow } from "../../api/record-paths";
import type { RecordShape } from "./columns";
import { type ListView, filterParameters, listParameters, queryText, takesCursors } from "./list-query";
import { countList, readList } from "./lists";
import { type PageRequest, type ReadPage, areApart, countOf, extentOf, pageParameters, pageRequest, readBy, readPage } from "./page-request";

/** Pages that the person only passes while dragging the scroll bar are not loaded. */
const SETTLE_MS = 90;
const KEEP_MS = 60_000;

/** The server refuses a cursor with 400, and names its parameter. */
const isRefusal = (error: unknown) => isApiError(error) && error.status === 400 && ["after", "before"].includes(error.details.field ?? "");

export interface RowsSource {
  object: string;
  shape: RecordShape;
  view: ListView;
  /** The number of rows on a page, at most 100. */
  size: number;
  /** The page in the address, counted from 0. */
  startPage: number;
  /** Whether events report changes. Then pages do not have to be read again after some time. */
  isLive: boolean;
}

export interface Rows {
  rowAt: (index: number) => RecordRow | undefined;
  /** The number of rows, as far as it is known. */
  count: number;
  /** The exact total. `undefined` while it is being counted, `null` if it could not be counted. */
  total: number | null | undefined;
  totalError: unknown;
  recount: () => void;
  /** Whether no rows have been loaded yet. */
  isLoading: boolean;
  /** Whether the rows are those of the previous view, because the rows of the new one are not loaded yet. */
  isStale: boolean;
  error: unknown;
  /** The loaded rows, in their order. */
  loaded: () => RecordRow[];
  show: (first: number, last: number) => void;
  refetch: () => void;
  /** Changes the row with this id on every page that has it. */
  change: (id: string, to: (row: RecordRow) => RecordRow) => void;
}

/** The beginning of the query keys of an object's pages. */
export const rowsKey = (object: string) => ["data", object, "rows"] as const;

/** Changes rows in all cached pages of an object. */
export function changeRows(cache: QueryClient, object: string, changes: ReadonlyMap<string, (row: RecordRow) => RecordRow>): void {
  cache.setQueriesData<ReadPage>({ queryKey: rowsKey(object) }, (page) => {
    if (page === undefined) return undefined;
    let touched = false;
    const data = page.data.map((row) => {
      const to = changes.get(row.id);
      if (to === undefined) return row;
      const next = to(row);
      if (next !== row) touched = true;
      return next;
    });
    return touched ? { ...page, data } : page;
  });
}

export function useRows({ object, shape, view, size, startPage, isLive }: RowsSource): Rows {
  const cache = useQueryClient();
  const parameters = queryText(listParameters(view, shape));
  const filters = queryText(filterParameters(view, shape));
  const isFiltered = filters !== "";
  const key = useMemo(() => [...rowsKey(object), shape.signature, parameters, size], [object, shape.signature, parameters, size]);
  const identity = key.join("\u0000");

  const [wanted, setWanted] = useState<{ identity: string; pages: number[] }>({ identity, pages: [startPage] });
  const pages = wanted.identity === identity ? wanted.pages : [startPage];
  const mayTakeCursors = takesCursors(shape);
  // The pages that are being read by cursors. The next page waits for its cursor.
  const reading = useRef(new Map<string, Promise<ReadPage>>());
  const read = (page: number, signal: AbortSignal): Promise<ReadPage> => {
    const nameOf = (other: number) => `${identity}\u0000${other}`;
    // The cursors of a page that is about to be read again do not count.
    const known = (other: number): ReadPage | undefined => {
      const state = cache.getQueryState<ReadPage>([...key, other]);
      return state === undefined || state.isInvalidated || state.fetchStatus !== "idle" ? undefined : state.data;
    };
    const choose = (previous: ReadPage | undefined) => pageRequest(page, mayTakeCursors, { previous, next: known(page + 1) });
    const send = async (request: PageRequest): Promise<ReadPage> => {
      const query = [parameters, pageParameters(request, page, size, isFiltered)].filter((part) => part !== "").join("&");
      return readPage(request, await readList(shape, query, signal));
    };
    const begun = page === 0 ? undefined : reading.current.get(nameOf(page - 1));
    let answer: Promise<ReadPage>;
    if (begun === undefined) {
      const request = choose(known(page - 1));
      answer = readBy(request, { size, send, isRefusal });
      if (request.by === "number") return answer;
    } else answer = begun.catch(() => undefined).then((previous) => readBy(choose(previous), { size, send, isRefusal }));
    reading.current.set(nameOf(page), answer);
    const ended = () => {
      if (reading.current.get(nameOf(page)) === answer) reading.current.delete(nameOf(page));
    };
    void answer.then(ended, ended);
    return answer;
  };
  const results = useQueries({
    queries: pages.map((page) => ({
      queryKey: [...key, page],
      queryFn: ({ signal }: { signal: AbortSignal }) => read(page, signal),
      gcTime: KEEP_MS,
      staleTime: isLive ? Number.POSITIVE_INFINITY : 5_000,
    })),
  });

  // The server stores the total without a filter and sends it with each page. With a filter, a separate request counts the rows, so that
  // the rows do not wait for it.
  const counted = useQuery({
    queryKey: ["data", object, "total", filters],
    queryFn: ({ signal }) => countList(shape, filters, signal),
    enabled: isFiltered,
    gcTime: KEEP_MS,
    staleTime: isLive ? Number.POSITIVE_INFINITY : 5_000,
    // A count that the server or a proxy has given up is not repeated automatically, because it would cost the same again.
    retry: (failures, error) => failures < 1 && isApiError(error) && error.status === 0,
  });

  const pageAt = useCallback((page: number) => cache.getQueryData<ReadPage>([...key, page]), [cache, key]);
  const stamp = results.map(({ dataUpdatedAt }) => dataUpdatedAt).join();
  const datas = results.map(({ data }) => data);
  const latest = results.reduce<(typeof results)[number] | undefined>((newest, result) => (result.data !== undefined && (newest === undefined || result.dataUpdatedAt > newest.dataUpdatedAt) ? result : newest), undefined);
  const extent = extentOf(results.flatMap(({ data }, index) => (data === undefined ? [] : [{ page: pages[index]!, read: data }])), size);
  const total: number | null | undefined = isFiltered ? (counted.data ?? extent.end ?? (counted.isError ? null : undefined)) : latest === undefined ? undefined : (latest.data!.total ?? extent.end ?? 0);
  const error = results.find((result) => result.error !== null && result.data === undefined)?.error ?? null;
  const isFetching = results.some(({ data, fetchStatus }) => data === undefined && fetchStatus === "fetching");

  // The old rows stay on the screen until the first rows of the new view are loaded.
  const has = latest !== undefined;
  const held = useRef<{ object: string; signature: string; rowAt: (index: number) => RecordRow | undefined; count: number; total: number | null | undefined } | null>(null);
  const rowAt = useCallback(
    (index: number) => pageAt(Math.floor(index / size))?.data[index % size],
    // The function also depends on the content of the pages.
    // oxlint-disable-next-line react/exhaustive-deps
    [pageAt, size, stamp, ...datas],
  );
  const reached = useRef({ identity, reach: 0 });
  if (reached.current.identity !== identity) reached.current = { identity, reach: 0 };
  reached.current.reach = Math.max(reached.current.reach, extent.reach);
  const count = countOf(extent, total, size, reached.current.reach);
  useEffect(() => {
    if (has) held.current = { object, signature: shape.signature, rowAt, count, total };
  });
  // When a page is read again, the page behind it may no longer follow from it. That page is then read again too.
  const loose = results.findIndex((next, index) => {
    const previous = results[index - 1];
    return previous?.data !== undefined && next.data !== undefined && previous.fetchStatus === "idle" && next.fetchStatus === "idle" && areApart(previous.data, next.data);
  });
  const loosePage = loose === -1 ? undefined : pages[loose];
  useEffect(() => {
    if (loosePage !== undefined) void cache.invalidateQueries({ queryKey: [...key, loosePage], exact: true });
    // After an error, the times of the answers stay the same, so the page is not read over and over.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [cache, key, loosePage, stamp]);
  const before = held.current;
  const isStale = !has && error === null && before !== null && before.object === object && before.signature === shape.signature;

  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const show = useCallback(
    (first: number, last: number) => {
      const from = Math.floor(first / size);
      const to = Math.floor(Math.max(first, last) / size);
      const next = Array.from({ length: to - from + 1 }, (_, index) => from + index);
      clearTimeout(timer.current);
      const set = () =>
        setWanted((now) => (now.identity === identity && now.pages.join() === next.join() ? now : { identity, pages: next }));
      if (next.every((page) => pageAt(page) !== undefined)) set();
      else timer.current = setTimeout(set, SETTLE_MS);
    },
    [size, identity, pageAt],
  );
  const refetch = useCallback(() => {
    const shown = new Set(pages);
    cache.removeQueries({ queryKey: key, type: "inactive", predicate: ({ queryKey }) => !shown.has(queryKey.at(-1) as number) });
    void cache.invalidateQueries({ queryKey: key });
    void cache.invalidateQueries({ queryKey: ["data", object, "total"] });
    // oxlint-disable-next-line react/exhaustive-deps
  }, [cache, key, object, pages.join()]);
  const change = useCallback((id: string, to: (row: RecordRow) => RecordRow) => changeRows(cache, object, new Map([[id, to]])), [cache, object]);
  const loaded = useCallback(
    () =>
      cache
        .getQueriesData<ReadPage>({ queryKey: key })
        .sort(([one], [other]) => Number(one.at(-1)) - Number(other.at(-1)))
        .flatMap(([, page]) => page?.data ?? []),
    [cache, key],
  );

  return {
    rowAt: isStale ? before.rowAt : rowAt,
    count: isStale ? before.count : count,
    total: isStale ? before.total : total,
    totalError: counted.error,
    recount: () => void counted.refetch(),
    isLoading: !has && !isStale && error === null && (isFetching || pages.length > 0),
    isStale,
    error,
    loaded,
    show,
    refetch,
    change,
  };
}

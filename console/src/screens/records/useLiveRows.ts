/**
 * Keeps the visible rows up to date. Changed cells glow. Rows that left the view turn gray, with the reason. New rows are counted, or
 * appear at once if the newest rows come first and the table is scrolled to the top.
 */
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { isJsonObject, sameJson } from "../../api/json";
import { useLive } from "../../api/live";
import type { RecordShape } from "./columns";
import type { RowMark } from "./grid/GridRow";
import { type ListView, filterParameters, isNewestFirst, queryText } from "./list-query";
import { readList } from "./lists";
import { useMe } from "../../api/session";
import type { RecordRow } from "../../api/record-paths";
import type { LiveEvent } from "../../api/types";
import { type Rows, changeRows, rowsKey } from "./useRows";

const GLOW_MS = 1_400;
/** The interval at which finished marks are removed. */
const DIM_MS = 400;
/** The time in which changes are collected before a request asks which of them belong to the view, and before rows are read again. */
const ASK_MS = 700;
const TOTAL_MS = 3_000;
/** The maximum number of ids in one request. With a filter, only this many of the new rows are checked and counted at a time. */
const ASK_MAX = 100;

export interface Live {
  marks: ReadonlyMap<string, RowMark>;
  /** The number of new rows that are not shown yet. */
  fresh: number;
  mark: (id: string, to: (mark: RowMark) => RowMark | undefined) => void;
  markAll: (ids: Iterable<string>, to: (mark: RowMark) => RowMark | undefined) => void;
  /** Clears the marks before the rows are read again. */
  clear: () => void;
}

export interface LiveOptions {
  object: string;
  shape: RecordShape;
  view: ListView;
  rows: Rows;
  /** Whether new rows may appear now: the table is at the top, and no cell is being edited. */
  mayMove: () => boolean;
}

const DELETED = "Somebody deleted this record.";
const DELETED_BY_YOU = "You deleted this record.";
const LEFT = "This record does not match the view any more.";

export function useLiveRows({ object, shape, view, rows, mayMove }: LiveOptions): Live {
  const cache = useQueryClient();
  const me = useMe()?.userId;
  const [marks, setMarks] = useState<ReadonlyMap<string, RowMark>>(new Map());
  const [fresh, setFresh] = useState(0);
  const filters = queryText(filterParameters(view, shape));
  const isFiltered = filters !== "";
  const newestFirst = isNewestFirst(view.sort, shape);
  const beat = useRef(0);
  const timers = useRef<{ ask?: ReturnType<typeof setTimeout>; total?: ReturnType<typeof setTimeout>; glow?: ReturnType<typeof setInterval> }>({});
  const created = useRef(new Set<string>());
  const updated = useRef(new Set<string>());
  const glowing = useRef(new Map<string, number>());
  const latest = useRef({ rows, filters, isFiltered, newestFirst, mayMove, view, marks });
  useEffect(() => {
    latest.current = { rows, filters, isFiltered, newestFirst, mayMove, view, marks };
  });

  const markAll = useCallback((ids: Iterable<string>, to: (mark: RowMark) => RowMark | undefined) => {
    setMarks((now) => {
      const next = new Map(now);
      for (const id of ids) {
        const mark = to(next.get(id) ?? {});
        if (mark === undefined || Object.keys(mark).length === 0) next.delete(id);
        else next.set(id, mark);
      }
      return next;
    });
  }, []);
  const mark = useCallback((id: string, to: (mark: RowMark) => RowMark | undefined) => markAll([id], to), [markAll]);
  const clear = useCallback(() => {
    created.current.clear();
    updated.current.clear();
    setFresh(0);
    setMarks((now) => (now.size === 0 ? now : new Map([...now].filter(([, { saving }]) => saving !== undefined))));
  }, []);

  // Marks of the previous view have no meaning in another view.
  const identity = `${object}\u0000${filters}\u0000${JSON.stringify(view.sort)}`;
  useEffect(() => clear(), [identity, clear]);
  useEffect(() => {
    const now = timers.current;
    return () => {
      clearTimeout(now.ask);
      clearTimeout(now.total);
      clearInterval(now.glow);
    };
  }, []);

  const dim = useCallback(() => {
    const now = performance.now();
    const over: string[] = [];
    for (const [id, end] of glowing.current) if (end <= now) over.push(id);
    for (const id of over) glowing.current.delete(id);
    if (over.length > 0) markAll(over, ({ changed: _changed, beat: _beat, isNew: _isNew, ...rest }) => rest);
    if (glowing.current.size > 0) return;
    clearInterval(timers.current.glow);
    timers.current.glow = undefined;
  }, [markAll]);
  const glow = useCallback(
    (ids: Iterable<string>) => {
      const end = performance.now() + GLOW_MS;
      for (const id of ids) glowing.current.set(id, end);
      timers.current.glow ??= setInterval(dim, DIM_MS);
    },
    [dim],
  );

  /**
   * Returns those of the ids that belong to the view. The server decides, so that every filter means the same here as in the list. A filter
   * can depend on related records. A change of a related record is no event of this object, so the row is checked again only when it
   * changes itself.
   */
  const belonging = useCallback(
    async (ids: string[]) => {
      const query = `${latest.current.filters}&id[in]=${ids.join()}&select=id&pageSize=${ASK_MAX}&count=none`;
      const { data: found } = await readList(shape, query);
      return new Set(found.map(({ id }) => id));
    },
    [shape],
  );

  const ask = useCallback(async () => {
    timers.current.ask = undefined;
    const { rows: now, isFiltered: filtered, newestFirst: first, mayMove: may, filters: asked } = latest.current;
    const made = [...created.current];
    const changed = [...updated.current].slice(0, ASK_MAX);
    created.current.clear();
    updated.current.clear();
    try {
      if (filtered && changed.length > 0) {
        const stay = await belonging(changed);
        if (latest.current.filters !== asked) return;
        const left = changed.filter((id) => !stay.has(id));
        const back = changed.filter((id) => stay.has(id));
        markAll(left, (each) => ({ ...each, gone: LEFT }));
        markAll(back, ({ gone, ...rest }) => (gone === LEFT || gone === undefined ? rest : { ...rest, gone }));
      }
      if (made.length === 0) return;
      if (first && may()) {
        markAll(made.slice(0, ASK_MAX), (each) => ({ ...each, isNew: true }));
        glow(made.slice(0, ASK_MAX));
        now.refetch();
        return;
      }
      const belong = filtered ? (await belonging(made.slice(0, ASK_MAX))).size : made.length;
      if (latest.current.filters === asked) setFresh((count) => count + belong);
    } catch {
      // The next event starts another request, and the refresh button is always there.
    }
  }, [belonging, markAll, glow]);
  const askSoon = useCallback(() => {
    timers.current.ask ??= setTimeout(() => void ask(), ASK_MS);
  }, [ask]);
  const countSoon = useCallback(() => {
    timers.current.total ??= setTimeout(() => {
      timers.current.total = undefined;
      void cache.invalidateQueries({ queryKey: ["data", object, "total"] });
    }, TOTAL_MS);
  }, [cache, object]);

  const take = (events: LiveEvent[]) => {
    const here = new Map(rows.loaded().map((row) => [row.id, row]));
    const changes = new Map<string, RecordRow>();
    const changedColumns = new Map<string, Set<string>>();
    const gone = new Map<string, string>();
    for (const { topic, payload } of events) {
      const id = typeof payload.id === "string" ? payload.id : "";
      if (topic.endsWith(".created")) {
        if (!here.has(id)) created.current.add(id);
      } else if (topic.endsWith(".deleted")) {
        created.current.delete(id);
        updated.current.delete(id);
        const by = isJsonObject(payload.actor) ? payload.actor.userId : undefined;
        if (here.has(id)) gone.set(id, by !== undefined && by !== null && by === me ? DELETED_BY_YOU : DELETED);
      } else if (topic.endsWith(".updated") && isJsonObject(payload.after)) {
        const before = changes.get(id) ?? here.get(id);
        if (before === undefined) continue;
        const after = payload.after as RecordRow;
        // A response may have arrived before the event of the same change.
        if (typeof after.updated_at === "string" && typeof before.updated_at === "string" && after.updated_at < before.updated_at) continue;
        const saving = marks.get(id)?.saving;
        const next: RecordRow = { ...before };
        const changed = changedColumns.get(id) ?? new Set<string>();
        for (const [key, value] of Object.entries(after)) {
          if (!(key in before) || saving?.has(key) === true || sameJson(before[key], value)) continue;
          next[key] = value;
          if (shape.byId.get(key)?.isSystem === false) changed.add(key);
        }
        changes.set(id, next);
        if (changed.size > 0) changedColumns.set(id, changed);
        if (isFiltered) updated.current.add(id);
      }
    }
    if (changes.size > 0) {
      changeRows(cache, object, new Map([...changes].map(([id, row]) => [id, () => row])));
      // Other places may show these records by a field that has changed.
      void cache.invalidateQueries({ queryKey: ["data", object, "related"], predicate: (query) => changes.has(String(query.queryKey[3])) });
    }
    if (changedColumns.size > 0) {
      beat.current += 1;
      setMarks((now) => {
        const next = new Map(now);
        for (const [id, changed] of changedColumns) next.set(id, { ...next.get(id), changed, beat: beat.current });
        return next;
      });
      glow(changedColumns.keys());
    }
    for (const why of new Set(gone.values())) {
      const ids = [...gone].filter(([, each]) => each === why).map(([id]) => id);
      markAll(ids, (each) => (each.gone === undefined ? { ...each, gone: why } : each));
    }
    if (created.current.size > 0 || updated.current.size > 0) askSoon();
    if (isFiltered || gone.size > 0) countSoon();
  };
  const { refetch } = rows;
  const again = useCallback(() => {
    clear();
    refetch();
  }, [clear, refetch]);
  useLive([`data.${object}.created`, `data.${object}.updated`, `data.${object}.deleted`], take, { onGap: again, queries: [rowsKey(object)] });

  return { marks, fresh, mark, markAll, clear };
}

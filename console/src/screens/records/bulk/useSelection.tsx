/** The selected rows and the actions on them. Changes and deletions use the public bulk calls, several records at a time. */
import { type ReactNode, type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { api, ok } from "../../../api/client";
import { type JsonValue, parseJson, printJson } from "../../../api/json";
import { NUMBER, quantity } from "../../../api/numbers";
import type { RecordRow } from "../../../api/record-paths";
import { updateRecord } from "../../../api/records";
import { useViewAs } from "../../../api/view-as";
import { confirm } from "../../../components/confirm-store";
import { later, useEver } from "../../../components/later";
import { failed, told, undoable } from "../../../components/toast";
import type { RecordColumn, RecordShape } from "../columns";
import { type ListView, filterParameters, queryText, withheld } from "../list-query";
import type { Live } from "../useLiveRows";
import type { Rows } from "../useRows";
import type { Values } from "../useEdits";
import { wireValues } from "../values";
import { PIECE } from "./job";
import { useJob } from "./useJob";

const JobDialog = later(() => import("./JobDialog").then((loaded) => loaded.JobDialog));
const SetFieldDialog = later(() => import("./SetFieldDialog").then((loaded) => loaded.SetFieldDialog));

/** The maximum number of ids in one job. They take about 40 MB of memory. */
const ALL_MAX = 500_000;
/** A job with at most this many records shows a dialog only if a record was not changed. */
const QUIET_MAX = 20;
export const GONE_SOON = "This record is deleted in a few seconds. Undo keeps it.";
const GONE = "You deleted this record.";

export interface Change {
  row: RecordRow;
  values: Values;
}

/** Stores how to undo a change of several records. */
export type Remember = (label: string, changes: { id: string; values: Values }[]) => void;

export interface SelectionOptions {
  shape: RecordShape;
  view: ListView;
  rows: Rows;
  live: Live;
  remember: RefObject<Remember>;
}

/** Continues a job with the records that it did not try. */
type Rest = { kind: "set"; values: Values; title: string } | { kind: "each"; changes: { id: string; values: Values }[]; title: string } | { kind: "delete" };

export interface Selection {
  selected: ReadonlySet<string>;
  /** Whether all records that match the view are selected, also those that are not loaded. */
  isAll: boolean;
  select: (selected: Set<string>) => void;
  selectAll: () => void;
  /** Why nobody can select all records that match. Undefined if a person can. */
  withheld: string | undefined;
  /** Asks the person for a column and a value. */
  ask: () => void;
  change: (changes: Change[], verb: string) => Promise<void>;
  remove: (ids: string[]) => void;
  removeSelected: () => void;
  applyMany: (changes: { id: string; values: Values }[], label: string) => Promise<void>;
  dialogs: ReactNode;
}

const plural = (count: number) => quantity(count, "record");

export function useSelection({ shape, view, rows, live, remember }: SelectionOptions): Selection {
  const object = shape.name;
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [isAll, setIsAll] = useState(false);
  const [asking, setAsking] = useState(false);
  const job = useJob();
  const rest = useRef<Rest | null>(null);
  const filters = queryText(filterParameters(view, shape));
  const reason = withheld(view, shape);
  const viewed = useViewAs();
  // With another filter or other rights, the selected records may no longer be in the view. A condition that is not sent changes no
  // parameter.
  useEffect(() => {
    setSelected(new Set());
    setIsAll(false);
  }, [filters, reason, viewed]);

  const select = useCallback((next: Set<string>) => {
    setSelected(next);
    setIsAll(false);
  }, []);

  /** The ids of all matching records, streamed from one snapshot. */
  const collect = useCallback(async (): Promise<string[]> => {
    if (reason !== undefined) throw new Error(reason);
    const ids: string[] = [];
    const { response } = await api.GET("/api/v1/data/{object}/export", { params: { path: { object }, query: `format=ndjson&select=id&${filters}` }, parseAs: "stream" });
    let partial = "";
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      partial += value ?? "";
      const lines = partial.split("\n");
      partial = done ? "" : (lines.pop() ?? "");
      for (const line of lines) {
        if (line === "") continue;
        if (ids.length >= ALL_MAX) throw new Error(`More than ${NUMBER.format(ALL_MAX)} records match. Filter further, and change them in parts.`);
        ids.push((parseJson(line) as { id: string }).id);
      }
      if (done) return ids;
    }
  }, [object, filters, reason]);

  const chosen = useCallback(async (): Promise<string[] | null> => {
    if (!isAll) return [...selected];
    try {
      return await collect();
    } catch (error) {
      failed("The records could not be collected", error);
      return null;
    }
  }, [isAll, selected, collect]);

  const put = useCallback(
    (ids: string[], values: Values) => {
      for (const id of ids) rows.change(id, (row) => ({ ...row, ...values }));
    },
    [rows],
  );

  /** Sets the same values on all records in `ids`. */
  const setMany = useCallback(
    async (ids: string[], values: Values, title: string) => {
      const before = new Map(rows.loaded().map((row) => [row.id, row]));
      const changed: string[] = [];
      const report = await job.start(
        title,
        "Changed",
        {
          ids,
          call: async (piece) => (await ok(api.PATCH("/api/v1/data/{object}/bulk", { params: { path: { object } }, body: { ids: piece, values: wireValues(shape, values) } }))).ids,
          onDone: (done) => {
            put(done, values);
            for (const id of done) changed.push(id);
          },
        },
        { quiet: ids.length <= QUIET_MAX },
      );
      rest.current = { kind: "set", values, title };
      rows.refetch();
      // The page only knows the old values of records that it has loaded. So it offers undo only for these.
      if (changed.length > 0 && changed.every((id) => before.has(id))) {
        const back = changed.map((id) => ({ id, values: Object.fromEntries(Object.keys(values).map((key) => [key, before.get(id)![key] ?? null])) }));
        remember.current(`${plural(report.done)} changed.`, back);
      } else if (ids.length <= QUIET_MAX && report.done > 0) told(`${plural(report.done)} changed.`);
    },
    [job, object, shape, put, rows, remember],
  );

  /** Sets different values on each record. */
  const setEach = useCallback(
    async (changes: { id: string; values: Values }[], title: string): Promise<string[]> => {
      const byId = new Map(changes.map(({ id, values }) => [id, values]));
      const groups = new Map<string, string[]>();
      for (const { id, values } of changes) groups.set(printJson(values), [...(groups.get(printJson(values)) ?? []), id]);
      const isSame = groups.size === 1;
      const done: string[] = [];
      await job.start(
        title,
        "Changed",
        {
          ids: changes.map(({ id }) => id),
          pieceSize: isSame ? PIECE : 1,
          call: async (piece) => {
            const values = byId.get(piece[0]!)!;
            if (isSame && piece.length > 1) return (await ok(api.PATCH("/api/v1/data/{object}/bulk", { params: { path: { object } }, body: { ids: piece, values: wireValues(shape, values) } }))).ids;
            await updateRecord(object, piece[0]!, wireValues(shape, values), null);
            return [piece[0]!];
          },
          onDone: (ids) => {
            for (const id of ids) {
              done.push(id);
              rows.change(id, (row) => ({ ...row, ...byId.get(id) }));
            }
          },
        },
        { quiet: changes.length <= QUIET_MAX },
      );
      rest.current = { kind: "each", changes, title };
      return done;
    },
    [job, object, shape, rows],
  );

  const change = useCallback(
    async (changes: Change[], verb: string) => {
      const before = new Map(changes.map(({ row, values }) => [row.id, Object.fromEntries(Object.keys(values).map((key) => [key, row[key] ?? null]))]));
      const done = await setEach(
        changes.map(({ row, values }) => ({ id: row.id, values })),
        `Change ${plural(changes.length)}`,
      );
      if (done.length > 0)
        remember.current(
          `${verb}: ${plural(done.length)}.`,
          done.map((id) => ({ id, values: before.get(id)! })),
        );
    },
    [setEach, remember],
  );

  const applyMany = useCallback(
    async (changes: { id: string; values: Values }[], label: string) => {
      const done = await setEach(changes, "Undo");
      if (done.length === changes.length) told(`Undone: ${label}`);
    },
    [setEach],
  );

  const destroy = useCallback(
    async (ids: string[]) => {
      const report = await job.start(
        `Delete ${plural(ids.length)}`,
        "Deleted",
        {
          ids,
          // `keepalive` sends the request even if the page is closed.
          call: async (piece) => {
            return (await ok(api.DELETE("/api/v1/data/{object}/bulk", { params: { path: { object } }, body: { ids: piece }, keepalive: true }))).ids;
          },
          onDone: (done) => live.markAll(done, (mark) => ({ ...mark, gone: GONE })),
        },
        { quiet: ids.length <= PIECE },
      );
      rest.current = { kind: "delete" };
      const kept = new Set([...report.left, ...report.unknown, ...report.refused.map(({ id }) => id)]);
      live.markAll(kept, ({ gone: _gone, ...rest }) => rest);
      rows.refetch();
    },
    [job, object, live, rows],
  );

  const remove = useCallback(
    (ids: string[]) => {
      live.markAll(ids, (mark) => ({ ...mark, gone: GONE_SOON }));
      setSelected((now) => new Set([...now].filter((id) => !ids.includes(id))));
      setIsAll(false);
      undoable({
        message: `${ids.length === 1 ? "Record" : plural(ids.length)} deleted.`,
        onUndo: () => live.markAll(ids, ({ gone: _gone, ...rest }) => rest),
        commit: () => destroy(ids),
      });
    },
    [live, destroy],
  );

  const removeSelected = useCallback(async () => {
    const ids = await chosen();
    if (ids === null || ids.length === 0) return;
    const many = ids.length > PIECE;
    if (many && !(await confirm({ title: `Delete ${plural(ids.length)}?`, children: "Records that depend on them by a cascade go too. You have 8 seconds to undo; after that they are gone.", action: `Delete ${plural(ids.length)}`, danger: true }))) return;
    remove(ids);
  }, [chosen, remove]);

  const set = async (column: RecordColumn, value: JsonValue) => {
    setAsking(false);
    const ids = await chosen();
    if (ids === null || ids.length === 0) return;
    await setMany(ids, { [column.id]: value }, `Change ${column.label} of ${plural(ids.length)}`);
  };

  const wasAsking = useEver(asking);
  const wasBusy = useEver(job.state !== null);
  const total = rows.total ?? selected.size;
  return {
    selected,
    isAll,
    select,
    // An export collects them.
    selectAll: () => setIsAll(true),
    withheld: reason,
    ask: () => setAsking(true),
    change,
    remove,
    removeSelected: () => void removeSelected(),
    applyMany,
    dialogs: (
      <>
        {wasAsking && <SetFieldDialog opened={asking} shape={shape} count={plural(isAll ? total : selected.size)} onClose={() => setAsking(false)} onSet={(column, value) => void set(column, value)} />}
        {wasBusy && (
          <JobDialog
            state={job.state}
            onCancel={job.cancel}
            onClose={job.close}
            onContinue={(left) => {
              const next = rest.current;
              if (next?.kind === "set") void setMany(left, next.values, next.title);
              else if (next?.kind === "each") void setEach(next.changes.filter(({ id }) => left.includes(id)), next.title);
              else if (next?.kind === "delete") void destroy(left);
            }}
          />
        )}
      </>
    ),
  };
}

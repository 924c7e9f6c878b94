/**
 * Changes of cells. They appear at once and are sent on the condition that nobody has changed the record since. If the server refuses one,
 * it is reverted. `Ctrl Z` or the toast undoes it.
 */
import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useCallback, useRef, useState } from "react";
import { readRecord, updateRecord } from "../../api/records";
import { isApiError, messageOf } from "../../api/errors";
import { type JsonObject, type JsonValue, sameJson } from "../../api/json";
import type { RecordRow } from "../../api/record-paths";
import { UNDO_MS, failed, told } from "../../components/toast";
import type { RecordShape } from "./columns";
import { etagOf, rememberEtag } from "./etags";
import type { Live } from "./useLiveRows";
import type { Rows } from "./useRows";
import { wireValues } from "./values";

export type Values = Record<string, JsonValue>;

/** Somebody else changed the record first. This has the record as it is now and the values that this person wanted. */
export interface Conflict {
  /** The number of the conflict. A record can have several, one after another. */
  id: number;
  row: RecordRow;
  /** The record in the state that the page showed. */
  before: RecordRow;
  mine: Values;
  /** Ends the conflict. The given values are sent nevertheless. With null, the record stays as it is. */
  settle: (values: Values | null) => void;
}

export type Saved = { ok: true } | { ok: false; message: string; field?: string | undefined } | { ok: false; settled: true };

/** After a conflict, `sent` can have other fields than the original change. */
type Written = { ok: true; from: RecordRow; sent: Values } | Exclude<Saved, { ok: true }>;

interface Undoable {
  label: string;
  /** The values that each record gets back. */
  changes: { id: string; values: Values }[];
}

const UNDOS_MAX = 100;
const UNDO_TOAST = "records-undo";

export interface Edits {
  save: (row: RecordRow, values: Values, options?: { quiet?: boolean }) => Promise<Saved>;
  /** The conflict that the person has to settle now. Further conflicts wait. */
  conflict: Conflict | null;
  undo: () => void;
  redo: () => void;
  /** Stores how to undo a change of several records. */
  remember: (label: string, changes: Undoable["changes"]) => void;
}

async function readOne(object: string, id: string): Promise<{ row: RecordRow; etag: string | null }> {
  const { record, etag } = await readRecord(object, id);
  rememberEtag(object, id, etag, record.updated_at);
  return { row: record, etag };
}

export function useEdits(shape: RecordShape, rows: Rows, live: Live, applyMany: (changes: Undoable["changes"], label: string) => Promise<void>): Edits {
  const object = shape.name;
  const [conflicts, setConflicts] = useState<Conflict[]>([]);
  const lastConflict = useRef(0);
  const undos = useRef<Undoable[]>([]);
  const redos = useRef<Undoable[]>([]);
  /** The records after the last change from this page. */
  const known = useRef(new Map<string, RecordRow>());
  const { change } = rows;
  const keep = useCallback((id: string, row: RecordRow) => {
    known.current.delete(id);
    known.current.set(id, row);
    if (known.current.size > UNDOS_MAX) known.current.delete(known.current.keys().next().value!);
  }, []);
  const { mark } = live;

  const saving = useCallback(
    (id: string, columns: string[], is: boolean) =>
      mark(id, ({ saving: now, ...rest }) => {
        const next = new Set(now);
        for (const column of columns) {
          if (is) next.add(column);
          else next.delete(column);
        }
        return next.size === 0 ? rest : { ...rest, saving: next };
      }),
    [mark],
  );

  const send = useCallback(
    async (row: RecordRow, values: Values, etag: string | undefined): Promise<RecordRow> => {
      const { record, etag: now } = await updateRecord(object, row.id, wireValues(shape, values), etag ?? null);
      rememberEtag(object, row.id, now, record.updated_at);
      return record;
    },
    [object, shape],
  );

  /** Changes of one record are sent one after another, because each continues from the result of the previous one. */
  const queues = useRef(new Map<string, Promise<void>>());
  /** The number of changes in progress for each cell, keyed by record and column. */
  const pending = useRef(new Map<string, number>());

  const write = useCallback(
    async (row: RecordRow, values: Values): Promise<Written> => {
      const columns = Object.keys(values);
      const { id } = row;
      const cellKey = (column: string) => `${id} ${column}`;
      const isPending = (column: string) => (pending.current.get(cellKey(column)) ?? 0) > 0;
      change(id, (now) => ({ ...now, ...values }));
      for (const column of columns) pending.current.set(cellKey(column), (pending.current.get(cellKey(column)) ?? 0) + 1);
      saving(id, columns, true);
      const turn = queues.current.get(id) ?? Promise.resolve();
      let leave = () => {};
      const mine = new Promise<void>((resolve) => {
        leave = resolve;
      });
      const queued = turn.then(() => mine);
      queues.current.set(id, queued);
      await turn;
      /** Ends this change before its result is shown. After that, only other pending changes keep the value of a cell. */
      const settle = () => {
        for (const column of columns) {
          const left = (pending.current.get(cellKey(column)) ?? 1) - 1;
          if (left === 0) pending.current.delete(cellKey(column));
          else pending.current.set(cellKey(column), left);
        }
        saving(id, columns.filter((column) => !isPending(column)), false);
      };
      // The person has seen the result of the previous change.
      const last = known.current.get(id);
      const seen = last !== undefined && String(last.updated_at ?? "") > String(row.updated_at ?? "") ? last : row;
      const put = (to: RecordRow) => {
        keep(id, to);
        change(id, (now) => ({ ...now, ...(Object.fromEntries(Object.keys(now).map((key) => [key, isPending(key) ? now[key] : (to[key] ?? null)])) as JsonObject), id }));
      };
      let from = seen;
      let sent = values;
      try {
        let etag = etagOf(object, id, seen.updated_at);
        let clash: { row: RecordRow; etag: string | null } | null = null;
        if (etag === undefined) {
          // The list has no ETags. So this reads the record alone and checks that it is still as the person saw it.
          const current = await readOne(object, id);
          if (columns.some((column) => !sameJson(current.row[column], seen[column]))) clash = current;
          else {
            etag = current.etag ?? undefined;
            from = current.row;
          }
        }
        for (;;) {
          if (clash !== null) {
            const theirs = clash;
            const wanted = sent;
            const conflict = ++lastConflict.current;
            const choice = await new Promise<Values | null>((resolve) => setConflicts((all) => [...all, { id: conflict, row: theirs.row, before: seen, mine: wanted, settle: resolve }]));
            setConflicts((all) => all.filter((each) => each.id !== conflict));
            if (choice === null) {
              settle();
              put(theirs.row);
              return { ok: false, settled: true };
            }
            sent = choice;
            etag = theirs.etag ?? undefined;
            from = theirs.row;
            clash = null;
          }
          try {
            const after = await send(seen, sent, etag);
            settle();
            put(after);
            return { ok: true, from, sent };
          } catch (error) {
            if (!isApiError(error) || error.status !== 412) throw error;
            clash = await readOne(object, id);
          }
        }
      } catch (error) {
        settle();
        change(id, (now) => ({ ...now, ...Object.fromEntries(columns.filter((column) => !isPending(column)).map((column) => [column, seen[column] ?? null])) }));
        if (isApiError(error) && error.status === 404) mark(id, (now) => ({ ...now, gone: "This record is not there any more." }));
        return { ok: false, message: messageOf(error), field: isApiError(error) ? error.field : undefined };
      } finally {
        leave();
        if (queues.current.get(id) === queued) queues.current.delete(id);
      }
    },
    [object, change, saving, send, mark, keep],
  );

  const offer = useCallback((label: string, undo: () => void) => {
    // All changes share one toast, which undoes the last change.
    notifications.hide(UNDO_TOAST);
    notifications.show({
      id: UNDO_TOAST,
      autoClose: UNDO_MS,
      withBorder: true,
      closeButtonProps: { "aria-label": "Close" },
      message: (
        <div style={{ display: "flex", justifyContent: "space-between", alignItems: "center", gap: 12 }}>
          <span dir="auto">{label}</span>
          <Button
            variant="default"
            size="compact-xs"
            onClick={() => {
              notifications.hide(UNDO_TOAST);
              undo();
            }}
          >
            Undo
          </Button>
        </div>
      ),
    });
  }, []);

  const push = (stack: Undoable[], one: Undoable) => {
    stack.push(one);
    if (stack.length > UNDOS_MAX) stack.shift();
  };

  /** The changes, undos and redos in progress. An undo waits for them, because a change is on the stack only after its response. */
  const underWay = useRef<Promise<unknown>>(Promise.resolve());
  const follow = <T,>(work: Promise<T>): Promise<T> => {
    underWay.current = Promise.allSettled([underWay.current, work]);
    return work;
  };

  /** Undoes the newest entry of `from()` and puts its reverse on `onto()`. */
  const step = useCallback(
    async (before: Promise<unknown>, from: () => Undoable[], onto: () => Undoable[], verb: string) => {
      await before;
      const last = from().pop();
      notifications.hide(UNDO_TOAST);
      if (last === undefined) {
        told(verb === "Undone" ? "There is nothing to undo." : "There is nothing to do again.");
        return;
      }
      if (last.changes.length > 1) {
        await applyMany(last.changes, last.label);
        return;
      }
      const { id, values } = last.changes[0]!;
      const row = rows.loaded().find((each) => each.id === id) ?? known.current.get(id);
      if (row === undefined) return;
      const saved = await write(row, values);
      if (saved.ok) {
        push(onto(), { label: last.label, changes: [{ id, values: Object.fromEntries(Object.keys(saved.sent).map((column) => [column, saved.from[column] ?? null])) }] });
        told(`${verb}: ${last.label}`);
      } else if (!saved.ok && "message" in saved) failed("This could not be taken back", new Error(saved.message));
    },
    [applyMany, rows, write],
  );
  const newestUndos = () => undos.current;
  const newestRedos = () => redos.current;
  const undo = useCallback(() => void follow(step(underWay.current, newestUndos, newestRedos, "Undone")), [step]);
  const redo = useCallback(() => void follow(step(underWay.current, newestRedos, newestUndos, "Done again")), [step]);

  const save = useCallback(
    async (row: RecordRow, values: Values, { quiet = false }: { quiet?: boolean } = {}): Promise<Saved> => {
      const saved = await follow(write(row, values).then(remembered));
      return saved.ok ? { ok: true } : saved;
      function remembered(saved: Written): Written {
        if (!saved.ok || quiet) return saved;
        const columns = Object.keys(saved.sent);
        const label = `${columns.map((column) => shape.byId.get(column)?.label ?? column).join(", ")} changed.`;
        push(undos.current, { label, changes: [{ id: row.id, values: Object.fromEntries(columns.map((column) => [column, saved.from[column] ?? null])) }] });
        redos.current = [];
        offer(label, undo);
        return saved;
      }
    },
    [write, shape, offer, undo],
  );
  const remember = useCallback(
    (label: string, changes: Undoable["changes"]) => {
      if (changes.length === 0) return;
      push(undos.current, { label, changes });
      redos.current = [];
      offer(label, undo);
    },
    [offer, undo],
  );
  return { save, conflict: conflicts[0] ?? null, undo, redo, remember };
}

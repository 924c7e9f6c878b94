/**
 * The editing of an existing record. This has the draft, saving on the condition that nobody has changed the record since, changes by
 * others, and the deletion of the record. `latest` is the newest version on the server. The draft's `base` may be older.
 */
import { type UseQueryResult, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type ApiError, isApiError } from "../../api/errors";
import { actorOf } from "../../api/events";
import { type JsonObject, readNumber, sameJson } from "../../api/json";
import { useLive } from "../../api/live";
import type { Column, RecordShape } from "../../api/record-shape";
import { type VersionedRecord, recordKey, updateRecord } from "../../api/records";
import type { LiveEvent } from "../../api/types";
import { told } from "../../components/toast";
import { type Draft, type Edits, bodyOf, problemsOf, useDraft } from "./draft";

/** The time for which a change by somebody else glows. */
const GLOW_MS = 1_700;

export interface Elsewhere {
  actorId: string | null;
  at: string;
}

export interface Editing {
  draft: Draft;
  /** The errors, by column. */
  errors: Record<string, string>;
  /** An error that belongs to no column. */
  failure: unknown;
  isSaving: boolean;
  save: () => Promise<boolean>;
  discard: () => void;
  increment: (column: Column, amount: string) => Promise<void>;
  /** Set while the server has another version than the draft's base. */
  newer: VersionedRecord | null;
  /** The actor and the time of the last change or deletion, as far as the stream has reported it. */
  elsewhere: Elsewhere | null;
  isDeleted: boolean;
  glowing: ReadonlySet<string>;
  /** Whether the person is choosing between the versions. */
  isMerging: boolean;
  merge: () => void;
  cancelMerge: () => void;
  /** Saves the edits that remain after the choice, on top of the newer version. */
  merged: (edits: Edits) => Promise<boolean>;
  /** The column with an error after a save. It gets the focus. */
  focusOn: string | null;
}

/** The names of the columns whose values differ. The system columns, such as times and stamps, are not compared. */
export function differing(columns: Column[], one: JsonObject, other: JsonObject): string[] {
  return columns.filter(({ name }) => !sameJson(one[name] ?? null, other[name] ?? null)).map(({ name }) => name);
}

export function useEditing(shape: RecordShape, id: string, query: UseQueryResult<VersionedRecord, Error>, latest: VersionedRecord): Editing {
  const { object, columns } = shape;
  const cache = useQueryClient();
  const draft = useDraft(latest);
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [failure, setFailure] = useState<unknown>(null);
  const [isSaving, setSaving] = useState(false);
  const [isMerging, setMerging] = useState(false);
  const [elsewhere, setElsewhere] = useState<Elsewhere | null>(null);
  const [deletedByEvent, setDeleted] = useState(false);
  const [glowing, setGlowing] = useState<ReadonlySet<string>>(new Set());
  const [focusOn, setFocusOn] = useState<string | null>(null);
  const saving = useRef(false);
  const draftNow = useRef(draft);
  useEffect(() => {
    draftNow.current = draft;
  });

  const { base, rebase } = draft;
  const isOther = base !== null && !isSaving && latest !== base && (latest.etag !== base.etag || !sameJson(latest.record, base.record));
  const isDirty = draft.isDirty;
  useEffect(() => {
    if (!isOther || isDirty || base === null) return;
    // The draft has no edits, so the form takes the new version and marks the changed columns.
    const changed = differing(columns, base.record, latest.record);
    rebase(latest, {});
    if (changed.length > 0) setGlowing(new Set(changed));
  }, [isOther, isDirty, base, latest, columns, rebase]);
  useEffect(() => {
    if (glowing.size === 0) return;
    const timer = setTimeout(() => setGlowing(new Set()), GLOW_MS);
    return () => clearTimeout(timer);
  }, [glowing]);

  const { refetch } = query;
  const again = useCallback(() => void refetch(), [refetch]);
  const heard = (events: LiveEvent[]) => {
    const mine = events.filter(({ payload }) => payload.id === id);
    if (mine.length === 0) return;
    void cache.invalidateQueries({ queryKey: ["record-history", object, id] });
    void cache.invalidateQueries({ queryKey: ["record-links", object, id] });
    const last = mine.findLast(({ payload }) => payload.op === "updated" || payload.op === "deleted");
    if (last === undefined) return;
    setElsewhere({ actorId: actorOf(last), at: last.occurredAt });
    if (last.payload.op === "deleted") setDeleted(true);
    else if (!saving.current) again();
  };
  useLive([`data.${object}.*`], heard, { onGap: again });

  const settle = useCallback(
    (saved: VersionedRecord, edits: Edits) => {
      cache.setQueryData(recordKey(object, id), saved);
      rebase(saved, edits);
      void cache.invalidateQueries({ queryKey: ["data", object] });
      void cache.invalidateQueries({ queryKey: ["record-history", object, id] });
    },
    [cache, object, id, rebase],
  );

  const store = useCallback(
    async (over: VersionedRecord, edits: Edits): Promise<boolean> => {
      const problems = problemsOf({ base: over, edits }, columns);
      setErrors(problems);
      setFailure(null);
      const first = columns.find(({ name }) => name in problems);
      if (first !== undefined) {
        setFocusOn(null);
        setTimeout(() => setFocusOn(first.name));
        return false;
      }
      saving.current = true;
      setSaving(true);
      try {
        const saved = await updateRecord(object, id, bodyOf(edits, columns), over.etag);
        settle(saved, {});
        setElsewhere(null);
        told("Saved.");
        return true;
      } catch (error) {
        await refused(error as ApiError);
        return false;
      } finally {
        saving.current = false;
        setSaving(false);
      }
    },
    // `refused` is a new function at each render but depends on the same values.
    // eslint-disable-next-line react/exhaustive-deps
    [columns, object, id, settle],
  );

  async function refused(error: ApiError): Promise<void> {
    if (!isApiError(error)) return setFailure(error);
    if (error.status === 412) {
      await refetch();
      setMerging(true);
      return;
    }
    if (error.status === 404) {
      const again = await refetch();
      if (isApiError(again.error) && again.error.status === 404) return;
    }
    const problems = error.byField;
    const first = columns.find(({ name }) => name in problems);
    if (first !== undefined) {
      setErrors(problems);
      setFocusOn(null);
      setTimeout(() => setFocusOn(first.name));
    }
    if (first === undefined || Object.keys(problems).some((field) => columns.every(({ name }) => name !== field))) setFailure(error);
  }

  const { edits } = draft;
  const save = useCallback(async () => (base === null || Object.keys(edits).length === 0 || saving.current ? false : store(base, edits)), [base, edits, store]);
  // A new edit clears the old errors.
  useEffect(() => {
    setErrors((now) => (Object.keys(now).length === 0 ? now : {}));
  }, [edits]);

  const discard = useCallback(() => {
    const { base: under } = draftNow.current;
    setErrors({});
    setFailure(null);
    if (under !== null) rebase(query.data ?? under, {});
  }, [rebase, query.data]);

  const increment = useCallback(
    async (column: Column, amount: string) => {
      const saved = await updateRecord(object, id, { [column.name]: { $inc: readNumber(amount) ?? 0 } }, null);
      const { [column.name]: _, ...rest } = draftNow.current.edits;
      settle(saved, rest);
      setGlowing(new Set([column.name]));
    },
    [object, id, settle],
  );

  const merge = useCallback(() => setMerging(true), []);
  const cancelMerge = useCallback(() => setMerging(false), []);
  const merged = useCallback(
    async (kept: Edits) => {
      setMerging(false);
      rebase(latest, kept);
      const left = Object.fromEntries(Object.entries(kept).filter(([name, value]) => !sameJson(value, latest.record[name] ?? null)));
      if (Object.keys(left).length === 0) {
        setElsewhere(null);
        return true;
      }
      return store(latest, left);
    },
    [latest, rebase, store],
  );

  const isGone = isApiError(query.error) && query.error.status === 404;
  return useMemo(
    () => ({
      draft,
      errors,
      failure,
      isSaving,
      save,
      discard,
      increment,
      newer: isOther && isDirty ? latest : null,
      elsewhere,
      isDeleted: deletedByEvent || isGone,
      glowing,
      isMerging,
      merge,
      cancelMerge,
      merged,
      focusOn,
    }),
    [draft, errors, failure, isSaving, save, discard, increment, isOther, isDirty, latest, elsewhere, deletedByEvent, isGone, glowing, isMerging, merge, cancelMerge, merged, focusOn],
  );
}

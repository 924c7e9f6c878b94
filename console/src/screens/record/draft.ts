/**
 * The unsaved edits of a record. A draft has a base: the record as it was when the draft began, or null for a new record. A column without
 * an edit has the base's value. In a new record it is left out, so that its default applies.
 */
import { useCallback, useMemo, useState } from "react";
import { checkValue } from "../../api/field-rules";
import { type JsonObject, type JsonValue, sameJson } from "../../api/json";
import type { Column } from "../../api/record-shape";
import { wireValue, type VersionedRecord } from "../../api/records";

/** A typed text that is not a valid value, such as "12a" in a number field. */
export class Unreadable {
  constructor(
    readonly text: string,
    readonly message: string,
  ) {}
}

/** `undefined` means that the column is left out. */
export type DraftValue = JsonValue | Unreadable | undefined;
export type Edits = Readonly<Record<string, DraftValue>>;

export interface Draft {
  /** Null for a new record. */
  base: VersionedRecord | null;
  edits: Edits;
  valueOf: (column: string) => DraftValue;
  set: (column: string, value: DraftValue) => void;
  /** Replaces all edits. */
  replace: (edits: Edits) => void;
  /** Changes the base to another version. Edits that would change nothing are dropped. */
  rebase: (base: VersionedRecord, edits?: Edits) => void;
  /** The names of the columns that differ from the base. */
  changed: string[];
  isDirty: boolean;
}

const sameValue = (one: DraftValue, other: DraftValue) =>
  one === other || (one instanceof Unreadable || other instanceof Unreadable ? false : one !== undefined && other !== undefined && sameJson(one, other));

/** The edits without those that change nothing. */
function pruned(base: VersionedRecord | null, edits: Edits): Edits {
  return Object.fromEntries(Object.entries(edits).filter(([name, value]) => !sameValue(value, base === null ? undefined : (base.record[name] ?? null))));
}

export function useDraft(first: VersionedRecord | null, initial: Edits = {}): Draft {
  const [state, setState] = useState(() => ({ base: first, edits: pruned(first, initial) }));
  const { base, edits } = state;
  const set = useCallback(
    (column: string, value: DraftValue) => setState((now) => ({ base: now.base, edits: pruned(now.base, { ...now.edits, [column]: value }) })),
    [],
  );
  const replace = useCallback((next: Edits) => setState((now) => ({ base: now.base, edits: pruned(now.base, next) })), []);
  const rebase = useCallback((next: VersionedRecord, kept?: Edits) => setState((now) => ({ base: next, edits: pruned(next, kept ?? now.edits) })), []);
  return useMemo(() => {
    const valueOf = (column: string): DraftValue => (column in edits ? edits[column] : base === null ? undefined : (base.record[column] ?? null));
    const changed = Object.keys(edits);
    return { base, edits, valueOf, set, replace, rebase, changed, isDirty: changed.length > 0 };
  }, [base, edits, set, replace, rebase]);
}

/** The request body that saves the edits. */
export function bodyOf(edits: Edits, columns: Column[]): JsonObject {
  const body: JsonObject = {};
  for (const column of columns) {
    const value = edits[column.name];
    if (column.name in edits && value !== undefined && !(value instanceof Unreadable)) body[column.name] = wireValue(column, value);
  }
  return body;
}

/** The errors in the draft before it is sent, by column. Only edits are checked, and in a new record also the required columns. */
export function problemsOf(draft: Pick<Draft, "base" | "edits">, columns: Column[]): Record<string, string> {
  const problems: Record<string, string> = {};
  for (const column of columns) {
    const value = draft.edits[column.name];
    if (value instanceof Unreadable) problems[column.name] = value.message;
    else if (value !== undefined) {
      const problem = checkValue(column, value);
      if (problem !== undefined) problems[column.name] = problem;
    } else if (draft.base === null && column.required === true && (column.default === undefined || column.default === null)) problems[column.name] = "This is required.";
  }
  return problems;
}

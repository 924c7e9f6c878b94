/** The draft of a new record, and its creation. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { isApiError } from "../../api/errors";
import type { JsonObject } from "../../api/json";
import type { RecordShape } from "../../api/record-shape";
import { createRecord, recordKey } from "../../api/records";
import { type Draft, type Edits, bodyOf, problemsOf, useDraft } from "./draft";

export interface Creating {
  draft: Draft;
  errors: Record<string, string>;
  failure: unknown;
  isSaving: boolean;
  focusOn: string | null;
  /** Resolves to the record, or to null if it was refused. */
  create: () => Promise<JsonObject | null>;
}

export function useCreating(shape: RecordShape, initial: Edits): Creating {
  const { object, columns } = shape;
  const cache = useQueryClient();
  const draft = useDraft(null, initial);
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [failure, setFailure] = useState<unknown>(null);
  const [isSaving, setSaving] = useState(false);
  const [focusOn, setFocusOn] = useState<string | null>(null);
  const busy = useRef(false);
  const { edits } = draft;
  useEffect(() => {
    setErrors((now) => (Object.keys(now).length === 0 ? now : {}));
  }, [edits]);
  const focus = (name: string) => {
    setFocusOn(null);
    setTimeout(() => setFocusOn(name));
  };
  const create = async (): Promise<JsonObject | null> => {
    if (busy.current) return null;
    const problems = problemsOf(draft, columns);
    setErrors(problems);
    setFailure(null);
    const first = columns.find(({ name }) => name in problems);
    if (first !== undefined) {
      focus(first.name);
      return null;
    }
    busy.current = true;
    setSaving(true);
    try {
      const made = await createRecord(object, bodyOf(edits, columns));
      cache.setQueryData(recordKey(object, String(made.record.id)), made);
      void cache.invalidateQueries({ queryKey: ["data", object] });
      return made.record;
    } catch (error) {
      const problems = isApiError(error) ? error.byField : {};
      const first = columns.find(({ name }) => name in problems);
      if (first !== undefined) {
        setErrors(problems);
        focus(first.name);
      }
      if (first === undefined || Object.keys(problems).some((field) => columns.every(({ name }) => name !== field))) setFailure(error);
      return null;
    } finally {
      busy.current = false;
      setSaving(false);
    }
  };
  return { draft, errors, failure, isSaving, focusOn, create };
}

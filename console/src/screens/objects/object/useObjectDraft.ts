import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { schemaQuery } from "../../../api/schema-live";
import { useCan } from "../../../api/session";
import { type Base, type Draft, type Edits, type Step, draftOf, stepsOf } from "../model/draft";
import { type StepFailure, useEdits } from "../model/store";

export interface ObjectDraft {
  base: Base;
  edits: Edits;
  change: (change: Edits | ((now: Edits) => Edits)) => void;
  draft: Draft;
  steps: Step[];
  failure: StepFailure | null;
  schemaVersion: number | undefined;
}

/** An object with its pending changes. For a new object, `name` is "". */
export function useObjectDraft(name: string): ObjectDraft & { isMissing: boolean; isPending: boolean; error: unknown; refetch: () => void } {
  const canRead = useCan("objects", "read");
  const schema = useQuery({ ...schemaQuery, enabled: canRead });
  const [edits, change, failure] = useEdits(name);
  const base = useMemo<Base>(
    () => ({
      object: name === "" ? null : (schema.data?.objects.find((object) => object.name === name) ?? null),
      relations: schema.data?.relationships ?? [],
      objects: schema.data?.objects.map((object) => object.name) ?? [],
    }),
    [schema.data, name],
  );
  const isMissing = name !== "" && schema.data !== undefined && base.object === null;
  const draft = useMemo(() => draftOf(base, edits), [base, edits]);
  const steps = useMemo(() => (isMissing ? [] : stepsOf(base, edits)), [base, edits, isMissing]);
  return {
    base,
    edits,
    change,
    draft,
    steps,
    failure,
    schemaVersion: schema.data?.version,
    isMissing,
    isPending: schema.data === undefined,
    error: schema.data === undefined ? schema.error : null,
    refetch: () => void schema.refetch(),
  };
}

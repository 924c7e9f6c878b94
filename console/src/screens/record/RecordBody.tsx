/** The shared parts of the panel and the page of a record: the draft, the tabs and the actions. */
import { type UseQueryResult, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { type RecordShape, shapeOfRecord, useRecordShape } from "../../api/record-shape";
import { relatedOf } from "../../api/related";
import { type VersionedRecord, createRecord, recordKey, recordQuery } from "../../api/records";
import { useCanRecords } from "../../api/session";
import { failed } from "../../components/toast";
import { changedBy } from "../../components/ConflictDialog";
import { shortId } from "../../components/Id";
import { HistoryTab } from "./HistoryTab";
import { JsonTab } from "./JsonTab";
import { LinksTab } from "./LinksTab";
import { Merge } from "./Merge";
import { Notices } from "./Notices";
import { RecordForm } from "./RecordForm";
import { bodyOf } from "./draft";
import { copyRead, copyUpdate } from "./copies";
import { type Editing, useEditing } from "./useEditing";

export const TABS = [
  { tab: "form", label: "Form" },
  { tab: "links", label: "Links" },
  { tab: "json", label: "JSON" },
  { tab: "history", label: "History" },
] as const;
export type Tab = (typeof TABS)[number]["tab"];

/** Loads the record and its shape. Each of them can still be loading or have an error. */
export function useLoadedRecord(object: string, id: string) {
  const shape = useRecordShape(object);
  const query = useQuery(recordQuery(object, id));
  const retry = () => {
    shape.refetch();
    void query.refetch();
  };
  return { shape, query, error: query.error ?? shape.error, retry };
}

export interface OpenRecord {
  shape: RecordShape;
  id: string;
  editing: Editing;
  /** The text that stands for the record. */
  label: string;
  readOnly: boolean;
  mayDelete: boolean;
  mayCreate: boolean;
  jsonProblem: string | undefined;
  setJsonProblem: (problem: string | undefined) => void;
  copy: ReturnType<typeof copyRead>;
}

/**
 * The shape with only the fields that the record has. If a field is added to the object later, a record that was read before does not have
 * it.
 */
function useShapeOfRecord(shape: RecordShape, { record }: VersionedRecord): RecordShape {
  const lacking = useMemo(
    () => new Set([...shape.columns.map(({ name }) => name), ...shape.system].filter((name) => !(name in record))),
    // Only a newly loaded record shows which fields it lacks.
    // oxlint-disable-next-line react/exhaustive-deps
    [record],
  );
  return useMemo(() => shapeOfRecord(shape, lacking), [shape, lacking]);
}

export function useOpenRecord(known: RecordShape, id: string, query: UseQueryResult<VersionedRecord, Error>, latest: VersionedRecord): OpenRecord {
  const shape = useShapeOfRecord(known, latest);
  const editing = useEditing(shape, id, query, latest);
  const mayCreate = useCanRecords(shape.object, "create");
  const mayUpdate = useCanRecords(shape.object, "update");
  const mayDelete = useCanRecords(shape.object, "delete");
  const [jsonProblem, setJsonProblem] = useState<string>();
  const { draft, isDeleted } = editing;
  const label = relatedOf(shape.object, draft.base?.record ?? latest.record, shape.columns).label ?? shortId(id);
  const copy = useMemo(
    () => (draft.isDirty ? copyUpdate(shape, id, bodyOf(draft.edits, shape.columns)) : copyRead(shape, id)),
    [shape, id, draft.isDirty, draft.edits],
  );
  return { shape, id, editing, label, readOnly: !mayUpdate || isDeleted, mayDelete: mayDelete && !isDeleted, mayCreate, jsonProblem, setJsonProblem, copy };
}

/** Creates a new record with the values of a deleted one. */
export function useRestore(open: OpenRecord | null, onRestored: (id: string) => void): () => void {
  const cache = useQueryClient();
  return () => {
    if (open === null) return;
    const { shape, editing } = open;
    const values = Object.fromEntries(shape.columns.map(({ name }) => [name, editing.draft.valueOf(name)]));
    createRecord(shape.object, bodyOf(values, shape.columns))
      .then((made) => {
        cache.setQueryData(recordKey(shape.object, String(made.record.id)), made);
        void cache.invalidateQueries({ queryKey: ["data", shape.object] });
        editing.discard();
        onRestored(String(made.record.id));
      })
      .catch((error: unknown) => failed("The record was not created again", error));
  };
}

export function RecordTab({ open, tab, onRestore }: { open: OpenRecord; tab: Tab; onRestore: () => void }) {
  const { shape, id, editing, readOnly, mayCreate, setJsonProblem } = open;
  const { draft, errors, glowing, focusOn, increment, newer, isMerging, cancelMerge, merged, elsewhere } = editing;
  return (
    <>
      <Notices shape={shape} editing={editing} onRestore={onRestore} mayCreate={mayCreate} />
      {tab === "form" && (
        <RecordForm shape={shape} draft={draft} errors={errors} glowing={glowing} readOnly={readOnly} focusOn={focusOn} onIncrement={readOnly ? undefined : increment} />
      )}
      {tab === "links" && <LinksTab shape={shape} id={id} readOnly={readOnly} />}
      {tab === "json" && <JsonTab shape={shape} draft={draft} readOnly={readOnly} onProblem={setJsonProblem} />}
      {tab === "history" && <HistoryTab shape={shape} id={id} />}
      {isMerging && newer !== null && (
        <Merge
          shape={shape}
          draft={draft}
          latest={newer}
          by={elsewhere?.actorId ?? changedBy(newer.record)}
          onCancel={cancelMerge}
          onDone={(edits) => void merged(edits)}
        />
      )}
    </>
  );
}

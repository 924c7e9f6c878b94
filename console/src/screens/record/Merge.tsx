import { useMemo } from "react";
import { columnLabel, type RecordShape } from "../../api/record-shape";
import type { VersionedRecord } from "../../api/records";
import { ConflictDialog, type ConflictField, conflictFields } from "../../components/ConflictDialog";
import { type Draft, type Edits, Unreadable } from "./draft";

/** The columns that somebody else has changed since the draft began. */
export function mergeFields(shape: RecordShape, { base, edits }: Draft, latest: VersionedRecord): ConflictField[] {
  if (base === null) return [];
  const mine = Object.fromEntries(Object.entries(edits).map(([name, edit]) => [name, edit instanceof Unreadable ? edit.text : (edit ?? null)]));
  return conflictFields(shape.columns.map((column) => ({ name: column.name, label: columnLabel(column), type: column.type })), base.record, latest.record, mine);
}

export interface MergeProps {
  shape: RecordShape;
  draft: Draft;
  latest: VersionedRecord;
  by: string | null | undefined;
  onCancel: () => void;
  /** Called with the edits that remain on top of the newer version. */
  onDone: (edits: Edits) => void;
}

/** Merges a draft with a version that somebody else has saved since. */
export function Merge({ shape, draft, latest, by, onCancel, onDone }: MergeProps) {
  const fields = useMemo(() => mergeFields(shape, draft, latest), [shape, draft, latest]);
  const untouched = draft.changed.filter((name) => !fields.some((field) => field.name === name));
  const apply = (mine: ConflictField[]) =>
    onDone({
      ...Object.fromEntries(untouched.map((name) => [name, draft.edits[name]])),
      ...Object.fromEntries(mine.map(({ name, isEdited, before }) => [name, isEdited ? draft.edits[name] : before])),
    });
  return <ConflictDialog fields={fields} by={by} at={latest.record.updated_at} untouched={untouched} leave="Go on editing" onLeave={onCancel} save="Save the choice" onSave={apply} />;
}

import { ConflictDialog, type ConflictField, changedBy, conflictFields } from "../../components/ConflictDialog";
import { useReturnedFocus } from "../../components/useReturnedFocus";
import type { RecordShape } from "./columns";
import type { Conflict } from "./useEdits";

/** Shown if somebody else changed the record of a cell first. */
export function CellConflict({ conflict: { id, row, before, mine, settle }, shape }: { conflict: Conflict; shape: RecordShape }) {
  // The next conflict opens its own dialog. After the last one, the focus returns to where it was before the first.
  useReturnedFocus();
  const columns = shape.columns.filter(({ isSystem }) => !isSystem).map(({ id: name, label, type }) => ({ name, label, type }));
  const fields = conflictFields(columns, before, row, mine);
  const untouched = Object.keys(mine).filter((name) => !fields.some((field) => field.name === name));
  const save = (kept: ConflictField[]) => {
    const values = Object.fromEntries([...untouched.map((name) => [name, mine[name] ?? null] as const), ...kept.map((field) => [field.name, field.mine] as const)]);
    settle(Object.keys(values).length === 0 ? null : values);
  };
  return (
    <ConflictDialog
      key={id}
      fields={fields}
      by={changedBy(row)}
      at={row.updated_at}
      untouched={untouched.map((name) => shape.byId.get(name)?.label ?? name)}
      leave="Keep what is there"
      onLeave={() => settle(null)}
      save="Save mine"
      onSave={save}
    />
  );
}

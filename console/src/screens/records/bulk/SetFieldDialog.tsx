/** Chooses a column and the value that all selected records get. */
import { Button, Group, Modal, Select, Stack, Switch } from "@mantine/core";
import { useMounted } from "@mantine/hooks";
import { useEffect, useState } from "react";
import type { JsonValue } from "../../../api/json";
import type { Column } from "../../../api/record-shape";
import type { DraftValue } from "../../record/draft";
import { FieldEditor } from "../../record/fields/FieldEditor";
import type { RecordColumn, RecordShape } from "../columns";
import { readDraft } from "../editors/readDraft";

/** The value before the person enters one: an empty text for a text column, and none for other types. */
const emptyDraft = (column: RecordColumn | undefined): DraftValue => (column?.type === "text" ? "" : undefined);

/** Without the default: it does not apply to existing records, so the field must not show it. */
function edited({ label, field: { default: _default, ...field } }: RecordColumn): Column {
  return { ...field, label: `New value of ${label}` };
}

export function SetFieldDialog({ opened, shape, count, onClose, onSet }: { opened: boolean; shape: RecordShape; count: string; onClose: () => void; onSet: (column: RecordColumn, value: JsonValue) => void }) {
  const isMounted = useMounted();
  const [columnId, setColumnId] = useState<string | null>(null);
  const [draft, setDraft] = useState<DraftValue>();
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    if (!opened) return;
    setColumnId(null);
    setProblem(undefined);
  }, [opened]);
  const column = columnId === null ? undefined : shape.byId.get(columnId);
  const editable = shape.columns.filter(({ isReadOnly, relation, field }) => !isReadOnly && (relation !== undefined || field.isUnique !== true));
  return (
    <Modal opened={isMounted && opened} onClose={onClose} title={`Change ${count}`} centered size="md">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (column === undefined) return;
          const read = readDraft(draft, column);
          if ("problem" in read) setProblem(read.problem);
          else onSet(column, read.value);
        }}
      >
        <Stack gap="md">
          <Select
            label="Column"
            placeholder="Choose a column"
            searchable
            data-autofocus
            data={editable.map(({ id, label }) => ({ value: id, label: label === id ? id : `${label} (${id})` }))}
            value={columnId}
            onChange={(id) => {
              setColumnId(id);
              setDraft(emptyDraft(id === null ? undefined : shape.byId.get(id)));
              setProblem(undefined);
            }}
          />
          {column !== undefined && (
            <div>
              {draft !== null && (
                <FieldEditor
                  key={column.id}
                  object={shape.name}
                  column={edited(column)}
                  value={draft}
                  error={problem !== undefined}
                  compact
                  onChange={(next) => {
                    // An empty field does not mean null. Only the switch below sets null.
                    setDraft(next ?? undefined);
                    setProblem(undefined);
                  }}
                />
              )}
              {!column.required && <Switch mt="sm" label="Set null" checked={draft === null} onChange={(event) => setDraft(event.currentTarget.checked ? null : emptyDraft(column))} />}
              {problem !== undefined && (
                <div role="alert" style={{ color: "var(--bb-red)", fontSize: 12, marginTop: 4 }}>
                  {problem}
                </div>
              )}
            </div>
          )}
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" disabled={column === undefined}>
              Change {count}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

/** Chooses a column and the value that all selected records get. */
import { Button, Group, Modal, Select, Stack, Switch } from "@mantine/core";
import { useMounted } from "@mantine/hooks";
import { useEffect, useState } from "react";
import type { JsonValue } from "../../../api/json";
import type { RecordColumn, RecordShape } from "../columns";
import { type Draft, ValueInput, readDraft } from "../editors/ValueInput";

const EMPTY: Draft = { text: "", isNull: false };

export function SetFieldDialog({ opened, shape, count, onClose, onSet }: { opened: boolean; shape: RecordShape; count: string; onClose: () => void; onSet: (column: RecordColumn, value: JsonValue) => void }) {
  const isMounted = useMounted();
  const [columnId, setColumnId] = useState<string | null>(null);
  const [draft, setDraft] = useState<Draft>(EMPTY);
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    if (!opened) return;
    setColumnId(null);
    setDraft(EMPTY);
    setProblem(undefined);
  }, [opened]);
  const column = columnId === null ? undefined : shape.byId.get(columnId);
  const editable = shape.columns.filter(({ isSystem, field }) => !isSystem && field?.isUnique !== true);
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
              setDraft(EMPTY);
              setProblem(undefined);
            }}
          />
          {column !== undefined && (
            <div>
              {!draft.isNull && (
                <ValueInput
                  key={column.id}
                  object={shape.name}
                  column={column}
                  draft={draft}
                  label={`New value of ${column.label}`}
                  error={problem !== undefined}
                  onDraft={(next) => {
                    setDraft(next);
                    setProblem(undefined);
                  }}
                  onChoose={setDraft}
                />
              )}
              {!column.required && <Switch mt="sm" label="Set null" checked={draft.isNull} onChange={(event) => setDraft({ text: "", isNull: event.currentTarget.checked })} />}
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

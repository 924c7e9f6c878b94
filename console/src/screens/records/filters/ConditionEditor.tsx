/** Column, operator and value of one condition. */
import { Button, Group, Select, Stack } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import type { RecordShape } from "../columns";
import { type Condition, type Operator, converted, initial, isWhole, operatorLabel, operatorsOf } from "./conditions";
import { FilterValue } from "./FilterValue";

export interface ConditionEditorProps {
  shape: RecordShape;
  condition: Condition | null;
  action: string;
  onApply: (condition: Condition) => void;
  onRemove?: () => void;
}

export function ConditionEditor({ shape, condition, action, onApply, onRemove }: ConditionEditorProps) {
  const [draft, setDraft] = useState<Condition | null>(condition);
  const column = draft === null ? undefined : shape.byId.get(draft.field);
  const place = useRef<HTMLDivElement>(null);
  const whole = draft !== null && isWhole(draft, column);
  const apply = () => {
    if (draft !== null && whole) onApply(draft);
  };
  // After a column was chosen the value is what comes next.
  const chosen = useRef(condition !== null);
  const columnId = column?.id;
  useEffect(() => {
    if (columnId === undefined || chosen.current) return;
    chosen.current = true;
    place.current?.querySelector<HTMLElement>("[data-autofocus]:not([data-column])")?.focus();
  }, [columnId]);
  return (
    <Stack
      gap="sm"
      w={280}
      ref={place}
      component="form"
      onSubmit={(event) => {
        event.preventDefault();
        apply();
      }}
    >
      <Select
        aria-label="Column"
        data-column
        {...(draft === null ? { "data-autofocus": true } : {})}
        searchable
        selectFirstOptionOnChange
        placeholder="Column"
        nothingFoundMessage="No such column"
        comboboxProps={{ withinPortal: false }}
        maxDropdownHeight={260}
        data={shape.columns.map(({ id, label }) => ({ value: id, label: label === id ? id : `${label} (${id})` }))}
        value={draft?.field ?? null}
        onChange={(field) => setDraft(initial(field === null ? undefined : shape.byId.get(field)))}
      />
      {draft !== null && column !== undefined && (
        <>
          <Select
            aria-label="Operator"
            allowDeselect={false}
            comboboxProps={{ withinPortal: false }}
            maxDropdownHeight={320}
            data={operatorsOf(column).map((operator) => ({ value: operator, label: operatorLabel(operator, column) }))}
            value={draft.operator}
            onChange={(operator) => operator !== null && setDraft({ ...draft, operator: operator as Operator, value: converted(draft.value, operator as Operator) })}
          />
          <FilterValue object={shape.name} column={column} condition={draft} onChange={(value) => setDraft({ ...draft, value })} onSubmit={apply} />
        </>
      )}
      <Group justify="space-between" gap="sm">
        {onRemove === undefined ? (
          <span />
        ) : (
          <Button variant="subtle" color="gray" onClick={onRemove}>
            Remove
          </Button>
        )}
        <Button type="submit" disabled={!whole}>
          {action}
        </Button>
      </Group>
    </Stack>
  );
}

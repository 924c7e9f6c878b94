/** The conditions of a view as chips. Each opens its editor; `Delete` takes it away. */
import { Button, Group, Popover, Select, Stack } from "@mantine/core";
import { IconAlertTriangle, IconFilter, IconX } from "@tabler/icons-react";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { RecordColumn, RecordShape } from "../columns";
import { toLocal } from "../../../api/local-time";
import { type Condition, type Operator, converted, isWhole, operatorLabel, operatorsOf, takesNothing } from "./conditions";
import { FilterValue } from "./FilterValue";
import classes from "./Filters.module.css";

export interface FilterBarProps {
  shape: RecordShape;
  conditions: Condition[];
  onChange: (conditions: Condition[]) => void;
  /** Shows the editor of a new condition, of this column where one is named. */
  adding: { column?: string } | null;
  onAdding: (adding: { column?: string } | null) => void;
  titleOf: (column: RecordColumn, id: string) => string | undefined;
}

export function FilterBar({ shape, conditions, onChange, adding, onAdding, titleOf }: FilterBarProps) {
  const [open, setOpen] = useState<number | null>(null);
  const add = useRef<HTMLButtonElement>(null);
  const bar = useRef<HTMLDivElement>(null);
  const remove = (index: number) => {
    onChange(conditions.filter((_, each) => each !== index));
    setOpen(null);
    // Focus goes to the chip that took its place, or to the button behind them.
    requestAnimationFrame(() => (bar.current?.querySelectorAll<HTMLElement>("[data-chip]")[index] ?? add.current)?.focus());
  };
  return (
    <div className={classes.bar} ref={bar} role="group" aria-label="Filter">
      {conditions.map((condition, index) => {
        const column = shape.byId.get(condition.field);
        const isBroken = column === undefined;
        return (
          // Conditions may be alike, so their place is their identity.
          <div className={classes.chip} key={`${index}-${condition.field}`} data-broken={isBroken || undefined}>
            <Popover opened={open === index} onChange={(opened) => setOpen(opened ? index : null)} position="bottom-start" trapFocus returnFocus withinPortal>
              <Popover.Target>
                <button
                  type="button"
                  data-chip
                  className={classes.chipLabel}
                  aria-haspopup="dialog"
                  aria-expanded={open === index}
                  onClick={() => !isBroken && setOpen(open === index ? null : index)}
                  onKeyDown={(event: KeyboardEvent) => {
                    if (event.key !== "Delete" && event.key !== "Backspace") return;
                    event.preventDefault();
                    remove(index);
                  }}
                >
                  {isBroken && <IconAlertTriangle size={13} aria-hidden="true" />}
                  <bdi className={classes.field}>{column?.label ?? condition.field}</bdi>
                  {isBroken ? (
                    <span>is no column any more</span>
                  ) : (
                    <>
                      <span className="dim">{operatorLabel(condition.operator, column)}</span>
                      {!takesNothing(condition.operator) && <bdi className={classes.value}>{said(condition, column, titleOf)}</bdi>}
                    </>
                  )}
                </button>
              </Popover.Target>
              <Popover.Dropdown aria-label={`Condition on ${column?.label ?? condition.field}`}>
                <ConditionEditor
                  shape={shape}
                  condition={condition}
                  action="Apply"
                  onApply={(next) => {
                    onChange(conditions.map((each, at) => (at === index ? next : each)));
                    setOpen(null);
                  }}
                  onRemove={() => remove(index)}
                />
              </Popover.Dropdown>
            </Popover>
            <button type="button" className={classes.remove} aria-label={`Remove the condition on ${column?.label ?? condition.field}`} onClick={() => remove(index)}>
              <IconX size={12} aria-hidden="true" />
            </button>
          </div>
        );
      })}
      <Popover opened={adding !== null} onChange={(opened) => onAdding(opened ? {} : null)} position="bottom-start" trapFocus returnFocus withinPortal>
        <Popover.Target>
          <Button ref={add} variant="default" leftSection={<IconFilter size={14} />} onClick={() => onAdding(adding === null ? {} : null)}>
            Filter
          </Button>
        </Popover.Target>
        <Popover.Dropdown aria-label="New condition">
          {adding !== null && (
            <ConditionEditor
              shape={shape}
              condition={adding.column === undefined ? null : initial(shape.byId.get(adding.column))}
              action="Add condition"
              onApply={(next) => {
                onChange([...conditions, next]);
                onAdding(null);
              }}
            />
          )}
        </Popover.Dropdown>
      </Popover>
      {conditions.length > 1 && (
        <Button variant="subtle" color="gray" onClick={() => onChange([])}>
          Clear
        </Button>
      )}
    </div>
  );
}

/** The value of a condition as people read it. */
function said({ value }: Condition, column: RecordColumn, titleOf: FilterBarProps["titleOf"]): string {
  const one = (each: string) => {
    if (each === "") return '""';
    if (column.type === "datetime") return toLocal(each).replace("T", " ") || each;
    return titleOf(column, each) ?? each;
  };
  const text = Array.isArray(value) ? value.map(one).join(", ") : one(value ?? "");
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function initial(column: RecordColumn | undefined): Condition | null {
  const operator = column === undefined ? undefined : operatorsOf(column)[0];
  return column === undefined || operator === undefined ? null : { field: column.id, operator, value: converted("", operator) };
}

interface ConditionEditorProps {
  shape: RecordShape;
  condition: Condition | null;
  action: string;
  onApply: (condition: Condition) => void;
  onRemove?: () => void;
}

function ConditionEditor({ shape, condition, action, onApply, onRemove }: ConditionEditorProps) {
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

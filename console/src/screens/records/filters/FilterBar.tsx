/** The conditions of a view as chips. Each opens its editor; `Delete` takes it away. */
import { Button } from "@mantine/core";
import { IconAlertTriangle, IconFilter, IconX } from "@tabler/icons-react";
import { type KeyboardEvent, useRef, useState } from "react";
import { Popover } from "../../../components/floating";
import { later } from "../../../components/later";
import type { RecordColumn, RecordShape } from "../columns";
import { toLocal } from "../../../api/local-time";
import { type Condition, initial, operatorLabel, takesNothing } from "./conditions";
import classes from "./Filters.module.css";

const ConditionEditor = later(() => import("./ConditionEditor").then((loaded) => loaded.ConditionEditor));

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
            <Popover opened={open === index} onChange={(opened) => setOpen(opened ? index : null)} position="bottom-start" trapFocus returnFocus withinPortal preload={ConditionEditor.preload}>
              <Popover.Target>
                <button
                  type="button"
                  data-chip
                  className={classes.chipLabel}
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
      <Popover opened={adding !== null} onChange={(opened) => onAdding(opened ? {} : null)} position="bottom-start" trapFocus returnFocus withinPortal preload={ConditionEditor.preload}>
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

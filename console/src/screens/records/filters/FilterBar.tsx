/**
 * The filter of a view as chips. A chip opens the editor of its condition, or the builder if it is more than one condition. `Delete`
 * removes the chip.
 */
import { Button } from "@mantine/core";
import { IconAlertTriangle, IconFilter, IconX } from "@tabler/icons-react";
import { type KeyboardEvent, useMemo, useRef, useState } from "react";
import { Popover } from "../../../components/floating";
import { later } from "../../../components/later";
import type { RecordShape } from "../columns";
import { initial } from "./conditions";
import { Sentence } from "./Sentence";
import { type Filter, type Part, type ShapeOf, columnOf, emptyTest, filterOf, partsOf, testOf } from "./tree";
import { type TitleOf, textOf, wordsOf } from "./words";
import classes from "./Filters.module.css";

const ConditionEditor = later(() => import("./ConditionEditor").then((loaded) => loaded.ConditionEditor));
const Builder = later(() => import("./Builder").then((loaded) => loaded.Builder));

export interface FilterBarProps {
  shape: RecordShape;
  of: ShapeOf;
  filter: Filter;
  /** The search text beside the filter. The builder counts the records that match both. */
  search: string;
  onChange: (filter: Filter) => void;
  /** Opens the editor of a new condition, for this column if one is given. */
  adding: { column?: string } | null;
  onAdding: (adding: { column?: string } | null) => void;
  titleOf: TitleOf;
  /** The name of the bar and of its button. */
  label?: string;
  /** Whether the bar takes plain conditions only. */
  isPlain?: boolean;
}

export function FilterBar({ shape, of, filter, search, onChange, adding, onAdding, titleOf, label: name = "Filter", isPlain = false }: FilterBarProps) {
  const [open, setOpen] = useState<number | null>(null);
  /**
   * The parts with which the builder opens, and the chip that gets the focus when it closes. Without a chip, the button after the chips
   * gets it.
   */
  const [building, setBuilding] = useState<{ from: Part[] | string; chip?: number | undefined } | null>(null);
  const add = useRef<HTMLButtonElement>(null);
  const bar = useRef<HTMLDivElement>(null);
  const read = useMemo(() => partsOf(filter, shape, of), [filter, shape, of]);
  // A text that is not a valid condition is shown as it is. The server says what is wrong with it.
  const isUnread = filter.where !== "" && read === undefined;
  const parts = isUnread || read === undefined ? filter.conditions.map(testOf) : read;
  const put = (next: Part[]) => onChange(isUnread ? { conditions: filterOf(next, shape, of).conditions, where: filter.where } : filterOf(next, shape, of));
  const count = parts.length + (isUnread ? 1 : 0);
  const takesBuilder = !isPlain && !isUnread;
  const focusAfter = (index: number) => requestAnimationFrame(() => (bar.current?.querySelectorAll<HTMLElement>("[data-chip]")[index] ?? add.current)?.focus());
  const remove = (index: number) => {
    if (index < parts.length) put(parts.filter((_, each) => each !== index));
    else onChange({ ...filter, where: "" });
    setOpen(null);
    // The focus moves to the chip that takes the place of the removed one, or to the button after the chips.
    focusAfter(index);
  };
  const build = (from: Part[] | string, chip?: number) => {
    setOpen(null);
    onAdding(null);
    setBuilding({ from, chip });
  };
  const endBuilding = () => {
    setBuilding(null);
    focusAfter(building?.chip ?? Number.POSITIVE_INFINITY);
  };
  const deletes = (index: number) => (event: KeyboardEvent) => {
    if (event.key !== "Delete" && event.key !== "Backspace") return;
    event.preventDefault();
    remove(index);
  };
  return (
    <div className={classes.bar} ref={bar} role="group" aria-label={name}>
      {parts.map((part, index) => {
        const isBroken = part.kind === "test" && columnOf(part, shape, of) === undefined;
        const words = wordsOf(part, { shape, of, titleOf }, true);
        const text = textOf(words);
        const about = part.kind === "test" ? `on ${words[0]!.text}` : text;
        const label = (
          <button
            type="button"
            data-chip
            className={classes.chipLabel}
            {...(part.kind === "test" ? {} : { "data-tip": text, "aria-haspopup": "dialog" as const })}
            onClick={() => (part.kind === "test" ? !isBroken && setOpen(open === index ? null : index) : build(parts, index))}
            onKeyDown={deletes(index)}
          >
            {isBroken && <IconAlertTriangle size={13} aria-hidden="true" />}
            <span className={classes.sentence}>
              <Sentence words={words} />
            </span>
          </button>
        );
        return (
          // Two conditions may be equal, so the index is the key.
          <div className={classes.chip} key={`${index}-${part.kind === "test" ? part.field : part.kind}`} data-broken={isBroken || undefined}>
            {part.kind === "test" ? (
              <Popover opened={open === index} onChange={(opened) => setOpen(opened ? index : null)} position="bottom-start" trapFocus returnFocus withinPortal closeOnEscape={false} preload={ConditionEditor.preload}>
                <Popover.Target>{label}</Popover.Target>
                <Popover.Dropdown aria-label={`Condition ${about}`}>
                  <ConditionEditor
                    shape={shape}
                    of={of}
                    test={part}
                    action="Apply"
                    onApply={(next) => {
                      put(parts.with(index, next));
                      setOpen(null);
                    }}
                    onRemove={() => remove(index)}
                    onBuild={takesBuilder ? (next) => build(goingOn(parts.with(index, next), next), index) : undefined}
                    onClose={() => setOpen(null)}
                    among={(next) => parts.with(index, next)}
                    search={search}
                  />
                </Popover.Dropdown>
              </Popover>
            ) : (
              label
            )}
            <button type="button" className={classes.remove} aria-label={`Remove the condition ${about}`} onClick={() => remove(index)}>
              <IconX size={12} aria-hidden="true" />
            </button>
          </div>
        );
      })}
      {isUnread && (
        <div className={classes.chip} data-broken>
          <button type="button" data-chip className={classes.chipLabel} aria-haspopup="dialog" onClick={() => build(filter.where, parts.length)} onKeyDown={deletes(parts.length)}>
            <IconAlertTriangle size={13} aria-hidden="true" />
            <span className={classes.sentence}>
              where <bdi className={classes.raw}>{filter.where}</bdi>
            </span>
          </button>
          <button type="button" className={classes.remove} aria-label="Remove the condition of the address" onClick={() => remove(parts.length)}>
            <IconX size={12} aria-hidden="true" />
          </button>
        </div>
      )}
      <Popover opened={adding !== null} onChange={(opened) => onAdding(opened ? {} : null)} position="bottom-start" trapFocus returnFocus withinPortal closeOnEscape={false} preload={ConditionEditor.preload}>
        <Popover.Target>
          <Button ref={add} variant="default" leftSection={<IconFilter size={14} />} onClick={() => onAdding(adding === null ? {} : null)}>
            {name}
          </Button>
        </Popover.Target>
        <Popover.Dropdown aria-label="New condition">
          {adding !== null && (
            <ConditionEditor
              shape={shape}
              of={of}
              test={columnTest(shape, adding.column)}
              action="Add condition"
              onApply={(next) => {
                put([...parts, next]);
                onAdding(null);
              }}
              onBuild={takesBuilder ? (next) => build(goingOn([...parts, next], next)) : undefined}
              onClose={() => onAdding(null)}
              among={(next) => [...parts, next]}
              search={search}
            />
          )}
        </Popover.Dropdown>
      </Popover>
      {count > 1 && (
        <Button variant="subtle" color="gray" onClick={() => onChange({ conditions: [], where: "" })}>
          Clear
        </Button>
      )}
      {building !== null && (
        <Builder
          shape={shape}
          of={of}
          from={building.from}
          search={search}
          titleOf={titleOf}
          onClose={endBuilding}
          onApply={(next) => {
            onChange(next);
            endBuilding();
          }}
        />
      )}
    </div>
  );
}

/** A person who continues in the builder wants another condition beside the current one. */
const goingOn = (parts: Part[], draft: Part): Part[] => (draft.kind === "test" && draft.field !== "" ? [...parts, emptyTest()] : parts);

function columnTest(shape: RecordShape, column: string | undefined) {
  const condition = column === undefined ? null : initial(shape.byId.get(column));
  return condition === null ? null : testOf(condition);
}

/** Chooses a field of a record or of a related record. Choosing a relation shows the fields of its object. */
import { Combobox, TextInput, useCombobox } from "@mantine/core";
import { IconArrowRight, IconChevronLeft } from "@tabler/icons-react";
import { useEffect, useRef, useState } from "react";
import { allows, usePermissions } from "../../../api/session";
import { typing } from "../../../components/typing";
import type { RecordColumn, RecordShape } from "../columns";
import { relationLabel } from "./words";
import { type Part, type ShapeOf, columnOf, emptyTest, groupOf, shapeAt } from "./tree";
import classes from "./Editors.module.css";

/** The picker shows at most this many matches. People type more to narrow them down. */
const SHOWN_MAX = 100;
const ARROW = " → ";

export interface FieldPickerProps {
  shape: RecordShape;
  of: ShapeOf;
  path: string[];
  /** Empty if no field is chosen. */
  field: string;
  onField: (path: string[], column: RecordColumn) => void;
  /** Called for a relation to many records. Without it, the picker does not offer such relations. */
  onRelated?: ((path: string[]) => void) | undefined;
  /** Whether the server would accept a filter with this part in this place. */
  mayTake: (part: Part) => boolean;
  isInvalid?: boolean;
  autoFocus?: boolean;
  withinPortal: boolean;
}

interface Choice {
  value: string;
  label: string;
  /** A text after the label. */
  note?: string;
  leads?: "back" | "on";
  isKept?: boolean;
  choose: () => void;
}

export function FieldPicker({ shape, of, path, field, onField, onRelated, mayTake, isInvalid = false, autoFocus = false, withinPortal }: FieldPickerProps) {
  const permissions = usePermissions();
  const [typed, setTyped] = useState<string | null>(null);
  /** The relations that the person has followed in the picker. It shows the fields at their end. */
  const [at, setAt] = useState(path);
  const input = useRef<HTMLInputElement>(null);
  const box = useCombobox({
    onDropdownClose: () => {
      box.resetSelectedOption();
      setTyped(null);
      setAt(path);
    },
  });
  const { dropdownOpened, selectOption, resetSelectedOption } = box;
  const names = (keys: string[]) => keys.map((key, index) => relationLabel(key, shapeAt(keys.slice(0, index), shape, of)));
  const labelled = ({ id, label }: RecordColumn) => (label === id ? id : `${label} (${id})`);
  const column = columnOf({ path, field }, shape, of);
  const shown = field === "" ? "" : [...names(path), column === undefined ? field : path.length === 0 ? labelled(column) : column.label].join(ARROW);

  const go = (next: string[]) => {
    setAt(next);
    setTyped("");
    input.current?.focus();
  };
  const offered = (keys: string[]) => {
    const from = shapeAt(keys, shape, of);
    return [...(from?.relations.values() ?? [])].filter(({ key, target, isMany }) => {
      if (of(target) === undefined || !allows(permissions, target, "read") || (isMany && onRelated === undefined)) return false;
      const further = [...keys, key];
      // The size is checked with an operator, which adds one level of JSON compared with a plain value.
      const test = { ...emptyTest(), field: "id", operator: "gt" as const };
      return mayTake(isMany ? { kind: "related", path: further, quantifier: "some", inner: groupOf([test]) } : { ...test, path: further });
    });
  };
  const query = (typed ?? "").trim().toLowerCase();
  const matches = (text: string) => query.split(/\s+/).every((word) => text.toLowerCase().includes(word));
  const fieldsAt = (keys: string[], under: string[]): Choice[] =>
    (shapeAt(keys, shape, of)?.columns ?? []).map((each) => ({
      value: `field:${[...keys, each.id].join(".")}`,
      isKept: each.isSystem && each.id !== "id",
      label: [...under, labelled(each)].join(ARROW),
      choose: () => {
        onField(keys, each);
        box.closeDropdown();
      },
    }));
  const choices = (): { title?: string; choices: Choice[] }[] => {
    if (!dropdownOpened) return [];
    const relations = offered(at);
    // Relations come before the columns that the server sets on every record, so that people see them.
    const fields = fieldsAt(at, []).filter(({ label }) => matches(label));
    const kept = fields.filter(({ isKept }) => isKept);
    const on = relations
      .filter(({ label, key }) => matches(`${label} ${key}`))
      .map(({ key, label, isMany }): Choice => {
        const further = [...at, key];
        return {
          value: `on:${further.join(".")}`,
          label,
          leads: "on",
          ...(isMany ? { note: "many" } : {}),
          choose: isMany
            ? () => {
                box.closeDropdown();
                onRelated!(further);
              }
            : () => go(further),
        };
      });
    // While the person types, the fields of related records are found without opening the relation.
    const behind = query === "" ? [] : relations.flatMap(({ key, label, isMany }) => (isMany ? [] : fieldsAt([...at, key], [label]).filter((choice) => matches(choice.label))));
    const back: Choice[] = at.length === 0 || query !== "" ? [] : [{ value: "back", label: names(at).join(ARROW), leads: "back", choose: () => go(at.slice(0, -1)) }];
    return [{ choices: [...back, ...fields.filter(({ isKept }) => isKept !== true)] }, { title: "Relations", choices: [...on, ...behind] }, { title: "Kept by the server", choices: kept }];
  };
  const groups = choices();
  const all = groups.flatMap(({ choices: each }) => each);

  const wanted = `${at.join(".")} ${query}`;
  // Marks the first match, so that Enter chooses it. If nothing is typed, it marks the first field, not the way back.
  useEffect(() => {
    if (!dropdownOpened || (typed === null && at.length === 0)) return;
    const timer = setTimeout(() => {
      resetSelectedOption();
      selectOption(query === "" && at.length > 0 ? 1 : 0);
    });
    return () => clearTimeout(timer);
    // oxlint-disable-next-line react/exhaustive-deps
  }, [wanted, dropdownOpened]);

  return (
    <Combobox store={box} withinPortal={withinPortal} transitionProps={{ duration: 0 }} width="target" floatingStrategy="absolute" onOptionSubmit={(value) => all.find((each) => each.value === value)?.choose()}>
      <Combobox.Target withExpandedAttribute>
        <TextInput
          ref={input}
          aria-label="Column"
          data-column
          {...(autoFocus ? { "data-autofocus": true, autoFocus } : {})}
          placeholder="Column"
          error={isInvalid}
          {...(at.length > 0 && dropdownOpened && typed !== null ? { placeholder: `A column of ${names(at).join(ARROW)}` } : {})}
          {...typing(box, typed, shown, setTyped)}
          onBlur={() => box.closeDropdown()}
          onKeyDown={(event) => {
            // If the list is open, Escape closes only the list and nothing around it.
            if (event.key === "Escape" && (dropdownOpened || typed !== null)) event.stopPropagation();
            if (event.key === "Enter" && dropdownOpened) {
              event.preventDefault();
              // Enter was faster than the mark, so choose the first match.
              if (query !== "" && box.getSelectedOptionIndex() === -1) all[0]?.choose();
            }
            if (event.key === "Backspace" && typed === "" && at.length > 0) {
              event.preventDefault();
              go(at.slice(0, -1));
            }
          }}
          rightSection={<Combobox.Chevron />}
          rightSectionPointerEvents="none"
        />
      </Combobox.Target>
      <Combobox.Dropdown miw={240}>
        <Combobox.Options mah={340} style={{ overflowY: "auto" }} aria-label="Columns and relations">
          {groups.map(({ title, choices: each }) =>
            each.length === 0 ? null : title === undefined ? (
              each.slice(0, SHOWN_MAX).map(option)
            ) : (
              <Combobox.Group key={title} label={title}>
                {each.slice(0, SHOWN_MAX).map(option)}
              </Combobox.Group>
            ),
          )}
          {dropdownOpened && all.length === 0 && <Combobox.Empty>No such column</Combobox.Empty>}
        </Combobox.Options>
      </Combobox.Dropdown>
    </Combobox>
  );
}

function option({ value, label, note, leads }: Choice) {
  return (
    <Combobox.Option key={value} value={value} {...(leads === "back" ? { "aria-label": `Back from ${label}` } : leads === "on" ? { "aria-label": note === undefined ? `Columns of ${label}` : `${label}, ${note} records` } : {})}>
      <span className={classes.option}>
        {leads === "back" && <IconChevronLeft size={13} aria-hidden="true" />}
        <bdi className={classes.optionText}>{label}</bdi>
        {note !== undefined && <span className={classes.note}>{note}</span>}
        {leads === "on" && <IconArrowRight size={13} aria-hidden="true" />}
      </span>
    </Combobox.Option>
  );
}

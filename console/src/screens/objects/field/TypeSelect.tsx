/**
 * Chooses the type of a field. The person can type the name in the API or the plain name. The first match is chosen. A text that matches no
 * type is an error.
 */
import { Combobox, TextInput, useCombobox } from "@mantine/core";
import { type KeyboardEvent, useEffect, useState } from "react";
import { typing } from "../../../components/typing";
import { FIELD_TYPES, type FieldTypeInfo, isKnownType, typeInfo, typesLike } from "../model/fieldTypes";
import classes from "./FieldForm.module.css";
import type { FieldType } from "../../../api/types";

const GROUPS = [...new Set(FIELD_TYPES.map(({ group }) => group))];

export interface TypeSelectProps {
  type: FieldType;
  onChange: (type: FieldType) => void;
  label?: string;
  "aria-label"?: string;
  error?: string | undefined;
}

export function TypeSelect({ type, onChange, label, "aria-label": ariaLabel, error }: TypeSelectProps) {
  const [typed, setTyped] = useState<string | null>(null);
  const box = useCombobox({ onDropdownClose: () => box.resetSelectedOption() });
  const { selectFirstOption } = box;
  const found = typed === null || typed.trim() === "" ? undefined : typesLike(typed);
  const choose = (next: FieldType) => {
    setTyped(null);
    box.closeDropdown();
    if (next !== type) onChange(next);
  };
  useEffect(() => {
    if (typed === null || typed.trim() === "") return;
    // Waits one turn, because the list may only open with the first letter.
    const timer = setTimeout(selectFirstOption);
    return () => clearTimeout(timer);
  }, [typed, selectFirstOption]);
  const leave = () => {
    box.closeDropdown();
    if (typed === null) return;
    const first = found?.[0];
    setTyped(null);
    if (first !== undefined) choose(first.type);
    // The draft keeps a text that matches no type, but cannot be saved with it.
    else if (typed.trim() !== "") onChange(typed.trim() as FieldType);
  };
  const keyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape" && (box.dropdownOpened || typed !== null)) {
      event.stopPropagation();
      setTyped(null);
    } else if (event.key === "Enter" && typed !== null) {
      // While the person types a type, Enter only works in this field.
      event.preventDefault();
      if (box.getSelectedOptionIndex() === -1) leave();
    }
  };
  const option = (each: FieldTypeInfo) => (
    <Combobox.Option key={each.type} value={each.type} active={each.type === type}>
      <span className={classes.option}>
        <each.icon size={16} stroke={1.75} aria-hidden="true" />
        <span>
          <span className={classes.word}>{each.type}</span> <span className={classes.plain}>{each.label}</span>
          <span className={classes.hint}>{each.hint}</span>
        </span>
      </span>
    </Combobox.Option>
  );
  const { icon: Icon } = typeInfo(type);
  const unknown = typed !== null && typed.trim() !== "" && found?.length === 0;
  return (
    <Combobox store={box} onOptionSubmit={(chosen) => choose(chosen as FieldType)} transitionProps={{ duration: 0 }} width="max-content" position="bottom-start">
      <Combobox.Target withExpandedAttribute>
        <TextInput
          label={label}
          aria-label={ariaLabel}
          error={unknown ? `No type is called “${typed.trim()}”.` : error}
          classNames={{ input: "mono" }}
          leftSection={isKnownType(type) ? <Icon size={15} stroke={1.75} aria-hidden="true" /> : undefined}
          rightSection={<Combobox.Chevron />}
          rightSectionPointerEvents="none"
          {...typing(box, typed, type, setTyped)}
          onBlur={leave}
          onKeyDown={keyDown}
        />
      </Combobox.Target>
      <Combobox.Dropdown>
        <Combobox.Options mah={360} style={{ overflowY: "auto" }} aria-label="Types">
          {found === undefined
            ? GROUPS.map((group) => (
                <Combobox.Group key={group} label={group}>
                  {FIELD_TYPES.filter((each) => each.group === group).map(option)}
                </Combobox.Group>
              ))
            : found.map(option)}
          {found?.length === 0 && <Combobox.Empty>No type is called so.</Combobox.Empty>}
        </Combobox.Options>
      </Combobox.Dropdown>
    </Combobox>
  );
}

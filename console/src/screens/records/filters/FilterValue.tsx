/**
 * The value of a condition, in a field that suits its column and operator. It is a text of the request, so it may be a part of a value, or no
 * value of the column. The editors of a record's values cannot hold such a text.
 */
import { MultiSelect, SegmentedControl, Select, TagsInput, TextInput } from "@mantine/core";
import { RelationPicker } from "../../../components/RelationPicker";
import type { RecordColumn } from "../columns";
import { isNumberType } from "../../../api/field-rules";
import { fromLocal, toLocal } from "../../../api/local-time";
import { type Condition, takesList, takesNothing } from "./conditions";
import { LoadedValue } from "./LoadedValue";

const INPUT_TYPES: Record<string, string> = { date: "date", time: "time", datetime: "datetime-local" };

export interface FilterValueProps {
  object: string;
  column: RecordColumn;
  condition: Condition;
  onChange: (value: Condition["value"]) => void;
  onSubmit: () => void;
  withinPortal: boolean;
  /** Whether the field takes the focus when its popover or dialog opens. */
  takesFocus: boolean;
}

export function FilterValue({ object, column, condition: { operator, value }, onChange, onSubmit, withinPortal, takesFocus }: FilterValueProps) {
  if (takesNothing(operator)) return null;
  const one = typeof value === "string" ? value : "";
  const many = Array.isArray(value) ? value : [];
  const label = `Value of ${column.label}`;
  const submits = (event: React.KeyboardEvent) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    onSubmit();
  };
  const list = takesList(operator);
  if (column.choices !== undefined) return <LoadedValue choices={column.choices} label={label} value={value} isList={list} onChange={onChange} withinPortal={withinPortal} takesFocus={takesFocus} />;
  const focus = takesFocus ? { "data-autofocus": true } : {};
  const choices = column.options?.filter((option, index, all) => all.indexOf(option) === index);
  if (choices !== undefined && list) return <MultiSelect aria-label={label} size="xs" data={choices} value={many} onChange={onChange} searchable hidePickedOptions {...focus} comboboxProps={{ withinPortal }} placeholder={many.length === 0 ? "Choose" : undefined} />;
  if (choices !== undefined && (operator === "eq" || operator === "neq")) return <Select aria-label={label} data={choices} value={one === "" ? null : one} onChange={(chosen) => onChange(chosen ?? "")} searchable selectFirstOptionOnChange {...focus} comboboxProps={{ withinPortal }} placeholder="Choose" />;
  if (column.type === "boolean") return <SegmentedControl aria-label={label} data={["true", "false"]} value={one === "" ? "" : one} onChange={onChange} fullWidth />;
  if (list)
    return (
      <TagsInput
        aria-label={label}
        size="xs"
        data={[]}
        value={many}
        onChange={onChange}
        {...focus}
        acceptValueOnBlur
        splitChars={[",", "\n", "\t"]}
        placeholder={many.length === 0 ? (column.type === "datetime" ? "2026-01-31T12:00:00Z, then Enter" : "A value, then Enter") : undefined}
      />
    );
  if (column.relation !== undefined) return <RelationPicker object={object} relation={column.relation.name} target={column.relation.target} label={label} value={one === "" ? null : one} onChange={(id) => onChange(id ?? "")} compact autoFocus={takesFocus} />;
  const type = INPUT_TYPES[column.type];
  const isInstant = type === "datetime-local";
  return (
    <TextInput
      type={type ?? "text"}
      {...(type === "time" || isInstant ? { step: "1" } : {})}
      inputMode={isNumberType(column.type) ? "decimal" : "text"}
      aria-label={label}
      {...focus}
      autoComplete="off"
      value={isInstant ? toLocal(one) : one}
      placeholder={column.type === "text" && (operator === "eq" || operator === "neq") ? "empty text" : "Value"}
      onChange={({ currentTarget: { value: typed } }) => onChange(isInstant ? (fromLocal(typed) ?? "") : typed)}
      onKeyDown={submits}
    />
  );
}

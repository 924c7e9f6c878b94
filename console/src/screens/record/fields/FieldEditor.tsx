/** The editor of one value, for the type of its column. It only shows the value. The name, the rules and the errors are outside of it. */
import { ActionIcon, Input, MultiSelect, Select, TextInput, Textarea, UnstyledButton } from "@mantine/core";
import { IconArrowUpRight, IconRefresh, IconStar, IconStarFilled } from "@tabler/icons-react";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { boundsOf, defaultText, isNumberType, mayHaveLines } from "../../../api/field-rules";
import { isLosslessNumber, readNumber } from "../../../api/json";
import { type Column, columnLabel } from "../../../api/record-shape";
import { USERS } from "../../../api/users-object";
import { RelationPicker } from "../../../components/RelationPicker";
import { type DraftValue, Unreadable } from "../draft";
import { DateTimeEditor, DateEditor, TimeEditor } from "./DateEditors";
import { Increment } from "./Increment";
import { JsonEditor } from "./JsonEditor";
import classes from "./fields.module.css";

export interface FieldEditorProps {
  id?: string | undefined;
  object: string;
  column: Column;
  /** `undefined` means that the value is left out. In a new record, the default then applies. */
  value: DraftValue;
  onChange: (value: DraftValue) => void;
  error?: boolean | undefined;
  describedBy?: string | undefined;
  disabled?: boolean | undefined;
  autoFocus?: boolean | undefined;
  onIncrement?: ((column: Column, amount: string) => Promise<void>) | undefined;
  /** Only the input, without the lines and buttons around it. Used in the cells of a table and similar places. */
  compact?: boolean | undefined;
  /** Called when the person chooses an option that completes the value. Without it, a choice is a change like any other. */
  onChoose?: ((value: DraftValue) => void) | undefined;
  /** Opens the list of options at once. */
  defaultDropdownOpened?: boolean | undefined;
  /** Called for keys before the editor handles them. For a reference, it gets only the keys that the list of matches does not use. */
  onKeyDown?: ((event: KeyboardEvent) => void) | undefined;
}

/** The common props of text fields. */
export function inputProps({ id, error, disabled, autoFocus, column, onKeyDown }: FieldEditorProps) {
  return {
    id,
    error,
    disabled,
    autoFocus,
    "data-autofocus": autoFocus || undefined,
    "aria-label": id === undefined ? columnLabel(column) : undefined,
    "aria-invalid": error || undefined,
    autoComplete: "off",
    onKeyDown,
  };
}

/**
 * The common props of fields with a list of options. In a cell, the list is rendered inside the cell, so that the cell knows which keys
 * belong to the list.
 */
function listProps({ compact, defaultDropdownOpened }: FieldEditorProps) {
  return { defaultDropdownOpened, maxDropdownHeight: 300, comboboxProps: { withinPortal: compact !== true, transitionProps: { duration: 0 } } };
}

/** The placeholder of an empty field. It shows whether the value is null, an empty text, or the default. */
export function placeholderOf(column: Column, value: DraftValue): string {
  if (value === null) return "null";
  if (value === "") return '""';
  return value === undefined ? (defaultText(column)?.slice(0, 80) ?? (column.required === true ? "" : "null")) : "";
}

/** The value of a field that the person has emptied: left out in a new record, null in an existing one. */
export const emptied = (value: DraftValue): DraftValue => (value === undefined ? undefined : null);

export function FieldEditor(props: FieldEditorProps) {
  const { column } = props;
  if (column.reference !== undefined) return <ReferenceEditor {...props} />;
  if (isNumberType(column.type)) return <NumberEditor {...props} />;
  switch (column.type) {
    case "boolean":
      return props.compact === true ? <ChoiceEditor {...props} /> : <BooleanEditor {...props} />;
    case "enum":
      return <ChoiceEditor {...props} />;
    case "multi_enum":
      return <MultiEnumEditor {...props} />;
    case "date":
      return <DateEditor {...props} />;
    case "datetime":
      return <DateTimeEditor {...props} />;
    case "time":
      return <TimeEditor {...props} />;
    case "json":
      return <JsonEditor {...props} />;
    case "uuid":
      return <UuidEditor {...props} />;
    case "text":
      return <TextEditor {...props} />;
    default:
      return <LineEditor {...props} />;
  }
}

const textOf = (value: DraftValue): string => (value instanceof Unreadable ? value.text : typeof value === "string" ? value : value === null || value === undefined ? "" : String(value));

const LINES_MAX = 14;
const LINE_CHARACTERS = 64;

/** A text area that grows with its text, if the text may have several lines. Otherwise an input, in which Enter adds no line. */
function TextEditor(props: FieldEditorProps) {
  const { column, value, onChange, compact } = props;
  const text = textOf(value);
  // The text area stays when its last line break is deleted. Another element would lose the focus.
  const [grows, setGrows] = useState(false);
  if (!grows && mayHaveLines(column, text)) setGrows(true);
  else if (!grows)
    return <TextInput {...inputProps(props)} type="text" dir="auto" value={text} placeholder={placeholderOf(column, value)} onChange={(event) => onChange(event.currentTarget.value)} />;
  const lines = text.length > 20_000 ? LINES_MAX : text.split("\n").reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / LINE_CHARACTERS)), 0);
  return (
    <Textarea
      {...inputProps(props)}
      className={classes.area}
      dir="auto"
      // A form may have hundreds of fields, so they are not measured.
      {...(compact === true ? { autosize: true, minRows: 1, maxRows: LINES_MAX } : { rows: Math.min(LINES_MAX, Math.max(1, lines)) })}
      value={text}
      placeholder={placeholderOf(column, value)}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

/** Email addresses, URLs and slugs. An empty text is not valid for them, so an empty field becomes null. */
function LineEditor(props: FieldEditorProps) {
  const { column, value, onChange, compact } = props;
  const text = textOf(value);
  const isLink = column.type === "url" && /^https?:\/\//i.test(text);
  return (
    <div className={classes.line}>
      <TextInput
        {...inputProps(props)}
        type="text"
        inputMode={column.type === "email" ? "email" : column.type === "url" ? "url" : "text"}
        spellCheck={false}
        value={text}
        placeholder={placeholderOf(column, value)}
        onChange={(event) => onChange(event.currentTarget.value === "" ? emptied(value) : event.currentTarget.value)}
      />
      {isLink && compact !== true && (
        <ActionIcon data-tip="Open the address" component="a" href={text} target="_blank" rel="noreferrer noopener" aria-label={`Open ${column.name}`}>
          <IconArrowUpRight size={15} />
        </ActionIcon>
      )}
    </div>
  );
}

/** Edits numbers as text, so that they keep every digit. */
function NumberEditor(props: FieldEditorProps) {
  const { column, value, onChange, onIncrement, compact, disabled } = props;
  const text = textOf(value);
  const { min, max } = boundsOf(column);
  const stars = column.type === "rating" && compact !== true && min !== undefined && Number(max) <= 10 ? Number(max) : 0;
  const current = typeof value === "number" || isLosslessNumber(value) ? Number(String(value)) : 0;
  return (
    <div className={classes.line}>
      <TextInput
        {...inputProps(props)}
        className={classes.number}
        type="text"
        inputMode={min !== undefined && Number(min) >= 0 ? "decimal" : "text"}
        spellCheck={false}
        value={text}
        placeholder={placeholderOf(column, value)}
        onChange={(event) => {
          const typed = event.currentTarget.value;
          if (typed.trim() === "") return onChange(emptied(value));
          const number = readNumber(typed.replace(/^\+/, "").replace(/^(-?)\./, "$10."));
          onChange(number ?? new Unreadable(typed, "Enter a number, such as 12 or -0.5."));
        }}
      />
      {stars > 0 && (
        <span className={classes.stars} aria-hidden="true">
          {Array.from({ length: stars }, (_, index) => (
            <UnstyledButton key={index} className={classes.star} tabIndex={-1} disabled={disabled} data-on={index < current || undefined} onClick={() => onChange(index + 1)}>
              {index < current ? <IconStarFilled size={15} /> : <IconStar size={15} />}
            </UnstyledButton>
          ))}
        </span>
      )}
      {onIncrement !== undefined && compact !== true && disabled !== true && <Increment column={column} isNull={value === null} onIncrement={(amount) => onIncrement(column, amount)} />}
    </div>
  );
}

function BooleanEditor(props: FieldEditorProps) {
  const { column, value, onChange, id, disabled, error, describedBy, autoFocus } = props;
  const shown = value === undefined ? (column.default ?? null) : value;
  const choices: [string, boolean | null][] = [
    ["true", true],
    ["false", false],
    ...(column.required === true ? [] : ([["null", null]] as [string, null][])),
  ];
  return (
    <div className={classes.segments} role="radiogroup" aria-label={columnLabel(column)} aria-describedby={describedBy} aria-invalid={error || undefined}>
      {choices.map(([text, choice], index) => (
        <label key={text} data-on={shown === choice || undefined} data-disabled={disabled || undefined}>
          <input
            type="radio"
            name={id ?? column.name}
            {...(index === 0 && id !== undefined ? { id } : {})}
            aria-label={text}
            checked={shown === choice}
            disabled={disabled}
            autoFocus={autoFocus === true && index === 0}
            onChange={() => onChange(choice)}
          />
          {text}
        </label>
      ))}
    </div>
  );
}

/** Chooses one option of an enum. In a cell it also edits booleans. */
function ChoiceEditor(props: FieldEditorProps) {
  const { column, value, onChange, onChoose = onChange, compact } = props;
  const text = textOf(value);
  const isBoolean = column.type === "boolean";
  const options = isBoolean ? ["true", "false"] : (column.options ?? []);
  return (
    <Select
      {...inputProps(props)}
      {...listProps(props)}
      data={[...new Set(text === "" ? options : [...options, text])]}
      value={text === "" ? null : text}
      placeholder={placeholderOf(column, value)}
      searchable={compact === true || options.length > 8}
      selectFirstOptionOnChange
      allowDeselect={false}
      onChange={(chosen) => chosen !== null && onChoose(isBoolean ? chosen === "true" : chosen)}
    />
  );
}

function MultiEnumEditor(props: FieldEditorProps) {
  const { column, value, onChange } = props;
  const chosen = Array.isArray(value) ? value.map(String) : [];
  return (
    <MultiSelect
      {...inputProps(props)}
      {...listProps(props)}
      size="xs"
      data={[...new Set([...(column.options ?? []), ...chosen])]}
      value={chosen}
      placeholder={chosen.length > 0 ? "" : Array.isArray(value) ? "[]" : placeholderOf(column, value)}
      searchable
      hidePickedOptions
      onChange={(next) => onChange(next)}
    />
  );
}

function randomUuid(): string {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  // `randomUUID` needs a secure context. Without one, the id is made here.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

function UuidEditor(props: FieldEditorProps) {
  const { column, value, onChange, compact, disabled } = props;
  return (
    <div className={classes.line}>
      <Input
        {...inputProps(props)}
        spellCheck={false}
        value={textOf(value)}
        placeholder={placeholderOf(column, value)}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        onChange={(event) => onChange(event.currentTarget.value.trim() === "" ? emptied(value) : event.currentTarget.value.trim())}
      />
      {compact !== true && disabled !== true && (
        <ActionIcon data-tip="Generate a random id" aria-label={`Generate ${column.name}`} onClick={() => onChange(randomUuid())}>
          <IconRefresh size={15} />
        </ActionIcon>
      )}
    </div>
  );
}

function ReferenceEditor({ object, column, value, onChange, onChoose = onChange, onKeyDown, id, error, describedBy, disabled, autoFocus, compact }: FieldEditorProps) {
  const { relation, target } = column.reference!;
  const unresolved = value instanceof Unreadable ? value.text : undefined;
  /** The last valid value. It applies again if the person removes the typed text. */
  const chosen = useRef<DraftValue>(value instanceof Unreadable ? undefined : value);
  useEffect(() => {
    if (!(value instanceof Unreadable)) chosen.current = value;
  }, [value]);
  return (
    <RelationPicker
      object={object}
      relation={relation}
      target={target}
      id={id}
      label={id === undefined ? columnLabel(column) : undefined}
      value={typeof value === "string" && value !== "" ? value : null}
      onChange={(next) => onChoose(next === null && value === undefined ? undefined : next)}
      unresolved={unresolved}
      onUnresolved={(text) => {
        if (text !== null) onChange(new Unreadable(text, `Choose ${target === USERS ? "a user" : `a record of \`${target}\``} from the list, or empty the field.`));
        else if (value instanceof Unreadable) onChange(chosen.current);
      }}
      error={error}
      describedBy={describedBy}
      disabled={disabled}
      autoFocus={autoFocus}
      compact={compact}
      onKeyDown={onKeyDown}
      clearable={column.required !== true || (compact !== true && value !== null)}
      placeholder={value === null || value === undefined ? (column.required === true ? `Search ${target}` : "null") : undefined}
    />
  );
}

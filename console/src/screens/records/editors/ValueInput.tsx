/** A field for a value of any type, as a draft: a text and whether it is null. The cell's editor and the change of several rows use it. */
import { MultiSelect, Select, TextInput, Textarea } from "@mantine/core";
import type { KeyboardEvent } from "react";
import { isNumberType } from "../../../api/field-rules";
import { type JsonValue, printJson } from "../../../api/json";
import { isUuid } from "../../../api/uuid";
import { CodeEditor } from "../../../components/CodeEditor";
import { RelationPicker } from "../../../components/RelationPicker";
import type { RecordColumn } from "../columns";
import { type Read, editText, readText } from "../values";

export interface Draft {
  text: string;
  isNull: boolean;
}

export function draftOf(value: JsonValue | undefined, column: RecordColumn): Draft {
  return { text: editText(value, column), isNull: value === null || value === undefined };
}

export function readDraft({ text, isNull }: Draft, column: RecordColumn): Read {
  if (!isNull && column.relation !== undefined && text !== "" && !isUuid(text)) return { problem: `Choose a record of ${column.relation.target} from the list.` };
  if (isNull) return column.required ? { problem: `${column.label} needs a value.` } : { value: null };
  return readText(text, column);
}

/** Whether one choice is the whole answer, so that it can be saved at once. */
export function isChoice(column: RecordColumn): boolean {
  return column.type === "boolean" || column.type === "enum" || column.relation !== undefined;
}

export interface ValueInputProps {
  object: string;
  column: RecordColumn;
  draft: Draft;
  onDraft: (draft: Draft) => void;
  /** A choice was made. */
  onChoose: (draft: Draft) => void;
  onKeyDown?: (event: KeyboardEvent) => void;
  label: string;
  error?: boolean;
  autoFocus?: boolean;
}

export function ValueInput({ object, column, draft, onDraft, onChoose, onKeyDown, label, error = false, autoFocus = false }: ValueInputProps) {
  const type = (text: string) => onDraft({ text, isNull: false });
  const common = { "aria-label": label, error, autoFocus, ...(autoFocus ? { "data-autofocus": true } : {}), onKeyDown };
  if (column.relation !== undefined)
    return (
      <RelationPicker
        object={object}
        relation={column.relation.name}
        target={column.relation.target}
        label={label}
        value={draft.isNull || !isUuid(draft.text) ? null : draft.text}
        onChange={(id) => onChoose({ text: id ?? "", isNull: id === null })}
        // What names no record yet stays in the draft, which cannot be saved with it.
        unresolved={draft.isNull || draft.text === "" || isUuid(draft.text) ? undefined : draft.text}
        onUnresolved={(text) => onDraft({ text: text ?? "", isNull: text === null })}
        clearable={!column.required}
        autoFocus={autoFocus}
        compact
      />
    );
  switch (column.type) {
    case "boolean":
    case "enum": {
      const options = column.type === "boolean" ? ["true", "false"] : [...new Set(column.options ?? [])];
      return (
        <Select
          {...common}
          data={options}
          value={draft.isNull ? null : draft.text}
          placeholder="null"
          searchable
          selectFirstOptionOnChange
          allowDeselect={false}
          defaultDropdownOpened={autoFocus}
          comboboxProps={{ withinPortal: false, transitionProps: { duration: 0 } }}
          maxDropdownHeight={260}
          onChange={(chosen) => chosen !== null && onChoose({ text: chosen, isNull: false })}
        />
      );
    }
    case "multi_enum": {
      const read = draft.isNull ? { value: [] } : readText(draft.text, column);
      const chosen = "value" in read && Array.isArray(read.value) ? read.value.map(String) : [];
      return (
        <MultiSelect
          {...common}
          size="xs"
          data={[...new Set(column.options ?? [])]}
          value={chosen}
          searchable
          hidePickedOptions
          placeholder={draft.isNull ? "null" : chosen.length === 0 ? "empty list" : ""}
          defaultDropdownOpened={autoFocus}
          comboboxProps={{ withinPortal: false, transitionProps: { duration: 0 } }}
          maxDropdownHeight={260}
          onChange={(values) => type(printJson(values))}
        />
      );
    }
    case "json":
      return (
        // Keys of the code editor are caught on their way down, before it takes them.
        <div onKeyDownCapture={onKeyDown} style={{ width: "min(460px, 80vw)" }}>
          <CodeEditor language="json" label={label} value={draft.isNull ? "" : draft.text} onChange={type} minLines={6} maxLines={16} />
        </div>
      );
    case "date":
    case "time":
    case "datetime":
      return <TextInput {...common} type={column.type === "datetime" ? "datetime-local" : column.type} {...(column.type === "date" ? {} : { step: "any" })} value={draft.isNull ? "" : draft.text} onChange={(event) => onDraft({ text: event.currentTarget.value, isNull: event.currentTarget.value === "" && !column.required })} />;
    case "text":
      return <Textarea {...common} autosize minRows={1} maxRows={12} dir="auto" spellCheck={false} placeholder={draft.isNull ? "null" : '""'} value={draft.isNull ? "" : draft.text} onChange={(event) => type(event.currentTarget.value)} />;
    default:
      return (
        <TextInput
          {...common}
          inputMode={/^(integer|big_integer|rating)$/.test(column.type) ? "numeric" : isNumberType(column.type) ? "decimal" : "text"}
          autoComplete="off"
          spellCheck={false}
          dir="auto"
          placeholder="null"
          value={draft.isNull ? "" : draft.text}
          onChange={(event) => type(event.currentTarget.value)}
        />
      );
  }
}

import { Button } from "@mantine/core";
import { useState } from "react";
import { checkJson, printJson, sameJson } from "../../../api/json";
import { columnLabel } from "../../../api/record-shape";
import { CodeEditor } from "../../../components/CodeEditor";
import { type DraftValue, Unreadable } from "../draft";
import { type FieldEditorProps, placeholderOf } from "./FieldEditor";
import classes from "./fields.module.css";

const textOf = (value: DraftValue) => (value instanceof Unreadable ? value.text : value === null || value === undefined ? "" : printJson(value, 2));

function read(text: string, before: DraftValue): DraftValue {
  if (text.trim() === "") return before === undefined ? undefined : null;
  const typed = checkJson(text);
  return "problem" in typed ? new Unreadable(text, typed.problem) : typed.value;
}

/** The editor keeps the text that the person typed. The draft has the parsed value. */
export function JsonEditor({ column, value, onChange, disabled, compact = false, onKeyDown, describedBy, error }: FieldEditorProps) {
  const [text, setText] = useState(() => textOf(value));
  const [isOpen, setOpen] = useState(compact || (value !== null && value !== undefined));
  const [sent, setSent] = useState<DraftValue>(value);
  // Something else changed the value: another version of the record, or the JSON of the whole record.
  const isOther = value !== sent && !(value instanceof Unreadable) && (sent instanceof Unreadable || !sameJson(value, sent));
  if (isOther) {
    setSent(value);
    setText(textOf(value));
    setOpen(compact || (value !== null && value !== undefined));
  }
  if (!isOpen) {
    return (
      <div className={classes.jsonNull}>
        {placeholderOf(column, value) || "no value"}
        {disabled !== true && (
          <Button variant="default" size="compact-xs" onClick={() => setOpen(true)} aria-label={`Enter a value for ${column.name}`}>
            Enter a value
          </Button>
        )}
      </div>
    );
  }
  const editor = (
    <CodeEditor
      label={columnLabel(column)}
      value={text}
      readOnly={disabled === true}
      describedBy={describedBy}
      isInvalid={error === true}
      minLines={compact ? 6 : 3}
      maxLines={16}
      onChange={(next) => {
        setText(next);
        const meant = read(next, value);
        setSent(meant);
        onChange(meant);
      }}
    />
  );
  if (!compact) return editor;
  return (
    // The capture phase gets the keys before the code editor handles them.
    <div className={classes.jsonCell} onKeyDownCapture={onKeyDown}>
      {editor}
    </div>
  );
}

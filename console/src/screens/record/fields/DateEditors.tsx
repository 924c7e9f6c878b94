/**
 * Edits dates and times with the browser's own fields. People know them, they work with the keyboard, and they use the reader's time zone.
 * `@mantine/dates` takes 31 KiB, which would exceed the page's budget of 120 KiB.
 */
import { TextInput } from "@mantine/core";
import { useState } from "react";
import { fromLocal, readerZone, toLocal } from "../../../api/local-time";
import { type DraftValue, Unreadable } from "../draft";
import { type FieldEditorProps, emptied, inputProps, placeholderOf } from "./FieldEditor";
import classes from "./fields.module.css";

const isEmpty = (value: DraftValue) => value === null || value === undefined || value === "";

/** These fields do not show a placeholder, so the meaning of an empty field is shown below it. */
function Meaning({ column, value }: Pick<FieldEditorProps, "column" | "value">) {
  const text = placeholderOf(column, value);
  return isEmpty(value) && text !== "" ? <div className={classes.utc}>{text}</div> : null;
}

export function DateEditor(props: FieldEditorProps) {
  const { value, onChange, compact } = props;
  return (
    <>
      <TextInput
        {...inputProps(props)}
        type="date"
        maw={220}
        max="9999-12-31"
        value={typeof value === "string" ? value : ""}
        onChange={(event) => onChange(event.currentTarget.value === "" ? emptied(value) : event.currentTarget.value)}
      />
      {compact !== true && <Meaning {...props} />}
    </>
  );
}

export function TimeEditor(props: FieldEditorProps) {
  const { value, onChange, compact } = props;
  const text = typeof value === "string" ? value : "";
  const [precise] = useState(text.includes("."));
  return (
    <>
      <TextInput
        {...inputProps(props)}
        type="time"
        maw={180}
        step={precise ? 0.001 : 1}
        value={text.replace(/(\.\d{3})\d+$/, "$1")}
        onChange={(event) => {
          const typed = event.currentTarget.value;
          onChange(typed === "" ? emptied(value) : typed.length === 5 ? `${typed}:00` : typed);
        }}
      />
      {compact !== true && <Meaning {...props} />}
    </>
  );
}

export function DateTimeEditor(props: FieldEditorProps) {
  const { value, onChange, compact } = props;
  const text = typeof value === "string" ? value : "";
  const [precise] = useState(() => text !== "" && new Date(text).getMilliseconds() > 0);
  const at = text === "" ? undefined : (fromLocal(text) ?? undefined);
  return (
    <>
      <TextInput
        {...inputProps(props)}
        type="datetime-local"
        maw={280}
        step={precise ? 0.001 : 1}
        max="9999-12-31T23:59:59"
        value={text === "" ? "" : toLocal(text)}
        onChange={(event) => {
          const typed = event.currentTarget.value;
          if (typed === "") return onChange(emptied(value));
          onChange(fromLocal(typed) ?? new Unreadable(typed, "Enter a date with a time."));
        }}
      />
      {compact !== true &&
        (at === undefined ? (
          <Meaning {...props} />
        ) : (
          <div className={classes.utc}>
            {readerZone} · UTC {at.replace("T", " ").replace(/(\.000)?Z$/, "")}
          </div>
        ))}
    </>
  );
}

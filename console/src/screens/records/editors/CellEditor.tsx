/** The editor of one cell, placed over it. `Enter` saves, `Tab` saves and moves on, `Esc` discards the change. */
import { Button } from "@mantine/core";
import { type KeyboardEvent, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { type JsonValue, sameJson } from "../../../api/json";
import { readerZone } from "../../../api/local-time";
import { Ticked } from "../../../components/Ticked";
import { useDescription } from "../../../components/useDescription";
import { type DraftValue, Unreadable } from "../../record/draft";
import { FieldEditor } from "../../record/fields/FieldEditor";
import type { RecordColumn } from "../columns";
import { readDraft } from "./readDraft";
import classes from "./CellEditor.module.css";

export type After = "stay" | "right" | "left" | "away";

export interface CellEditorProps {
  object: string;
  column: RecordColumn;
  value: JsonValue | undefined;
  /** The value that the person typed and the server refused. */
  draft?: DraftValue;
  /** The server's message. */
  problem?: string | undefined;
  onSave: (value: JsonValue, after: After) => void;
  onCancel: (after: After) => void;
}

/** Whether choosing one option completes the value, so that it can be saved at once. */
const isChoice = ({ type, relation }: RecordColumn) => type === "boolean" || type === "enum" || relation !== undefined;

export function CellEditor({ object, column, value, draft: given, problem: told, onSave, onCancel }: CellEditorProps) {
  const before = value ?? null;
  const [draft, setDraft] = useState<DraftValue>(given === undefined ? before : given);
  const [problem, setProblem] = useState(told);
  const place = useRef<HTMLDivElement>(null);
  const messageId = useId();
  const problemId = useId();
  useDescription(place, problem === undefined ? messageId : `${problemId} ${messageId}`);

  const save = (now: DraftValue, after: After) => {
    if (given === undefined && !(now instanceof Unreadable) && sameJson(now, before)) return onCancel(after);
    const read = readDraft(now, column);
    if ("problem" in read) setProblem(read.problem);
    else onSave(read.value, after);
  };
  const keyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    const isMultiline = column.type === "json" || column.type === "multi_enum";
    const floats = place.current?.querySelector('[role="listbox"]') !== null && isChoice(column);
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      onCancel("stay");
    } else if (event.key === "Enter" && !event.shiftKey && !floats && (!isMultiline || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      event.stopPropagation();
      save(draft, "stay");
    } else if (event.key === "Tab" && column.type !== "json") {
      event.preventDefault();
      event.stopPropagation();
      save(draft, event.shiftKey ? "left" : "right");
    } else if (event.key === "Backspace" && (event.ctrlKey || event.metaKey) && event.shiftKey && !column.required) {
      event.preventDefault();
      save(null, "stay");
    }
  };

  // A press outside of the editor saves, as in other spreadsheets.
  const leave = useRef(() => {});
  useEffect(() => {
    leave.current = () => save(draft, "away");
  });
  useEffect(() => {
    const pressed = (event: PointerEvent) => {
      if (event.target instanceof Element && event.target.closest("[data-editor], [data-portal]") === null) leave.current();
    };
    document.addEventListener("pointerdown", pressed, true);
    return () => document.removeEventListener("pointerdown", pressed, true);
  }, []);
  useLayoutEffect(() => {
    // The field gets the focus, with all of its text selected, before the first key is pressed. A later selection would let the next key
    // overwrite what the person has typed.
    const take = () => {
      const field = place.current?.querySelector<HTMLElement>("input, textarea, .cm-content");
      field?.focus({ preventScroll: true });
      if (field === null || field === undefined || document.activeElement !== field) return false;
      if (field instanceof HTMLTextAreaElement || (field instanceof HTMLInputElement && field.type === "text")) field.select();
      return true;
    };
    if (take()) return;
    // An element that is not visible yet cannot get the focus, and the popover computes its position first.
    const frame = requestAnimationFrame(take);
    return () => cancelAnimationFrame(frame);
  }, []);
  // The code editor is loaded later than the other editors.
  const isJson = column.type === "json";
  useEffect(() => {
    if (!isJson) return;
    const watcher = new MutationObserver(() => {
      const content = place.current?.querySelector<HTMLElement>(".cm-content");
      if (content === null || content === undefined) return;
      watcher.disconnect();
      content.focus({ preventScroll: true });
    });
    watcher.observe(place.current!, { childList: true, subtree: true });
    return () => watcher.disconnect();
  }, [isJson]);

  const saves = column.type === "json" || column.type === "multi_enum" ? "Ctrl Enter saves" : "Enter saves";
  return (
    <div ref={place} className={classes.editor}>
      <FieldEditor
        object={object}
        column={column.field}
        value={draft}
        error={problem !== undefined}
        autoFocus
        defaultDropdownOpened
        compact
        onChange={(next) => {
          setDraft(next);
          setProblem(undefined);
        }}
        onChoose={(next) => save(next, "stay")}
        onKeyDown={keyDown}
      />
      {problem !== undefined && (
        <div className={classes.problem} id={problemId} role="alert" dir="auto">
          <Ticked text={problem} />
        </div>
      )}
      <div className={classes.foot} id={messageId} onKeyDown={keyDown}>
        <span>
          {isChoice(column) ? "Esc cancels" : `${saves} · Esc cancels`}
          {column.type === "datetime" && ` · ${readerZone}`}
        </span>
        <span className={classes.buttons}>
          {!column.required && (
            <Button variant="subtle" color="gray" size="compact-xs" disabled={value === null && draft === null} onClick={() => save(null, "stay")}>
              Set null
            </Button>
          )}
          {!isChoice(column) && (
            <Button size="compact-xs" onClick={() => save(draft, "stay")}>
              Save
            </Button>
          )}
        </span>
      </div>
    </div>
  );
}

/** The editor of one cell, over it. `Enter` saves, `Tab` saves and goes on, `Esc` leaves the cell as it was. */
import { Button } from "@mantine/core";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { type JsonValue, sameJson } from "../../../api/json";
import type { RecordColumn } from "../columns";
import { type Draft, ValueInput, draftOf, isChoice, readDraft } from "./ValueInput";
import { useDescription } from "../../../components/useDescription";
import classes from "./CellEditor.module.css";

export type After = "stay" | "right" | "left" | "away";

export interface CellEditorProps {
  object: string;
  column: RecordColumn;
  value: JsonValue | undefined;
  /** What the person typed before, where the server refused it. */
  draft?: Draft | undefined;
  /** The server's sentence. */
  problem?: string | undefined;
  onSave: (value: JsonValue, draft: Draft, after: After) => void;
  onCancel: (after: After) => void;
}

export function CellEditor({ object, column, value, draft: given, problem: told, onSave, onCancel }: CellEditorProps) {
  const [draft, setDraft] = useState<Draft>(() => given ?? draftOf(value, column));
  const [problem, setProblem] = useState(told);
  const place = useRef<HTMLDivElement>(null);
  const messageId = useId();
  const first = useRef(draftOf(value, column));
  const problemId = useId();
  useDescription(place, problem === undefined ? messageId : `${problemId} ${messageId}`);

  const save = (now: Draft, after: After) => {
    if (given === undefined && now.isNull === first.current.isNull && (now.isNull || now.text === first.current.text)) return onCancel(after);
    const read = readDraft(now, column);
    if ("problem" in read) return setProblem(read.problem);
    if (given === undefined && sameJson(read.value, value ?? null)) return onCancel(after);
    onSave(read.value, now, after);
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
      save({ text: "", isNull: true }, "stay");
    }
  };

  // A press elsewhere saves, like in any table that people know.
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
  useEffect(() => {
    // The popover places itself first; then the field takes the focus, all of it marked.
    const frame = requestAnimationFrame(() => {
      const field = place.current?.querySelector<HTMLElement>("input, textarea, .cm-content");
      field?.focus({ preventScroll: true });
      if (field instanceof HTMLTextAreaElement || (field instanceof HTMLInputElement && field.type === "text")) field.select();
    });
    return () => cancelAnimationFrame(frame);
  }, []);
  // The code editor arrives later than the rest.
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
      <ValueInput
        object={object}
        column={column}
        draft={draft}
        label={column.label}
        error={problem !== undefined}
        autoFocus
        onDraft={(next) => {
          setDraft(next);
          setProblem(undefined);
        }}
        onChoose={(next) => save(next, "stay")}
        onKeyDown={keyDown}
      />
      {problem !== undefined && (
        <div className={classes.problem} id={problemId} role="alert" dir="auto">
          {problem}
        </div>
      )}
      <div className={classes.foot} id={messageId} onKeyDown={keyDown}>
        <span>
          {isChoice(column) ? "Esc cancels" : `${saves} · Esc cancels`}
          {column.type === "datetime" && ` · ${Intl.DateTimeFormat().resolvedOptions().timeZone}`}
        </span>
        <span className={classes.buttons}>
          {!column.required && (
            <Button variant="subtle" color="gray" size="compact-xs" disabled={value === null && draft.isNull} onClick={() => save({ text: "", isNull: true }, "stay")}>
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

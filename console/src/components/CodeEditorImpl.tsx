import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { HighlightStyle, bracketMatching, foldGutter, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { linter } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useId, useRef } from "react";
import { nonce } from "./nonce";
import type { CodeEditorProps } from "./CodeEditor";
import classes from "./CodeEditor.module.css";

const colors = HighlightStyle.define([
  { tag: [tags.propertyName], color: "var(--bb-accent-text)" },
  { tag: [tags.string], color: "var(--bb-green)" },
  { tag: [tags.number], color: "var(--bb-blue)" },
  { tag: [tags.bool, tags.null, tags.keyword], color: "var(--bb-amber)" },
  { tag: [tags.operator], color: "var(--bb-red)" },
  { tag: [tags.invalid], color: "var(--bb-red)", textDecoration: "underline" },
]);

const MODIFIER = /Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘" : "Ctrl";

const look = EditorView.theme({
  "&": { fontSize: "12.5px", backgroundColor: "transparent", color: "var(--bb-text)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mantine-font-family-monospace)", lineHeight: "19px", overflow: "auto" },
  ".cm-content": { padding: "6px 0", caretColor: "var(--bb-text)" },
  ".cm-cursor": { borderLeftColor: "var(--bb-text)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--bb-text-dim)", border: "none" },
  ".cm-activeLine": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine": { backgroundColor: "var(--bb-bg-sunken)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--bb-glow)" },
  ".cm-tooltip": { backgroundColor: "var(--bb-bg-raised)", border: "1px solid var(--bb-line-strong)", borderRadius: "6px", color: "var(--bb-text)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--bb-bg-hover)", border: "none", color: "var(--bb-text-dim)" },
});

/**
 * Replaces the marked text by what the person types. Chromium would give the new text the look of the old one with an inline style, which
 * the page's policy refuses.
 */
const typeOver = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { state } = view;
    if (event.inputType !== "insertText" || event.data === null || view.composing || state.readOnly || state.selection.main.empty) return false;
    view.dispatch(state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

export default function CodeEditorImpl({ value, onChange, label, describedBy, isInvalid = false, readOnly = false, error, minLines = 3, maxLines = 24 }: CodeEditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const changed = useRef(onChange);
  const access = useRef(new Compartment());
  const first = useRef(value);
  const texts = useRef(new Compartment());
  const id = useId();
  useEffect(() => {
    changed.current = onChange;
  });
  useEffect(() => {
    const made = new EditorView({
      parent: place.current!,
      state: EditorState.create({
        doc: first.current,
        extensions: [
          ...(nonce === "" ? [] : [EditorView.cspNonce.of(nonce)]),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          highlightActiveLine(),
          lineNumbers(),
          foldGutter(),
          json(),
          linter(jsonParseLinter(), { delay: 400 }),
          syntaxHighlighting(colors),
          look,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
          texts.current.of([]),
          keymap.of([...defaultKeymap, ...historyKeymap]),
          access.current.of(EditorState.readOnly.of(false)),
          typeOver,
          EditorView.updateListener.of((update) => {
            if (update.docChanged) changed.current?.(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    return () => made.destroy();
  }, [label]);
  useEffect(() => {
    view.current?.dispatch({ effects: access.current.reconfigure([EditorState.readOnly.of(readOnly), EditorView.editable.of(!readOnly)]) });
  }, [readOnly]);
  const ids = [describedBy, error === undefined ? undefined : `${id}-error`, readOnly ? undefined : `${id}-keys`].filter(Boolean).join(" ");
  useEffect(() => {
    const attributes = { "aria-describedby": ids, ...(error !== undefined || isInvalid ? { "aria-invalid": "true" } : {}) };
    view.current?.dispatch({ effects: texts.current.reconfigure(ids === "" ? [] : EditorView.contentAttributes.of(attributes)) });
  }, [ids, error, isInvalid, label]);
  useEffect(() => {
    const now = view.current;
    first.current = value;
    if (now !== null && now.state.doc.toString() !== value) now.dispatch({ changes: { from: 0, to: now.state.doc.length, insert: value } });
  }, [value]);
  return (
    <div>
      <div
        ref={place}
        className={classes.editor}
        data-error={error !== undefined || undefined}
        style={{ ["--editor-min" as string]: `${minLines * 19 + 12}px`, ["--editor-max" as string]: `${maxLines * 19 + 12}px` }}
      />
      {!readOnly && (
        <div className={classes.keys} id={`${id}-keys`}>
          Tab moves on; {MODIFIER} ] and {MODIFIER} [ indent
        </div>
      )}
      {error !== undefined && (
        <div className={classes.error} id={`${id}-error`} role="alert">
          {error}
        </div>
      )}
    </div>
  );
}

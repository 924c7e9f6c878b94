import { defaultKeymap, history, historyKeymap, standardKeymap } from "@codemirror/commands";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { HighlightStyle, bracketMatching, foldGutter, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { linter } from "@codemirror/lint";
import { Compartment, EditorState, Transaction } from "@codemirror/state";
import { type Command, Decoration, EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers, placeholder as hint } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { type RefObject, useEffect, useId, useLayoutEffect, useRef } from "react";
import { nonce } from "./nonce";
import type { CodeEditorProps, Selected } from "./CodeEditor";
import { patternLanguage, withoutBreaks } from "./pattern-line";
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

/** The size of a line of a pattern, in pixels: that of a plain input without its border. */
const PATTERN_LINE = 28;
/** A pattern that has line breaks already has several lines. Further ones are scrolled. */
const PATTERN_LINES_MAX = 5;

const patternLook = EditorView.theme({
  ".cm-scroller": { lineHeight: `${PATTERN_LINE}px`, scrollbarWidth: "none" },
  ".cm-content": { padding: "0" },
  ".cm-line": { padding: "0 10px" },
  ".cm-placeholder": { color: "var(--mantine-color-placeholder)" },
});

const pair = Decoration.mark({ class: "cm-matchingBracket" });
/** Marks pairs only: the brackets of `[(]` and `\(` need no partner, and the server reports a group that is not closed. */
const patternBrackets = bracketMatching({
  renderMatch: ({ matched, start, end }) => (matched && end !== undefined ? [pair.range(start.from, start.to), pair.range(end.from, end.to)] : []),
});

/** Enter belongs to the field, and does nothing in it. */
const nothing: Command = () => true;

const JSON_PARTS = [
  drawSelection(),
  indentOnInput(),
  bracketMatching(),
  highlightActiveLine(),
  lineNumbers(),
  foldGutter(),
  json(),
  linter(jsonParseLinter(), { delay: 400 }),
  EditorView.lineWrapping,
  keymap.of(defaultKeymap),
];
// The default keys would take Ctrl Enter from the page, and they have keys that indent.
const PATTERN_PARTS = [
  patternLanguage,
  patternBrackets,
  EditorState.transactionFilter.of(withoutBreaks),
  patternLook,
  EditorView.contentAttributes.of({ "aria-multiline": "false" }),
  keymap.of([{ key: "Enter", run: nothing, shift: nothing }, ...standardKeymap]),
];

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

export interface CodeEditorImplProps extends CodeEditorProps {
  /** The selection of the input that stood in for this editor and had the focus. The editor takes both over. */
  leftRef: RefObject<Selected | null>;
}

export default function CodeEditorImpl({ value, onChange, label, language = "json", id: boxId, placeholder = "", describedBy, isInvalid = false, readOnly = false, error, minLines = 3, maxLines = 24, leftRef }: CodeEditorImplProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const changed = useRef(onChange);
  const access = useRef(new Compartment());
  const first = useRef(value);
  const texts = useRef(new Compartment());
  const id = useId();
  const isPattern = language === "pattern";
  useLayoutEffect(() => {
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
          isPattern ? PATTERN_PARTS : JSON_PARTS,
          placeholder === "" ? [] : hint(placeholder),
          syntaxHighlighting(colors),
          look,
          EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0", ...(boxId === undefined ? {} : { id: boxId }) }),
          texts.current.of([]),
          keymap.of(historyKeymap),
          access.current.of(EditorState.readOnly.of(false)),
          typeOver,
          EditorView.updateListener.of((update) => {
            if (update.docChanged && !update.transactions.every((each) => each.annotation(Transaction.remote))) changed.current?.(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    if (leftRef.current !== null) {
      const most = made.state.doc.length;
      made.dispatch({ selection: { anchor: Math.min(leftRef.current.anchor, most), head: Math.min(leftRef.current.head, most) } });
      made.focus();
      leftRef.current = null;
    }
    return () => made.destroy();
  }, [label, isPattern, boxId, placeholder, leftRef]);
  useEffect(() => {
    view.current?.dispatch({ effects: access.current.reconfigure([EditorState.readOnly.of(readOnly), EditorView.editable.of(!readOnly)]) });
  }, [readOnly]);
  const ids = [describedBy, error === undefined ? undefined : `${id}-error`, readOnly || isPattern ? undefined : `${id}-keys`].filter(Boolean).join(" ");
  useEffect(() => {
    const attributes = { "aria-describedby": ids, ...(error !== undefined || isInvalid ? { "aria-invalid": "true" } : {}) };
    view.current?.dispatch({ effects: texts.current.reconfigure(ids === "" ? [] : EditorView.contentAttributes.of(attributes)) });
  }, [ids, error, isInvalid, label]);
  // A layout effect, because a key between the render and a later effect would be lost.
  useLayoutEffect(() => {
    const now = view.current;
    first.current = value;
    if (now === null || now.state.doc.toString() === value) return;
    // The filter would remove line breaks that the pattern of the server has. The owner of a pattern knows this value, so it is not
    // reported. The owners of JSON parse it again.
    now.dispatch({ changes: { from: 0, to: now.state.doc.length, insert: value }, filter: false, annotations: isPattern ? Transaction.remote.of(true) : [] });
  }, [value, isPattern]);
  const lineHeight = isPattern ? PATTERN_LINE : 19;
  const padding = isPattern ? 0 : 12;
  return (
    <div>
      <div
        ref={place}
        className={classes.editor}
        data-line={isPattern || undefined}
        data-error={error !== undefined || isInvalid || undefined}
        style={{ ["--editor-min" as string]: `${(isPattern ? 1 : minLines) * lineHeight + padding}px`, ["--editor-max" as string]: `${(isPattern ? PATTERN_LINES_MAX : maxLines) * lineHeight + padding}px` }}
      />
      {!readOnly && !isPattern && (
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

import { lazy, type RefObject, Suspense, useLayoutEffect, useRef } from "react";
import { Bone, Late } from "./Skeleton";
import classes from "./CodeEditor.module.css";

export interface CodeEditorProps {
  value: string;
  onChange?: (value: string) => void;
  /** The accessible name. */
  label: string;
  /** `pattern` is a regular expression in one line, with the size and the keys of a plain input. The default is `json`. */
  language?: "json" | "pattern";
  /** The id of the text box. */
  id?: string | undefined;
  /** Shown while the text is empty. */
  placeholder?: string | undefined;
  /** The ids of the texts that explain the field or show its errors. */
  describedBy?: string | undefined;
  /** Whether one of those texts is an error. */
  isInvalid?: boolean;
  readOnly?: boolean;
  /** The error message of the field. */
  error?: string | undefined;
  /** The minimum and maximum height in lines. The defaults are 3 and 24. A pattern has one line. */
  minLines?: number;
  maxLines?: number;
}

/** The selection in a text, in UTF-16 code units. */
export interface Selected {
  anchor: number;
  head: number;
}

const Editor = lazy(() => import("./CodeEditorImpl"));

/**
 * An editor for JSON or for a pattern, made with CodeMirror, which is loaded when the first editor is shown. `Tab` moves to the next field,
 * as in any field. In JSON, Ctrl ] and Ctrl [ indent.
 */
export function CodeEditor(props: CodeEditorProps) {
  const leftRef = useRef<Selected>(null);
  const height = (props.minLines ?? 3) * 19 + 14;
  return (
    <Suspense
      fallback={
        props.language === "pattern" ? (
          <PlainInput {...props} leftRef={leftRef} />
        ) : (
          <Late>
            <Bone height={height} />
          </Late>
        )
      }
    >
      <Editor {...props} leftRef={leftRef} />
    </Suspense>
  );
}

/** Stands in for the editor of a pattern until that is loaded. If it has the focus then, `leftRef` has its selection for the editor. */
function PlainInput({ value, onChange, label, id, placeholder, describedBy, isInvalid = false, readOnly = false, leftRef }: CodeEditorProps & { leftRef: RefObject<Selected | null> }) {
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    const element = input.current;
    return () => {
      leftRef.current = element !== null && document.activeElement === element ? { anchor: element.selectionStart ?? 0, head: element.selectionEnd ?? 0 } : null;
    };
  }, [leftRef]);
  return (
    <div className={classes.editor} data-line data-error={isInvalid || undefined}>
      <input
        ref={input}
        className={classes.plain}
        id={id}
        value={value}
        onChange={(event) => onChange?.(event.currentTarget.value)}
        readOnly={readOnly}
        placeholder={placeholder}
        aria-label={label}
        aria-describedby={describedBy}
        aria-invalid={isInvalid || undefined}
        spellCheck={false}
        autoComplete="off"
      />
    </div>
  );
}

import { lazy, Suspense } from "react";
import { Bone, Late } from "./Skeleton";

export interface CodeEditorProps {
  value: string;
  onChange?: (value: string) => void;
  /** The accessible name. */
  label: string;
  /** The ids of the texts that explain the field or show its errors. */
  describedBy?: string | undefined;
  /** Whether one of those texts is an error. */
  isInvalid?: boolean;
  readOnly?: boolean;
  /** The error message of the field. */
  error?: string | undefined;
  /** The minimum and maximum height in lines. The defaults are 3 and 24. */
  minLines?: number;
  maxLines?: number;
}

const Editor = lazy(() => import("./CodeEditorImpl"));

/**
 * An editor for JSON, made with CodeMirror, which is loaded when the first editor is shown. `Tab` moves to the next field, as in any field.
 * Ctrl ] and Ctrl [ indent.
 */
export function CodeEditor(props: CodeEditorProps) {
  const height = (props.minLines ?? 3) * 19 + 14;
  return (
    <Suspense
      fallback={
        <Late>
          <Bone height={height} />
        </Late>
      }
    >
      <Editor {...props} />
    </Suspense>
  );
}

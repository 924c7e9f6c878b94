import { lazy, Suspense } from "react";
import { Bone, Late } from "./Skeleton";

export interface CodeEditorProps {
  value: string;
  onChange?: (value: string) => void;
  language: "json" | "text";
  /** Accessible name. */
  label: string;
  /** Ids of the texts that explain it or say what is wrong. */
  describedBy?: string | undefined;
  /** Whether one of those texts is an error. */
  isInvalid?: boolean;
  readOnly?: boolean;
  /** Shown as an error of the field. */
  error?: string | undefined;
  /** Height in pixels of the least and the most lines: 3 and 24 by default. */
  minLines?: number;
  maxLines?: number;
}

const Editor = lazy(() => import("./CodeEditorImpl"));

/** An editor for JSON: CodeMirror, loaded when it is first shown. `Tab` moves on, as in any field; Ctrl ] and Ctrl [ indent. */
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

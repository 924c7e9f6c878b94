import { lazy, Suspense } from "react";
import { Bone, Late } from "./Skeleton";

export interface CodeEditorProps {
  value: string;
  onChange?: (value: string) => void;
  language: "json" | "regex" | "text";
  /** Accessible name. */
  label: string;
  readOnly?: boolean;
  /** Shown as an error of the field. */
  error?: string | undefined;
  /** Height in pixels of the least and the most lines: 3 and 24 by default. */
  minLines?: number;
  maxLines?: number;
}

const Editor = lazy(() => import("./CodeEditorImpl"));

/** An editor for JSON and patterns: CodeMirror, loaded when it is first shown. `Esc`, then `Tab` leaves it by the keyboard. */
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

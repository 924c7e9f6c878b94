import { Button } from "@mantine/core";
import { type ReactNode, useRef, useState } from "react";
import classes from "./DropFile.module.css";

export interface DropFileProps {
  /** Accessible name of the browser's own field. */
  label: string;
  /** As the browser's dialog takes it: ".wasm,application/wasm". */
  accept: string;
  /** What to drop, and what becomes of it. */
  children: ReactNode;
  /** "Choose a file". */
  action: string;
  isBusy: boolean;
  /** In one line: where a file is chosen already. */
  small?: boolean;
  onFile: (file: File) => void;
}

/** A file by drag and drop or by the browser's dialog. Our own: `@mantine/dropzone` costs 9 KiB for rules of files that nothing here needs. */
export function DropFile({ label, accept, children, action, isBusy, small = false, onFile }: DropFileProps) {
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  return (
    // The button inside does the same by keyboard.
    <div
      className={classes.drop}
      data-over={isOver || undefined}
      data-small={small || undefined}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        const file = event.dataTransfer.files[0];
        if (file !== undefined) onFile(file);
      }}
    >
      {children}
      <Button variant={small ? "default" : "filled"} loading={isBusy} onClick={() => input.current?.click()} data-autofocus>
        {action}
      </Button>
      <input
        ref={input}
        type="file"
        className="sr-only"
        tabIndex={-1}
        aria-label={label}
        accept={accept}
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          // The same file may be chosen again when it has been mended.
          event.currentTarget.value = "";
          if (file !== undefined) onFile(file);
        }}
      />
    </div>
  );
}

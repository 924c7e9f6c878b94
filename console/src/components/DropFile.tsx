import { Button } from "@mantine/core";
import { type ReactNode, useRef, useState } from "react";
import classes from "./DropFile.module.css";

export interface DropFileProps {
  /** The accessible name of the file input. */
  label: string;
  /** The value of the input's `accept`: ".wasm,application/wasm". */
  accept: string;
  /** Says which file to drop, and what happens with it. */
  children: ReactNode;
  /** The label of the button, such as "Choose a file". */
  action: string;
  isBusy: boolean;
  /** One line only. Used when a file is already chosen. */
  small?: boolean;
  onFile: (file: File) => void;
}

/**
 * Takes a file by drag and drop or from the browser's dialog. It is our own, because `@mantine/dropzone` takes 9 KiB for rules about files
 * that the console does not need.
 */
export function DropFile({ label, accept, children, action, isBusy, small = false, onFile }: DropFileProps) {
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  return (
    // The button inside does the same for keyboard users.
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
          // Allows the person to choose the same file again after they have corrected it.
          event.currentTarget.value = "";
          if (file !== undefined) onFile(file);
        }}
      />
    </div>
  );
}

import { Button } from "@mantine/core";
import { IconFileUpload } from "@tabler/icons-react";
import { useRef, useState } from "react";
import type { RecordShape } from "../../../api/record-shape";
import classes from "./transfer.module.css";

/** A file by drag and drop or by the browser's dialog. It stays on this computer until the import begins. */
export function ChooseFile({ shape, error, isReading, onFile }: { shape: RecordShape; error: string | undefined; isReading: boolean; onFile: (file: File) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  return (
    <div
      className={classes.drop}
      data-over={isOver || undefined}
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
      <IconFileUpload size={28} aria-hidden="true" />
      <p className={classes.dropText}>
        Drop a CSV, JSON or NDJSON file here. Nothing is sent before you have matched its columns with those of {shape.label} and checked the rows.
      </p>
      <Button loading={isReading} onClick={() => input.current?.click()} data-autofocus>
        Choose a file
      </Button>
      <input
        ref={input}
        type="file"
        className="sr-only"
        tabIndex={-1}
        aria-label="File to import"
        accept=".csv,.tsv,.txt,.json,.ndjson,.jsonl,text/csv,application/json,application/x-ndjson"
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          event.currentTarget.value = "";
          if (file !== undefined) onFile(file);
        }}
      />
      {error !== undefined && (
        <p className={classes.error} role="alert">
          The file could not be read. {error}
        </p>
      )}
    </div>
  );
}

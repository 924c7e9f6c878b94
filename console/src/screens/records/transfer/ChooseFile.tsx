import { IconFileUpload } from "@tabler/icons-react";
import type { RecordShape } from "../../../api/record-shape";
import { DropFile } from "../../../components/DropFile";
import classes from "./transfer.module.css";

const ACCEPT = ".csv,.tsv,.txt,.json,.ndjson,.jsonl,text/csv,application/json,application/x-ndjson";

/** The file to import. It stays on this computer until the import begins. */
export function ChooseFile({ shape, error, isReading, onFile }: { shape: RecordShape; error: string | undefined; isReading: boolean; onFile: (file: File) => void }) {
  return (
    <>
      <DropFile label="File to import" accept={ACCEPT} action="Choose a file" isBusy={isReading} onFile={onFile}>
        <IconFileUpload size={28} aria-hidden="true" />
        <p>Drop a CSV, JSON or NDJSON file here. Nothing is sent before you have matched its columns with those of {shape.label} and checked the rows.</p>
      </DropFile>
      {error !== undefined && (
        <p className={classes.error} role="alert">
          The file could not be read. {error}
        </p>
      )}
    </>
  );
}

import { Button, Group, Modal } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { type Column, columnLabel } from "../../../api/record-shape";
import { ErrorNotice } from "../../../components/ErrorState";
import { useReturnedFocus } from "../../../components/useReturnedFocus";
import { type ExportFormat, exportView, type View } from "./export";
import { Choice } from "./Choice";
import { NamedBy } from "./NamedBy";
import classes from "./transfer.module.css";

export interface ExportDialogProps {
  object: string;
  view: View;
  /** The columns of the view that refer to other records. */
  references: Column[];
  onClose: () => void;
}

/** A dialog for an export that identifies referenced records by one of their unique fields. */
export default function ExportDialog({ object, view, references, onClose }: ExportDialogProps) {
  const [format, setFormat] = useState<ExportFormat>("csv");
  const [fields, setFields] = useState<Record<string, Column | undefined>>({});
  useReturnedFocus();
  const begin = useMutation({
    mutationFn: () => exportView(object, view, format, references.flatMap((column) => (fields[column.name] === undefined ? [] : [{ column, field: fields[column.name]! }]))),
    onSuccess: onClose,
  });
  return (
    <Modal opened onClose={onClose} title="Export with names">
      <div className={classes.step}>
        <Choice<ExportFormat> label="Format" data={{ csv: "CSV", ndjson: "NDJSON" }} value={format} onChange={setFormat} />
        {references.map((column) => (
          <div key={column.name}>
            <span className={classes.sourceName}>{columnLabel(column)}</span>
            <NamedBy column={column} value={fields[column.name]} onChange={(name, field) => setFields((before) => ({ ...before, [name]: field }))} />
          </div>
        ))}
        <p className={classes.hint}>A record that you may not see, or that has no such value, keeps its id. An import reads the names again.</p>
        {begin.error !== null && <ErrorNotice error={begin.error} />}
        <Group justify="flex-end">
          <Button loading={begin.isPending} onClick={() => begin.mutate()}>
            Export
          </Button>
        </Group>
      </div>
    </Modal>
  );
}

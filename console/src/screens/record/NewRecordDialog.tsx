import { Button, Group, Modal } from "@mantine/core";
import { useMemo, useState } from "react";
import type { JsonObject } from "../../api/json";
import { type RecordShape, displayColumn, displayValue, useRecordShape } from "../../api/record-shape";
import { ErrorNotice } from "../../components/ErrorState";
import { SkeletonLines } from "../../components/Skeleton";
import { RecordForm } from "./RecordForm";
import type { Edits } from "./draft";
import { useCreating } from "./useCreating";
import { Ticked } from "../../components/Ticked";
import classes from "./record.module.css";

export interface NewRecordDialogProps {
  object: string;
  /** The search text. It becomes the value of the column that stands for the record. */
  text?: string;
  /** Values that are already set and not shown in the form. */
  initial?: Edits;
  onClose: () => void;
  /** Called with the record and the text that stands for it. */
  onCreated: (record: JsonObject, text: string | undefined) => void;
}

/** Creates a record in a dialog. Its reference fields may open another such dialog. */
export default function NewRecordDialog(props: NewRecordDialogProps) {
  const shape = useRecordShape(props.object, { isNew: true });
  const [isAsking, setAsking] = useState(false);
  const [isDirty, setDirty] = useState(false);
  const close = () => (isDirty ? setAsking(true) : props.onClose());
  return (
    <Modal
      opened
      onClose={close}
      title={`Create ${shape.data?.label ?? props.object}`}
      size="lg"
      centered
      zIndex={250}
      // Only the innermost dialog closes, so the key must not get to the dialogs around it.
      closeOnEscape={false}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.defaultPrevented) return;
        event.stopPropagation();
        close();
      }}
    >
      {shape.error !== null && shape.data === undefined ? (
        <ErrorNotice error={shape.error} onRetry={shape.refetch} />
      ) : shape.data === undefined ? (
        <SkeletonLines lines={5} />
      ) : shape.data === null ? (
        <p className={classes.nothing}><Ticked text={`There is no object \`${props.object}\` that you may use.`} /></p>
      ) : (
        <Creation {...props} shape={shape.data} onDirty={setDirty} onCancel={close} />
      )}
      {isAsking && (
        <div className={classes.notice} data-tone="amber" role="alert">
          <span className={classes.noticeText}>What you typed here is lost.</span>
          <Button variant="default" size="compact-xs" onClick={() => setAsking(false)}>
            Go on editing
          </Button>
          <Button color="red" size="compact-xs" onClick={props.onClose}>
            Discard it
          </Button>
        </div>
      )}
    </Modal>
  );
}

function Creation({ shape, text = "", initial, onDirty, onCreated, onCancel }: NewRecordDialogProps & { shape: RecordShape; onDirty: (isDirty: boolean) => void; onCancel: () => void }) {
  const first = useMemo((): Edits => {
    const display = displayColumn(shape.columns);
    return { ...(display === undefined || text.trim() === "" ? {} : { [display]: text.trim() }), ...initial };
  }, [shape, text, initial]);
  const hidden = useMemo(() => new Set(Object.keys(initial ?? {})), [initial]);
  const creating = useCreating(shape, first);
  const isDirty = Object.keys(creating.draft.edits).some((name) => creating.draft.edits[name] !== first[name]);
  const [told, setTold] = useState(false);
  if (told !== isDirty) {
    setTold(isDirty);
    queueMicrotask(() => onDirty(isDirty));
  }
  const send = async () => {
    const record = await creating.create();
    if (record !== null) onCreated(record, displayValue(record, shape.columns));
  };
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        event.stopPropagation();
        void send();
      }}
    >
      {creating.failure !== null && <ErrorNotice error={creating.failure} title="The record was not created" />}
      <RecordForm shape={shape} draft={creating.draft} errors={creating.errors} focusOn={creating.focusOn} autoFocus hidden={hidden} />
      <Group justify="flex-end" gap="sm" mt="md">
        <Button variant="default" onClick={onCancel} disabled={creating.isSaving}>
          Cancel
        </Button>
        <Button type="submit" loading={creating.isSaving}>
          Create {shape.label}
        </Button>
      </Group>
    </form>
  );
}

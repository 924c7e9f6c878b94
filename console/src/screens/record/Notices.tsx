import { Button } from "@mantine/core";
import { IconTrash, IconUserEdit } from "@tabler/icons-react";
import type { RecordShape } from "../../api/record-shape";
import { ErrorNotice } from "../../components/ErrorState";
import { Actor } from "../../components/Actor";
import { Time } from "../../components/Time";
import { mergeFields } from "./Merge";
import type { Editing } from "./useEditing";
import classes from "./record.module.css";

/** Notices about the open record: somebody else changed or deleted it, or it was not saved. */
export function Notices({ shape, editing, onRestore, mayCreate }: { shape: RecordShape; editing: Editing; onRestore: () => void; mayCreate: boolean }) {
  const { newer, elsewhere, isDeleted, failure, draft, merge } = editing;
  return (
    <div className={classes.notices} aria-live="polite">
      {isDeleted && (
        <div className={classes.notice} data-tone="red">
          <IconTrash size={16} aria-hidden="true" />
          <span className={classes.noticeText}>
            This record was deleted
            {elsewhere !== null && (
              <>
                {" "}
                by <Actor picture id={elsewhere.actorId} nobody="nobody signed in" /> <Time at={elsewhere.at} />
              </>
            )}
            . What you see is its last state.
          </span>
          {mayCreate && (
            <Button variant="default" size="compact-xs" onClick={onRestore}>
              Create it again
            </Button>
          )}
        </div>
      )}
      {!isDeleted && newer !== null && (
        <div className={classes.notice} data-tone="amber">
          <IconUserEdit size={16} aria-hidden="true" />
          <span className={classes.noticeText}>
            {elsewhere === null ? "Somebody" : <Actor picture id={elsewhere.actorId} nobody="Somebody" />} changed{" "}
            {mergeFields(shape, draft, newer).map(({ label }) => label).slice(0, 4).join(", ") || "this record"} while you were editing.
          </span>
          <Button variant="default" size="compact-xs" onClick={merge}>
            Compare and choose
          </Button>
        </div>
      )}
      {failure !== null && <ErrorNotice error={failure} title="The record was not saved" />}
    </div>
  );
}

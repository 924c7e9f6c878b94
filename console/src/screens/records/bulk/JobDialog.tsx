/**
 * Shows the progress of a job, then its report: the records that were changed, those that the server refused and why, and those that were
 * never tried.
 */
import { Button, Group, Modal, Progress, Stack } from "@mantine/core";
import { useMounted } from "@mantine/hooks";
import { NUMBER } from "../../../api/numbers";
import { CopyButton, CopyText } from "../../../components/Copy";
import { Id } from "../../../components/Id";
import type { JobState } from "./useJob";
import { printReport } from "./job";
import classes from "./Bulk.module.css";

const LISTED_MAX = 20;

export function JobDialog({ state, onCancel, onClose, onContinue }: { state: JobState | null; onCancel: () => void; onClose: () => void; onContinue: ((ids: string[]) => void) | undefined }) {
  const isMounted = useMounted();
  const report = state?.report ?? null;
  const progress = state?.progress ?? null;
  const total = progress?.report.total ?? report?.total ?? 0;
  const tried = progress?.tried ?? 0;
  const verb = state?.verb ?? "";
  const isClean = report !== null && report.stopped === undefined && report.refused.length === 0;
  return (
    <Modal opened={isMounted && state !== null} onClose={report === null ? () => {} : onClose} title={state?.title} centered size="md" withCloseButton={report !== null} closeOnClickOutside={false} closeOnEscape={report !== null}>
      {report === null ? (
        <Stack gap="md">
          <Progress value={total === 0 ? 0 : (tried / total) * 100} aria-label={state?.title ?? "Progress"} size="sm" />
          <div className="nums" role="status">
            {NUMBER.format(tried)} of {NUMBER.format(total)} records
            {progress?.waiting === true && ", waiting because the server is busy"}
            {progress !== null && progress.report.refused.length > 0 && `, ${NUMBER.format(progress.report.refused.length)} refused`}
          </div>
          <Group justify="flex-end">
            <Button variant="default" onClick={onCancel} data-autofocus>
              Stop after this step
            </Button>
          </Group>
        </Stack>
      ) : (
        <Stack gap="md">
          <div role={isClean ? "status" : "alert"} className={classes.summary}>
            <strong>
              {verb} {NUMBER.format(report.done)} of {NUMBER.format(report.total)} records.
            </strong>
            {report.stopped !== undefined && (
              <p dir="auto">
                {report.stopped.reason === "canceled" ? "You stopped it." : report.stopped.status === 403 ? `It stopped because the permission is missing: ${report.stopped.message}` : `It stopped: ${report.stopped.message}`}
                {report.stopped.requestId !== undefined && (
                  <>
                    {" "}
                    Request <CopyText text={report.stopped.requestId} label="Copy the request id" />
                  </>
                )}
              </p>
            )}
            {report.missing > 0 && <p>{NUMBER.format(report.missing)} were not there any more, or are not for you to change.</p>}
            {report.unknown.length > 0 && <p>No answer came for {NUMBER.format(report.unknown.length)}. Look whether they were changed before you try again.</p>}
            {report.left.length > 0 && <p>{NUMBER.format(report.left.length)} were not tried. They are as they were.</p>}
          </div>
          {report.refused.length > 0 && (
            <div>
              <p className={classes.listTitle}>Refused, and as they were:</p>
              <ul className={classes.list} tabIndex={0} aria-label="Refused records">
                {report.refused.slice(0, LISTED_MAX).map(({ id, message }) => (
                  <li key={id}>
                    <Id id={id} /> <span dir="auto">{message}</span>
                  </li>
                ))}
                {report.refused.length > LISTED_MAX && <li className="dim">and {NUMBER.format(report.refused.length - LISTED_MAX)} more, in the copied report</li>}
              </ul>
            </div>
          )}
          <Group justify="flex-end" gap="sm">
            <CopyButton text={printReport(report, verb)} label="Copy report" />
            {onContinue !== undefined && report.left.length > 0 && (
              <Button variant="default" onClick={() => onContinue(report.left)}>
                Try the remaining {NUMBER.format(report.left.length)}
              </Button>
            )}
            <Button onClick={onClose} data-autofocus>
              Close
            </Button>
          </Group>
        </Stack>
      )}
    </Modal>
  );
}

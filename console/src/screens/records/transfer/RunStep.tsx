import { Button, Group, Progress } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { useEffect } from "react";
import type { RecordShape } from "../../../api/record-shape";
import { NUMBER, quantity } from "../../../api/numbers";
import { ErrorNotice } from "../../../components/ErrorState";
import { StatusBadge } from "../../../components/StatusBadge";
import type { Importer, ImportState } from "./importer";
import { REFUSED_KEPT_MAX } from "./importer";
import { download, refusedCsv } from "./refused";
import { Ticked } from "../../../components/Ticked";
import classes from "./transfer.module.css";

const SHOWN_MAX = 100;

export interface RunStepProps {
  shape: RecordShape;
  file: File;
  names: string[];
  importer: Importer;
  state: ImportState;
  onClose: () => void;
  onAgain: () => void;
}

/** Shows the running import, and then its report. */
export function RunStep({ shape, file, names, importer, state, onClose, onAgain }: RunStepProps) {
  const { phase, created, updated, refused, bytes, error, unsure, waitSeconds } = state;
  const isOver = phase === "done" || phase === "canceled" || phase === "failed";
  useEffect(() => {
    if (isOver) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [isOver]);
  const share = phase === "done" || file.size === 0 ? 100 : (bytes / file.size) * 100;
  return (
    <div className={classes.step}>
      <p className={classes.phase} role="status">
        {phase === "running" && `Importing ${file.name}`}
        {phase === "waiting" && `The server asks to wait ${waitSeconds} s`}
        {phase === "paused" && "The import stands still"}
        {phase === "done" && (refused === 0 ? "Everything is imported" : "The import is done; some rows were refused")}
        {phase === "canceled" && "The import was stopped. What is imported stays."}
        {phase === "failed" && "The import broke off. What is imported stays."}
      </p>
      <Progress value={share} aria-label="Imported" color={phase === "failed" ? "red" : phase === "paused" ? "amber" : "indigo"} />
      <div className={classes.counts}>
        <StatusBadge tone="ok">{NUMBER.format(created)} created</StatusBadge>
        {(importer.plan.target !== null || updated > 0) && <StatusBadge tone="info">{NUMBER.format(updated)} updated</StatusBadge>}
        <StatusBadge tone={refused > 0 ? "bad" : "off"}>{NUMBER.format(refused)} refused</StatusBadge>
      </div>
      {(phase === "failed" || phase === "paused") && error !== undefined && <ErrorNotice error={error} title={phase === "failed" ? "The import broke off" : "The server did not take the last rows"} />}
      {phase === "paused" && (
        <>
          {unsure !== undefined && importer.plan.target === null && (
            <p className={classes.hint}>
              Rows {NUMBER.format(unsure.from)} to {NUMBER.format(unsure.to)} were on their way. If the server had them before it fell silent, sending them again makes them twice.
            </p>
          )}
          <Group gap="sm" mt="sm">
            <Button onClick={() => importer.resume("again")}>Send them again</Button>
            <Button variant="default" onClick={() => importer.resume("skip")}>
              Go on without them
            </Button>
          </Group>
        </>
      )}
      {isOver && importer.refused.length > 0 && (
        <>
          <div className={classes.refusedHead}>
            <h3 className={classes.heading}>Refused rows</h3>
            <Button
              variant="default"
              size="compact-xs"
              leftSection={<IconDownload size={13} />}
              onClick={() => download(refusedCsv(names, importer.refused), `${shape.object}-refused.csv`)}
            >
              Download as CSV
            </Button>
          </div>
          <div className={classes.previewFrame} tabIndex={0} role="region" aria-label="Refused rows">
            <table className={classes.preview}>
              <thead>
                <tr>
                  <th scope="col" className={classes.right}>
                    Row
                  </th>
                  <th scope="col">Column</th>
                  <th scope="col">Why</th>
                </tr>
              </thead>
              <tbody>
                {importer.refused.slice(0, SHOWN_MAX).map(({ number, field, reason }) => (
                  <tr key={number}>
                    <td className={classes.right}>{NUMBER.format(number)}</td>
                    <td className="mono">{field ?? "–"}</td>
                    <td>
                      <Ticked text={reason} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {refused > SHOWN_MAX && (
            <p className={classes.hint}>
              The first {SHOWN_MAX} of {quantity(refused, "row")}. The CSV has {refused > REFUSED_KEPT_MAX ? `the first ${NUMBER.format(REFUSED_KEPT_MAX)}` : "all"}.
            </p>
          )}
        </>
      )}
      <Group justify="flex-end" gap="sm" mt="md">
        {!isOver && (
          <Button variant="default" onClick={() => importer.cancel()}>
            Stop the import
          </Button>
        )}
        {isOver && (
          <>
            <Button variant="default" onClick={onAgain}>
              Import another file
            </Button>
            <Button onClick={onClose} data-autofocus>
              Close
            </Button>
          </>
        )}
      </Group>
    </div>
  );
}

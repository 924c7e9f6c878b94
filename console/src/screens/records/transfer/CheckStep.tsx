import { Button, Group, Progress } from "@mantine/core";
import { useEffect, useState } from "react";
import { NUMBER, quantity } from "../../../api/numbers";
import { StatusBadge } from "../../../components/StatusBadge";
import type { Checked, Plan } from "./import.worker";
import type { Reader } from "./reader";
import { Ticked } from "../../../components/Ticked";
import classes from "./transfer.module.css";

const SHOWN_MAX = 50;

/** Checks every row against the rules of the schema, and writes nothing. */
export function CheckStep({ file, plan, check, onBack, onStart }: { file: File; plan: Plan; check: Reader["check"]; onBack: () => void; onStart: () => void }) {
  const [checked, setChecked] = useState<Checked | null>(null);
  const [error, setError] = useState<string>();
  const [progress, setProgress] = useState({ bytes: 0, rows: 0 });
  useEffect(() => {
    let isHere = true;
    check(file, plan, (bytes, rows) => isHere && setProgress({ bytes, rows }))
      .then((result) => isHere && setChecked(result))
      .catch((caught: unknown) => isHere && setError(caught instanceof Error ? caught.message : String(caught)));
    return () => {
      isHere = false;
    };
  }, [file, plan, check]);
  const good = checked === null ? 0 : checked.rows - checked.refused;
  return (
    <div className={classes.step}>
      {checked === null && error === undefined && (
        <div aria-busy="true">
          <p>Checking the rows: {NUMBER.format(progress.rows)} so far.</p>
          <Progress value={file.size === 0 ? 100 : (progress.bytes / file.size) * 100} aria-label="Checked" />
        </div>
      )}
      {error !== undefined && (
        <p className={classes.error} role="alert">
          The file could not be read to its end. {error}
        </p>
      )}
      {checked !== null && (
        <>
          <div className={classes.counts} role="status">
            <StatusBadge tone={good > 0 ? "ok" : "off"}>{quantity(good, "row")} can be sent</StatusBadge>
            {checked.refused > 0 && <StatusBadge tone="warn">{quantity(checked.refused, "row")} cannot</StatusBadge>}
          </div>
          <p className={classes.hint}>
            Nothing has been written. What only the server knows (unique values, references, patterns, permissions) is judged when the rows are imported; what is refused is listed then.
            {checked.refused > 0 && " Rows that cannot be sent are left out and are part of that list."}
          </p>
          {checked.problems.length > 0 && (
            <div className={classes.previewFrame} tabIndex={0} role="region" aria-label="What is wrong">
              <table className={classes.preview}>
                <thead>
                  <tr>
                    <th scope="col">Column</th>
                    <th scope="col">What is wrong</th>
                    <th scope="col" className={classes.right}>
                      Rows
                    </th>
                    <th scope="col" className={classes.right}>
                      First row
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {checked.problems.slice(0, SHOWN_MAX).map(({ field, reason, count, first }) => (
                    <tr key={`${field}${reason}`}>
                      <td className="mono">{field ?? "–"}</td>
                      <td>
                        <Ticked text={reason} />
                      </td>
                      <td className={classes.right}>{NUMBER.format(count)}</td>
                      <td className={classes.right}>{NUMBER.format(first)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </>
      )}
      <Group justify="space-between" mt="md">
        <Button variant="default" onClick={onBack}>
          Back to the columns
        </Button>
        <Button onClick={onStart} disabled={checked === null || good === 0} data-autofocus>
          {checked === null ? "Import" : `Import ${quantity(good, "row")}`}
        </Button>
      </Group>
    </div>
  );
}

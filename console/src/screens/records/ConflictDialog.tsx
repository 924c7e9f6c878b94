/** Somebody changed the record first: what changed meanwhile, and the choice. */
import { Button, Group, Modal, Stack } from "@mantine/core";
import { useMounted } from "@mantine/hooks";
import { useEffect, useState } from "react";
import { sameJson } from "../../api/json";
import { Value } from "../../components/Value";
import type { RecordShape } from "./columns";
import classes from "./Records.module.css";
import type { Conflict } from "./useEdits";

export function ConflictDialog({ conflict, shape }: { conflict: Conflict | null; shape: RecordShape }) {
  const isMounted = useMounted();
  const [shown, setShown] = useState(conflict);
  useEffect(() => {
    if (conflict !== null) setShown(conflict);
  }, [conflict]);
  const at = conflict ?? shown;
  const changed = at === null ? [] : shape.columns.filter(({ id, isSystem }) => !isSystem && (id in at.mine || !sameJson(at.row[id], at.before[id])));
  return (
    <Modal opened={isMounted && conflict !== null} onClose={() => conflict?.settle("theirs")} title="Somebody changed this record meanwhile" centered size="lg">
      {at !== null && (
        <Stack gap="md">
          <div>Your change is not saved yet. Columns that changed since you saw them:</div>
          <table className={classes.table} aria-label="What changed">
            <thead>
              <tr>
                <th>Column</th>
                <th>You saw</th>
                <th>Now</th>
                <th>Yours</th>
              </tr>
            </thead>
            <tbody>
              {changed.map(({ id, label, type }) => (
                <tr key={id}>
                  <th scope="row">
                    <bdi>{label}</bdi>
                  </th>
                  <td>
                    <Value value={at.before[id]} type={type} />
                  </td>
                  <td>
                    <Value value={at.row[id]} type={type} />
                  </td>
                  <td>{id in at.mine ? <Value value={at.mine[id]} type={type} /> : <span className="dim">unchanged</span>}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={() => conflict?.settle("theirs")} data-autofocus>
              Keep what is there
            </Button>
            <Button onClick={() => conflict?.settle("mine")}>Save mine</Button>
          </Group>
        </Stack>
      )}
    </Modal>
  );
}

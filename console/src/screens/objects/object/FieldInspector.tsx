import { Button } from "@mantine/core";
import { printJson } from "../../../api/json";
import { Inspector, type PaneActions } from "../../../components/Inspector";
import { Effect } from "../change/Effect";
import { FieldForm } from "../field/FieldForm";
import { type DraftField, editField } from "../model/draft";
import { usePlan } from "../model/plan";
import { refusalAt } from "../model/refusalAt";
import type { ObjectDraft } from "./useObjectDraft";
import classes from "./Objects.module.css";

export interface FieldInspectorProps extends PaneActions {
  state: ObjectDraft;
  row: DraftField;
  canUpdate: boolean;
  canDrop: boolean;
}

/** The inspector of a field: its rules, and the effect of a change. Edits are pending until the steps are applied. */
export function FieldInspector({ state, row, canUpdate, canDrop, ...pane }: FieldInspectorProps) {
  const { base, edits, change, steps, failure, schemaVersion } = state;
  const { key, field, before, problems } = row;
  const step = steps.find((each) => each.about === key);
  const isSound = Object.keys(problems).length === 0;
  const { plan, error, isPending } = usePlan(step !== undefined && isSound && !step.waits ? step.request : null, schemaVersion);
  const refusals = { ...refusalAt(error), ...(failure?.about === key ? refusalAt(failure.error) : {}) };
  const isDropped = row.state === "dropped";
  const drop = () => change({ ...edits, dropped: [...edits.dropped, key], changed: Object.fromEntries(Object.entries(edits.changed).filter(([name]) => name !== key)) });
  return (
    <Inspector
      title={field.name === "" ? "New field" : field.name}
      {...pane}
      footer={
        <>
        {step !== undefined && isSound && (
          <section className={classes.footEffect} aria-label="Effect">
            <Effect plan={plan} error={error} isPending={isPending} waits={step.waits} />
          </section>
        )}
        {row.state === "new" ? (
          <Button
            variant="default"
            onClick={() => {
              change({ ...edits, added: edits.added.filter((each) => each.key !== key), ...withoutRef(edits, key) });
              pane.onClose();
            }}
          >
            Remove
          </Button>
        ) : isDropped ? (
          <Button variant="default" onClick={() => change({ ...edits, dropped: edits.dropped.filter((name) => name !== key) })}>
            Keep the field
          </Button>
        ) : (
          <>
            {canDrop && (
              <Button variant="default" c="var(--bb-red)" onClick={drop}>
                Drop field
              </Button>
            )}
            {row.state === "changed" && (
              <Button variant="default" onClick={() => change({ ...edits, changed: Object.fromEntries(Object.entries(edits.changed).filter(([name]) => name !== key)) })}>
                Undo the changes
              </Button>
            )}
          </>
        )}
        </>
      }
    >
      {isDropped ? (
        <p>
          The field <code className="mono">{key}</code> is dropped with all of its values when the changes are applied. Unique groups and indexes that name it go too.
        </p>
      ) : canUpdate ? (
        <FieldForm key={key} field={field} before={before} problems={problems} refusals={refusals} onChange={(patch) => change((now) => editField(base, now, key, patch))} autoFocus={row.state === "new" && field.name === ""} />
      ) : (
        <ReadOnlyField row={row} />
      )}
    </Inspector>
  );
}

function withoutRef(edits: ObjectDraft["edits"], key: string): Pick<ObjectDraft["edits"], "uniqueTogether" | "indexes"> {
  const cut = (groups: string[][] | null) => groups?.filter((group) => !group.includes(key)) ?? null;
  return { uniqueTogether: cut(edits.uniqueTogether), indexes: cut(edits.indexes) };
}

function ReadOnlyField({ row: { field } }: { row: DraftField }) {
  return (
    <table className={classes.keys}>
      <tbody>
        {Object.entries(field).map(([key, value]) => (
          <tr key={key}>
            <th scope="row">{key}</th>
            <td className="mono" dir="auto">
              {typeof value === "string" ? value : printJson(value)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

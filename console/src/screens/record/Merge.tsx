import { Button, Group, Modal } from "@mantine/core";
import { useMemo, useState } from "react";
import { type JsonValue, sameJson } from "../../api/json";
import { columnLabel, type RecordShape } from "../../api/record-shape";
import type { VersionedRecord } from "../../api/records";
import { Actor } from "../../components/Actor";
import { Time } from "../../components/Time";
import { Value } from "../../components/Value";
import { type Draft, type Edits, Unreadable } from "./draft";
import classes from "./record.module.css";

export type Side = "mine" | "theirs";

export interface MergeField {
  name: string;
  label: string;
  before: JsonValue;
  mine: JsonValue;
  theirs: JsonValue;
  /** Whether this person has edited it. */
  isEdited: boolean;
}

/** The columns that somebody else changed since the draft began. */
export function mergeFields(shape: RecordShape, draft: Draft, latest: VersionedRecord): MergeField[] {
  if (draft.base === null) return [];
  const base = draft.base.record;
  return shape.columns.flatMap((column) => {
    const before = base[column.name] ?? null;
    const theirs = latest.record[column.name] ?? null;
    if (sameJson(before, theirs)) return [];
    const edited = draft.edits[column.name];
    const mine = edited === undefined ? before : edited instanceof Unreadable ? edited.text : edited;
    return [{ name: column.name, label: columnLabel(column), before, mine, theirs, isEdited: column.name in draft.edits }];
  });
}

export interface MergeProps {
  shape: RecordShape;
  draft: Draft;
  latest: VersionedRecord;
  by: string | null | undefined;
  onCancel: () => void;
  /** The edits that are left over the newer version. */
  onDone: (edits: Edits) => void;
}

/** Somebody was faster: shows field by field what changed, and keeps what the person chooses. */
export function Merge({ shape, draft, latest, by, onCancel, onDone }: MergeProps) {
  const fields = useMemo(() => mergeFields(shape, draft, latest), [shape, draft, latest]);
  const [chosen, setChosen] = useState<Record<string, Side>>({});
  const sideOf = (field: MergeField): Side => chosen[field.name] ?? (field.isEdited ? "mine" : "theirs");
  const all = (side: Side) => setChosen(Object.fromEntries(fields.map(({ name }) => [name, side])));
  const untouched = draft.changed.filter((name) => !fields.some((field) => field.name === name));
  const typeOf = (name: string) => shape.columns.find((column) => column.name === name)?.type;
  const apply = () => {
    const edits: Record<string, Edits[string]> = {};
    for (const name of untouched) edits[name] = draft.edits[name];
    for (const field of fields) if (sideOf(field) === "mine") edits[field.name] = field.isEdited ? draft.edits[field.name] : field.before;
    onDone(edits);
  };
  return (
    <Modal opened onClose={onCancel} title="Somebody changed this record meanwhile" size="xl" centered zIndex={300}>
      <p className={classes.sectionNote}>
        <Actor picture id={by} nobody="nobody signed in" /> changed {fields.length === 1 ? "one field" : `${fields.length} fields`} <Time at={String(latest.record.updated_at ?? "")} />. Choose what each field keeps.
        {untouched.length > 0 && ` Your changes to ${untouched.join(", ")} stay.`}
      </p>
      <Group gap="sm" my="sm">
        <Button variant="default" size="compact-xs" onClick={() => all("mine")}>
          Mine everywhere
        </Button>
        <Button variant="default" size="compact-xs" onClick={() => all("theirs")}>
          Theirs everywhere
        </Button>
      </Group>
      {fields.map((field) => {
        const side = sideOf(field);
        return (
          <fieldset className={classes.mergeRow} key={field.name}>
            <legend dir="auto">{field.label}</legend>
            <div className={classes.mergeBefore}>
              Before: <Value value={field.before} type={typeOf(field.name)} />
            </div>
            <div className={classes.choices}>
              {(["mine", "theirs"] as const).map((each, index) => (
                <label className={classes.choice} key={each} data-on={side === each || undefined}>
                  <input type="radio" name={`merge-${field.name}`} checked={side === each} onChange={() => setChosen({ ...chosen, [field.name]: each })} data-autofocus={index === 0 && field === fields[0] ? true : undefined} />
                  <span className={classes.choiceBody}>
                    <span className={classes.choiceWho}>{each === "mine" ? (field.isEdited ? "Mine" : "Mine (as it was)") : "Theirs"}</span>
                    <br />
                    <Value value={field[each]} type={typeOf(field.name)} />
                  </span>
                </label>
              ))}
            </div>
          </fieldset>
        );
      })}
      {fields.length === 0 && <p className={classes.sectionNote}>No field that you see differs. Save again to write your changes over the newer version.</p>}
      <Group justify="flex-end" gap="sm" mt="md">
        <Button variant="default" onClick={onCancel}>
          Go on editing
        </Button>
        <Button onClick={apply}>Save the choice</Button>
      </Group>
    </Modal>
  );
}

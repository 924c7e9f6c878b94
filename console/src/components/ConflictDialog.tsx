import { Button, Group, Modal } from "@mantine/core";
import { useState } from "react";
import { type JsonObject, type JsonValue, sameJson } from "../api/json";
import type { FieldType } from "../api/types";
import { Actor } from "./Actor";
import classes from "./ConflictDialog.module.css";
import { Time } from "./Time";
import { useReturnedFocus } from "./useReturnedFocus";
import { Value } from "./Value";

export interface ConflictField {
  name: string;
  label: string;
  type: FieldType;
  before: JsonValue;
  mine: JsonValue;
  theirs: JsonValue;
  /** Whether this person has changed the field, too. */
  isEdited: boolean;
}

/**
 * The fields that somebody else has changed since this person read the record. `mine` has this person's changes. If `before` lacks a field,
 * the page never saw its value and cannot know whether it changed. Such a field is left out and keeps its value.
 */
export function conflictFields(columns: Pick<ConflictField, "name" | "label" | "type">[], before: JsonObject, theirs: JsonObject, mine: Record<string, JsonValue>): ConflictField[] {
  return columns.flatMap(({ name, label, type }) => {
    if (!(name in before)) return [];
    const [was, is] = [before[name] ?? null, theirs[name] ?? null];
    if (sameJson(was, is)) return [];
    const isEdited = name in mine;
    return [{ name, label, type, before: was, theirs: is, mine: isEdited ? mine[name]! : was, isEdited }];
  });
}

/** The user who changed a record last. Undefined if this person may not read that. */
export const changedBy = ({ updated_by: by }: JsonObject): string | null | undefined => (typeof by === "string" || by === undefined ? by : null);

export interface ConflictDialogProps {
  fields: ConflictField[];
  /** The user who saved first, and the time. Undefined if this person may not read it. */
  by: string | null | undefined;
  at: JsonValue | undefined;
  /** Fields that only this person has changed. They keep this person's values. */
  untouched: string[];
  /** The label of the button that leaves the dialog: "Go on editing". */
  leave: string;
  onLeave: () => void;
  save: string;
  /** Gets the fields that keep this person's value. */
  onSave: (mine: ConflictField[]) => void;
}

/** Shown if somebody else saved first. It shows each changed field, and the person chooses which value to keep. */
export function ConflictDialog({ fields, by, at, untouched, leave, onLeave, save, onSave }: ConflictDialogProps) {
  useReturnedFocus();
  const [chosen, setChosen] = useState<Record<string, "mine" | "theirs">>({});
  const sideOf = ({ name, isEdited }: ConflictField) => chosen[name] ?? (isEdited ? "mine" : "theirs");
  const who = <Actor picture id={by} nobody={by === undefined ? "Somebody" : "nobody signed in"} />;
  const when = at !== undefined && (
    <>
      {" "}
      <Time at={String(at ?? "")} />
    </>
  );
  const all = (side: "mine" | "theirs") => setChosen(Object.fromEntries(fields.map(({ name }) => [name, side])));
  return (
    <Modal opened onClose={onLeave} title="Somebody changed this record meanwhile" size="xl" centered zIndex={300}>
      {fields.length === 0 ? (
        <p className={classes.note}>
          {who} saved this record{when}. No field that you see differs.
        </p>
      ) : (
        <>
          <p className={classes.note}>
            {who} changed {fields.length === 1 ? "one field" : `${fields.length} fields`}
            {when}. Choose what each field keeps.
            {untouched.length > 0 && ` Your changes to ${untouched.join(", ")} are saved with the choice.`}
          </p>
          <Group gap="sm" my="sm">
            <Button variant="default" size="compact-xs" onClick={() => all("mine")}>
              Mine everywhere
            </Button>
            <Button variant="default" size="compact-xs" onClick={() => all("theirs")}>
              Theirs everywhere
            </Button>
          </Group>
        </>
      )}
      {fields.map((field) => {
        const side = sideOf(field);
        return (
          <fieldset className={classes.field} key={field.name}>
            <legend dir="auto">{field.label}</legend>
            <div className={classes.before}>
              Before: <Value value={field.before} type={field.type} />
            </div>
            <div className={classes.choices}>
              {(["mine", "theirs"] as const).map((each, index) => (
                <label className={classes.choice} key={each} data-on={side === each || undefined}>
                  <input type="radio" name={`merge-${field.name}`} checked={side === each} onChange={() => setChosen({ ...chosen, [field.name]: each })} data-autofocus={index === 0 && field === fields[0] ? true : undefined} />
                  <span className={classes.choiceBody}>
                    <span className={classes.choiceWho}>{each === "mine" ? (field.isEdited ? "Mine" : "Mine (as it was)") : "Theirs"}</span>
                    <br />
                    <Value value={field[each]} type={field.type} />
                  </span>
                </label>
              ))}
            </div>
          </fieldset>
        );
      })}
      <Group justify="flex-end" gap="sm" mt="md">
        <Button variant="default" onClick={onLeave}>
          {leave}
        </Button>
        <Button onClick={() => onSave(fields.filter((field) => sideOf(field) === "mine"))}>{save}</Button>
      </Group>
    </Modal>
  );
}

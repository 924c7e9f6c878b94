import { Select, Stack, Switch, TextInput } from "@mantine/core";
import { useId } from "react";
import { USERS, oneOf } from "../../../api/users-object";
import { SELF } from "../model/draft";
import { KIND_LABELS, KIND_SYMBOLS, ON_DELETE_LABELS, type OnDelete, type RelationDefinition, type RelationKind, changed, defaultOnDelete, kindSentence, kindsTo, onDeleteChoices, onDeleteSentence, relationKeys } from "../model/relations";
import classes from "./Objects.module.css";

export interface RelationFormProps {
  /** The object of the page, which is the relation's source. It may be "" while a new object has no name. */
  object: string;
  objects: string[];
  definition: RelationDefinition;
  problem: string | undefined;
  refusal?: string | undefined;
  onChange: (definition: RelationDefinition) => void;
}

/** A name for the relation, used until the person types another one. */
export function proposedName(object: string, kind: RelationKind, target: string): string {
  if (target === "") return "";
  if (kind === "one_to_many") return object;
  const base = target === object || target === SELF ? "parent" : kind === "many_to_many" ? target : oneOf(target);
  return kind === "many_to_many" ? (base.endsWith("s") ? base : `${base}s`).slice(0, 45) : base.slice(0, 45);
}

/**
 * A form for a new relation: the other object, the kind, the name, and the rule for deletions. Sentences explain each choice with the names
 * of the two objects.
 */
export function RelationForm({ object, objects, definition, problem, refusal, onChange }: RelationFormProps) {
  const id = useId();
  const own = object === "" ? "this object" : object;
  const shown = (name: string) => (name === "" ? "other" : name === SELF ? own : name);
  const named = { ...definition, source: own, target: shown(definition.target), name: definition.name === "" ? "…" : definition.name };
  const change = (patch: Partial<RelationDefinition>) => {
    const next = changed(definition, patch);
    const untouched = definition.name === "" || definition.name === proposedName(object, definition.kind, definition.target);
    if (untouched && patch.name === undefined) next.name = proposedName(object, next.kind, next.target);
    onChange(next);
  };
  const { column } = relationKeys(named);
  const onDelete = definition.onDelete ?? defaultOnDelete(definition);
  return (
    <Stack gap="lg" pt="xs" px="md" pb="lg">
      <div className={classes.formRow}>
        <Select
          label="Other object"
          description={definition.target === USERS ? "Users can always be deleted, and they have no fields of their own." : undefined}
          inputWrapperOrder={["label", "input", "error", "description"]}
          placeholder="Choose an object"
          data={[
            ...objects.filter((name) => name !== object).map((name) => ({ value: name, label: name })),
            { value: USERS, label: "users, the accounts of this service" },
            { value: object === "" ? SELF : object, label: `${own} itself` },
          ]}
          value={definition.target === "" ? null : definition.target}
          onChange={(target) => target !== null && change({ target })}
          searchable
          allowDeselect={false}
          nothingFoundMessage="No object is named so"
          maxDropdownHeight={280}
          required
        />
        <TextInput
          label="Name"
          description={column === null ? "The key on both sides." : "The key on the side that holds the column."}
          inputWrapperOrder={["label", "input", "error", "description"]}
          value={definition.name}
          onChange={(event) => change({ name: event.currentTarget.value })}
          error={refusal ?? (definition.target === "" ? undefined : problem)}
          classNames={{ input: "mono" }}
          spellCheck={false}
          autoComplete="off"
          required
        />
      </div>
      <fieldset className={classes.plainSet}>
        <legend className={classes.legend}>How many on each side</legend>
        <div className={classes.choices}>
          {kindsTo(definition.target).map((kind) => (
            <label key={kind} className={classes.choice} data-checked={definition.kind === kind || undefined}>
              <input type="radio" name={`${id}-kind`} checked={definition.kind === kind} onChange={() => change({ kind })} />
              <b>
                {KIND_LABELS[kind]} <span className={classes.symbol}>{KIND_SYMBOLS[kind]}</span>
              </b>
              <small>{kindSentence({ ...named, kind })}</small>
            </label>
          ))}
        </div>
      </fieldset>
      <fieldset className={classes.plainSet}>
        <legend className={classes.legend}>{definition.target === USERS && definition.kind !== "many_to_many" ? "When a user is deleted" : "When a record is deleted"}</legend>
        <div className={classes.choices}>
          {onDeleteChoices(definition).map((rule: OnDelete) => (
            <label key={rule} className={classes.choice} data-checked={onDelete === rule || undefined}>
              <input type="radio" name={`${id}-delete`} checked={onDelete === rule} onChange={() => change({ onDelete: rule })} />
              <b>{definition.kind === "many_to_many" && rule === "cascade" ? "Remove links" : ON_DELETE_LABELS[rule]}</b>
              <small>{onDeleteSentence(named, rule)}</small>
            </label>
          ))}
        </div>
      </fieldset>
      {definition.kind !== "many_to_many" && (
        <Switch
          label={`Every ${column?.object ?? own} needs one`}
          description="A required relation can be added while its object has no records."
          checked={definition.required === true}
          onChange={(event) => change({ required: event.currentTarget.checked })}
        />
      )}
      {definition.target !== "" && definition.name !== "" && <RelationKeys relation={named} />}
    </Stack>
  );
}

/** The column and keys that the relation adds to the records on both sides. */
export function RelationKeys({ relation }: { relation: Pick<RelationDefinition, "kind" | "source" | "target" | "name" | "required"> }) {
  const { column, keys } = relationKeys(relation);
  return (
    <table className={classes.keys} aria-label={`What ${relation.name} adds`}>
      <tbody>
        {column !== null && (
          <tr>
            <th scope="row">Column</th>
            <td>
              <code className="mono">
                {column.object}.{column.name}
              </code>{" "}
              <span className="dim">{column.note}</span>
            </td>
          </tr>
        )}
        {keys.map(({ object, key, shows }) => (
          <tr key={`${object} ${key}`}>
            <th scope="row">Expands on {object}</th>
            <td>
              <code className="mono">{key}</code> <span className="dim">{shows}</span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

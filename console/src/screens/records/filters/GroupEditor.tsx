/** The rows of a condition: groups of tests, and conditions on related records. */
import { ActionIcon, Button, NativeSelect } from "@mantine/core";
import { IconPlus, IconX } from "@tabler/icons-react";
import { printJson } from "../../../api/json";
import type { RecordShape } from "../columns";
import { TestFields } from "./TestFields";
import { isComplete } from "./sendable";
import { type Group, type Part, QUANTIFIERS, type Quantifier, type Related, type ShapeOf, emptyTest, groupOf, shapeAt } from "./tree";
import { type TitleOf, relationLabel, textOf, wordsOf } from "./words";
import classes from "./Editors.module.css";

/** The ways to join the parts of a group, as one choice. */
const JOINS = [
  { value: "and", label: "all of these (and)", joined: "and", isNegated: false },
  { value: "or", label: "any of these (or)", joined: "or", isNegated: false },
  { value: "not or", label: "none of these (not, or)", joined: "or", isNegated: true },
  { value: "not and", label: "not all of these (not, and)", joined: "and", isNegated: true },
] as const;
const QUANTIFIED: Record<Quantifier, string> = { some: "some of", none: "none of", every: "all of" };

export interface Editing {
  of: ShapeOf;
  titleOf: TitleOf;
  /** Whether the editor offers variables as values. */
  takesVariables: boolean;
  /** Whether the person has tried to apply the condition. After that, missing values are marked. */
  isChecked: boolean;
  put: (at: number[], part: Part) => void;
  remove: (at: number[]) => void;
  mayTake: (at: number[], part: Part) => boolean;
  asJson: () => void;
  apply: () => void;
}

interface GroupEditorProps {
  group: Group;
  at: number[];
  /** The shape of the records that the condition is about. */
  shape: RecordShape;
  edit: Editing;
  /** Set if the group is a condition on related records. `name` is the name of these records. */
  related?: { part: Related; name: string };
}

export function GroupEditor({ group, at, shape, edit, related }: GroupEditorProps) {
  const { put, remove, mayTake } = edit;
  const isRoot = at.length === 0;
  const whole = (next: Group): Part => (related === undefined ? next : { ...related.part, inner: next });
  const change = (next: Group) => put(at, whole(next));
  const adds = (part: Part) => {
    const next = { ...group, parts: [...group.parts, part] };
    return mayTake(at, whole(next)) ? () => change(next) : undefined;
  };
  // Checks that the largest row fits: a test with an operator, which adds one level of JSON compared with a plain value.
  const test = { ...emptyTest(), operator: "gt" as const };
  const addsTest = adds(test) && adds(emptyTest());
  const addsGroup = adds(groupOf([test, test], group.joined === "and" ? "or" : "and")) && adds(groupOf([emptyTest()], group.joined === "and" ? "or" : "and"));
  const name = related?.name ?? "";
  const join = `${group.isNegated ? "not " : ""}${group.joined}`;
  return (
    <div className={classes.group} data-root={isRoot || undefined} role="group" aria-label={isRoot ? "Conditions" : related === undefined ? "Group of conditions" : `Conditions on ${name}`}>
      <div className={classes.groupHead}>
        {related !== undefined && (
          <>
            <NativeSelect className={classes.quantifier!} aria-label={`How many of ${name}`} data={QUANTIFIERS.map((value) => ({ value, label: QUANTIFIED[value] }))} value={related.part.quantifier} onChange={(event) => put(at, { ...related.part, quantifier: event.currentTarget.value as Quantifier })} />
            <bdi className={classes.relation}>{name}</bdi>
            <span className="dim">match</span>
          </>
        )}
        {isRoot && <span className="dim">Records that match</span>}
        <NativeSelect
          className={classes.joins!}
          {...(isRoot && group.parts.every((part) => part.kind !== "test" || part.field !== "") ? { "data-autofocus": true } : {})}
          aria-label={isRoot ? "How all conditions are joined" : related === undefined ? "How the group is joined" : `How the conditions on ${name} are joined`}
          data={JOINS.map(({ value, label }) => ({ value, label }))}
          value={join}
          onChange={(event) => {
            const { joined, isNegated } = JOINS.find(({ value }) => value === event.currentTarget.value)!;
            change({ ...group, joined, isNegated });
          }}
        />
        {!isRoot && (
          <ActionIcon className={classes.removeGroup!} aria-label={related === undefined ? "Remove the group" : `Remove the conditions on ${name}`} onClick={() => remove(at)}>
            <IconX size={14} />
          </ActionIcon>
        )}
      </div>
      {group.parts.map((part, index) => (
        // Two parts may be equal, so the index is the key.
        <div className={classes.row} key={index}>
          <span className={classes.gutter} aria-hidden={index === 0 || undefined}>
            {index === 0 ? "" : group.joined}
          </span>
          <PartEditor part={part} at={[...at, index]} shape={shape} edit={edit} />
        </div>
      ))}
      <div className={classes.adds}>
        <Button variant="subtle" size="compact-xs" data-add={at.join(".")} leftSection={<IconPlus size={13} />} disabled={addsTest === undefined} onClick={addsTest}>
          Add condition
        </Button>
        {addsGroup !== undefined && (
          <Button variant="subtle" color="gray" size="compact-xs" leftSection={<IconPlus size={13} />} onClick={addsGroup}>
            Add group
          </Button>
        )}
        {related !== undefined && group.parts.length === 0 && <span className={classes.hint}>{related.part.quantifier === "every" ? "Add what all of them match." : `Without conditions: whether there ${related.part.quantifier === "none" ? "are none" : "are any"}.`}</span>}
        {addsTest === undefined && <span className={classes.hint}>There is no room for more.</span>}
      </div>
    </div>
  );
}

const namesOf = (path: string[], shape: RecordShape, of: ShapeOf) => path.map((key, step) => relationLabel(key, shapeAt(path.slice(0, step), shape, of))).join(" → ");

function PartEditor({ part, at, shape, edit }: { part: Part; at: number[]; shape: RecordShape; edit: Editing }) {
  const { of, put, remove, mayTake, isChecked, takesVariables } = edit;
  switch (part.kind) {
    case "group":
      return <GroupEditor group={part} at={at} shape={shape} edit={edit} />;
    case "related": {
      const target = shapeAt(part.path, shape, of);
      return target === undefined ? <RawEditor text={part.path.join(".")} at={at} edit={edit} /> : <GroupEditor group={part.inner} at={at} shape={target} edit={edit} related={{ part, name: namesOf(part.path, shape, of) }} />;
    }
    case "raw":
      return <RawEditor text={printJson(part.json)} at={at} edit={edit} />;
    case "test":
      return (
        <div className={classes.test} data-missing={(isChecked && part.field !== "" && !isComplete(part, shape, of)) || undefined}>
          <TestFields
            shape={shape}
            of={of}
            test={part}
            onChange={(next) => put(at, next)}
            onRelated={(path) => put(at, { kind: "related", path, quantifier: "some", inner: groupOf([emptyTest()]) })}
            onSubmit={edit.apply}
            mayTake={(next) => mayTake(at, next)}
            autoFocus={part.field === ""}
            takesVariables={takesVariables}
            withinPortal
          />
          <ActionIcon aria-label={`Remove the condition ${textOf(wordsOf(part, { shape, of, titleOf: edit.titleOf }))}`} onClick={() => remove(at)}>
            <IconX size={14} />
          </ActionIcon>
        </div>
      );
  }
}

/** A part that the builder cannot show. */
function RawEditor({ text, at, edit }: { text: string; at: number[]; edit: Editing }) {
  return (
    <div className={classes.rawRow}>
      <code className={classes.rawText}>{text}</code>
      <Button variant="default" size="compact-xs" onClick={edit.asJson}>
        Edit as JSON
      </Button>
      <ActionIcon aria-label="Remove this condition" onClick={() => edit.remove(at)}>
        <IconX size={14} />
      </ActionIcon>
    </div>
  );
}

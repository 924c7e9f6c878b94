/** Builds a filter of several conditions: and, or, not, and what is asked of related records. */
import { ActionIcon, Button, Modal, NativeSelect } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconBraces, IconPlus, IconX } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { api, dataOf } from "../../../api/client";
import { isApiError } from "../../../api/errors";
import { type JsonObject, isJsonObject, parseJson, printJson } from "../../../api/json";
import { CodeEditor } from "../../../components/CodeEditor";
import { ErrorNotice } from "../../../components/ErrorState";
import { Ticked } from "../../../components/Ticked";
import type { RecordShape } from "../columns";
import { filterParameters, queryText } from "../list-query";
import { Sentence } from "./Sentence";
import { TestFields } from "./TestFields";
import { fits, isComplete, pruned } from "./sendable";
import { type Filter, type Group, type Part, QUANTIFIERS, type Quantifier, type Related, type ShapeOf, emptyTest, filterOf, groupOf, printParts, readWhere, shapeAt } from "./tree";
import { type TitleOf, relationLabel, textOf, wordsOf, wordsOfAll } from "./words";
import classes from "./Editors.module.css";

/** Typing waits this long before the server counts. */
const TYPING_MS = 300;
const NUMBER = new Intl.NumberFormat("en");

export interface BuilderProps {
  shape: RecordShape;
  of: ShapeOf;
  /** The parts of the filter, which are ANDed, or a text that is no condition. */
  from: Part[] | string;
  search: string;
  titleOf: TitleOf;
  onApply: (filter: Filter) => void;
  onClose: () => void;
}

/** How the parts of a group are joined, as one choice. */
const JOINS = [
  { value: "and", label: "all of these (and)", joined: "and", isNegated: false },
  { value: "or", label: "any of these (or)", joined: "or", isNegated: false },
  { value: "not or", label: "none of these (not, or)", joined: "or", isNegated: true },
  { value: "not and", label: "not all of these (not, and)", joined: "and", isNegated: true },
] as const;
const QUANTIFIED: Record<Quantifier, string> = { some: "some of", none: "none of", every: "all of" };

/** The parts of a filter as one group, and back: a group that is an AND is the filter itself. */
function rootOf(parts: Part[]): Group {
  const alone = parts.length === 1 ? parts[0]! : undefined;
  return alone?.kind === "group" ? alone : groupOf(parts.length === 0 ? [emptyTest()] : parts);
}
const partsOfRoot = (root: Group): Part[] => (root.joined === "and" && !root.isNegated ? root.parts : [root]);

/** The root with another part at a place; without one, the part there goes. */
function replaced(group: Group, [first, ...rest]: number[], part: Part | null): Group {
  if (first === undefined) return part?.kind === "group" ? part : group;
  const there = group.parts[first]!;
  if (rest.length === 0) return { ...group, parts: part === null ? group.parts.toSpliced(first, 1) : group.parts.toSpliced(first, 1, part) };
  if (there.kind === "group") return { ...group, parts: group.parts.with(first, replaced(there, rest, part)) };
  if (there.kind === "related") return { ...group, parts: group.parts.with(first, { ...there, inner: replaced(there.inner, rest, part) }) };
  return group;
}

export function Builder({ shape, of, from, search, titleOf, onApply, onClose }: BuilderProps) {
  const [root, setRoot] = useState<Group>(() => rootOf(typeof from === "string" ? [] : from));
  /** The condition as text, while it is edited so. */
  const [text, setText] = useState<string | null>(typeof from === "string" ? from : null);
  const [isChecked, setChecked] = useState(false);
  const tree = useRef<HTMLDivElement>(null);
  const toggle = useRef<HTMLButtonElement>(null);

  const parts = pruned(partsOfRoot(root));
  const read = text === null ? null : readText(text);
  // A filter that came too large is the server's to refuse, which names the place; the builder offers nothing that makes one.
  const isWhole = read === null ? parts.every((part) => isComplete(part, shape, of)) : "json" in read;
  const shownParts = read === null ? parts : "json" in read ? readWhere(read.json, shape, of) : [];
  const built = filterOf(shownParts, shape, of);
  // A text stays as it was written, unless plain conditions say the same.
  const filter: Filter = read !== null && "json" in read && built.where !== "" ? { conditions: [], where: printJson(read.json) } : built;
  const words = wordsOfAll(shownParts, "and", { shape, of, titleOf });

  const query = queryText(filterParameters({ ...filter, search, sort: [] }, shape));
  const [settled] = useDebouncedValue(query, TYPING_MS);
  const isCurrent = settled === query && isWhole;
  const counted = useQuery({
    // As the totals of the list, so that live changes count it again.
    queryKey: ["data", shape.name, "total", settled],
    queryFn: async ({ signal }) => Number((await dataOf(api.GET("/api/v1/data/{object}/aggregate", { params: { path: { object: shape.name }, query: `fn=count&${settled}` }, signal }))).filteredCount),
    // What was settled before may not have been complete.
    enabled: isCurrent,
    retry: false,
  });
  const refusal = isCurrent ? counted.error : null;
  const isRefused = isApiError(refusal) && refusal.status >= 400 && refusal.status < 500 && refusal.status !== 429;

  const apply = () => {
    setChecked(true);
    if (isWhole && !isRefused) onApply(filter);
  };
  const edit: Editing = {
    of,
    titleOf,
    isChecked,
    put: (at, part) => setRoot((now) => replaced(now, at, part)),
    remove: (at) => {
      setRoot((now) => replaced(now, at, null));
      // The button went: the focus goes to the one that adds to the same group.
      requestAnimationFrame(() => tree.current?.querySelector<HTMLElement>(`[data-add="${at.slice(0, -1).join(".")}"]`)?.focus());
    },
    mayTake: (at, part) => fits(partsOfRoot(replaced(root, at, part)), shape, of),
    asJson: () => {
      setText(printJson(printParts(parts, shape, of), 2));
      requestAnimationFrame(() => toggle.current?.focus());
    },
    apply,
  };
  const back = () => {
    if (read === null || !("json" in read)) return;
    setRoot(rootOf(readWhere(read.json, shape, of)));
    setText(null);
  };

  return (
    <Modal opened onClose={onClose} title="Filter" size={780} xOffset={12}>
      <form
        className={classes.builder}
        onSubmit={(event) => {
          event.preventDefault();
          apply();
        }}
      >
        <p className={classes.said} data-sentence>
          {words.length === 0 ? <span className="dim">All records. Choose a column or a relation.</span> : <Sentence words={words} />}
        </p>
        <div className={classes.tree} ref={tree}>
          {text === null ? (
            <GroupEditor group={root} at={[]} shape={shape} edit={edit} />
          ) : (
            <>
              <CodeEditor language="json" label="Condition" value={text} onChange={setText} minLines={8} maxLines={20} error={read !== null && "problem" in read && text.trim() !== "" ? read.problem : undefined} />
              <p className={classes.hint}>
                <Ticked text="The condition as the parameter `where` takes it: fields, operators and relations, `_and`, `_or` and `_not`." />
              </p>
            </>
          )}
        </div>
        {refusal !== null && <ErrorNotice error={refusal} title={isRefused ? "The server refuses this filter" : "The records could not be counted"} />}
        <div className={classes.builderFoot}>
          <span className={classes.found} role="status">
            {!isWhole ? (
              isChecked && text === null ? (
                <span className={classes.missing}>Complete the marked conditions, or remove them.</span>
              ) : (
                ""
              )
            ) : isCurrent && counted.data !== undefined ? (
              `${NUMBER.format(counted.data)} ${counted.data === 1 ? "record matches" : "records match"}`
            ) : refusal === null ? (
              "Counting"
            ) : (
              ""
            )}
          </span>
          {text === null ? (
            <Button ref={toggle} variant="subtle" color="gray" leftSection={<IconBraces size={14} />} onClick={edit.asJson}>
              Edit as JSON
            </Button>
          ) : (
            <Button ref={toggle} variant="subtle" color="gray" disabled={read === null || !("json" in read)} onClick={back}>
              Back to the builder
            </Button>
          )}
          <Button type="submit" disabled={isRefused || (text !== null && !isWhole)}>
            Apply
          </Button>
        </div>
      </form>
    </Modal>
  );
}

function readText(text: string): { json: JsonObject } | { problem: string } {
  try {
    const json = parseJson(text);
    return isJsonObject(json) ? { json } : { problem: 'A condition is a JSON object, such as {"status": "open"}.' };
  } catch (error) {
    return { problem: `This is not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}

interface Editing {
  of: ShapeOf;
  titleOf: TitleOf;
  /** Whether somebody tried to apply it: from then on, what is missing is marked. */
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
  /** The shape of the records that it asks about. */
  shape: RecordShape;
  edit: Editing;
  /** The group is what is asked of related records, which are called so. */
  related?: { part: Related; name: string };
}

function GroupEditor({ group, at, shape, edit, related }: GroupEditorProps) {
  const { put, remove, mayTake } = edit;
  const isRoot = at.length === 0;
  const whole = (next: Group): Part => (related === undefined ? next : { ...related.part, inner: next });
  const change = (next: Group) => put(at, whole(next));
  const adds = (part: Part) => {
    const next = { ...group, parts: [...group.parts, part] };
    return mayTake(at, whole(next)) ? () => change(next) : undefined;
  };
  // There is room for what a row becomes: a test with an operator, which is an object more than a plain value.
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
        // Parts may be alike, so their place is their identity.
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
        {addsTest === undefined && <span className={classes.hint}>A filter has no room for more.</span>}
      </div>
    </div>
  );
}

const namesOf = (path: string[], shape: RecordShape, of: ShapeOf) => path.map((key, step) => relationLabel(key, shapeAt(path.slice(0, step), shape, of))).join(" → ");

function PartEditor({ part, at, shape, edit }: { part: Part; at: number[]; shape: RecordShape; edit: Editing }) {
  const { of, put, remove, mayTake, isChecked } = edit;
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
            withinPortal
          />
          <ActionIcon aria-label={`Remove the condition ${textOf(wordsOf(part, { shape, of, titleOf: edit.titleOf }))}`} onClick={() => remove(at)}>
            <IconX size={14} />
          </ActionIcon>
        </div>
      );
  }
}

/** What the builder has no fields for. */
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

/** A condition that is being edited, as rows of the builder or as JSON text. */
import { type RefObject, useRef, useState } from "react";
import { type JsonObject, checkJson, isJsonObject, printJson } from "../../../api/json";
import type { RecordShape } from "../columns";
import type { Editing } from "./GroupEditor";
import { type Bounds, OF_REQUEST, fits, isComplete, pruned } from "./sendable";
import { type Group, type Part, type ShapeOf, emptyTest, groupOf, printParts, readWhere } from "./tree";
import type { TitleOf } from "./words";

export interface DraftOptions {
  shape: RecordShape;
  of: ShapeOf;
  titleOf: TitleOf;
  /** The parts, which AND joins, or a text that opens in the text editor. */
  from: Part[] | string;
  bounds?: Bounds;
  takesVariables?: boolean;
  onSubmit: () => void;
}

export interface ConditionDraft {
  root: Group;
  /** The text of the condition while it is edited as text. Otherwise null. */
  text: string | null;
  setText: (text: string) => void;
  /** The error in the text. */
  problem: string | undefined;
  /** The parts from the rows or the text, without rows that have no field yet. */
  parts: Part[];
  /** The condition. Undefined if a row or the text is not complete. Without any part it is `{}`. */
  json: JsonObject | undefined;
  edit: Editing;
  /** Marks missing values. */
  check: () => void;
  /** Switches from the text to the rows. */
  back: () => void;
  tree: RefObject<HTMLDivElement | null>;
  toggle: RefObject<HTMLButtonElement | null>;
}

/** Turns the parts of a filter into one group, and `partsOfRoot` turns it back. An AND group is the filter itself. */
function rootOf(parts: Part[]): Group {
  const alone = parts.length === 1 ? parts[0]! : undefined;
  return alone?.kind === "group" ? alone : groupOf(parts.length === 0 ? [emptyTest()] : parts);
}
const partsOfRoot = (root: Group): Part[] => (root.joined === "and" && !root.isNegated ? root.parts : [root]);

/** The root with another part at this position. If `part` is null, the part there is removed. */
function replaced(group: Group, [first, ...rest]: number[], part: Part | null): Group {
  if (first === undefined) return part?.kind === "group" ? part : group;
  const there = group.parts[first]!;
  if (rest.length === 0) return { ...group, parts: part === null ? group.parts.toSpliced(first, 1) : group.parts.toSpliced(first, 1, part) };
  if (there.kind === "group") return { ...group, parts: group.parts.with(first, replaced(there, rest, part)) };
  if (there.kind === "related") return { ...group, parts: group.parts.with(first, { ...there, inner: replaced(there.inner, rest, part) }) };
  return group;
}

export function useConditionDraft({ shape, of, titleOf, from, bounds = OF_REQUEST, takesVariables = false, onSubmit }: DraftOptions): ConditionDraft {
  const [root, setRoot] = useState<Group>(() => rootOf(typeof from === "string" ? [] : from));
  const [text, setText] = useState<string | null>(typeof from === "string" ? from : null);
  const [isChecked, setChecked] = useState(false);
  const tree = useRef<HTMLDivElement>(null);
  const toggle = useRef<HTMLButtonElement>(null);
  const partsOfJson = (json: JsonObject) => readWhere(json, shape, of, { takesVariables });

  const built = pruned(partsOfRoot(root));
  const read = text === null ? null : readText(text);
  const parts = read === null ? built : "json" in read ? partsOfJson(read.json) : [];
  // There is no check of the size here. The server refuses a condition that is too large and names the position. The builder offers no
  // choice that would make one.
  const json = read === null ? (built.every((part) => isComplete(part, shape, of)) ? printParts(built, shape, of) : undefined) : "json" in read ? read.json : undefined;
  const edit: Editing = {
    of,
    titleOf,
    takesVariables,
    isChecked,
    put: (at, part) => setRoot((now) => replaced(now, at, part)),
    remove: (at) => {
      setRoot((now) => replaced(now, at, null));
      // The button that had the focus is gone. The button that adds to the same group gets the focus.
      requestAnimationFrame(() => tree.current?.querySelector<HTMLElement>(`[data-add="${at.slice(0, -1).join(".")}"]`)?.focus());
    },
    mayTake: (at, part) => fits(partsOfRoot(replaced(root, at, part)), shape, of, bounds),
    asJson: () => {
      setText(printJson(printParts(built, shape, of), 2));
      requestAnimationFrame(() => toggle.current?.focus());
    },
    apply: onSubmit,
  };
  return {
    root,
    text,
    setText,
    problem: read !== null && "problem" in read && text?.trim() !== "" ? read.problem : undefined,
    parts,
    json,
    edit,
    check: () => setChecked(true),
    back: () => {
      if (read === null || !("json" in read)) return;
      setRoot(rootOf(partsOfJson(read.json)));
      setText(null);
    },
    tree,
    toggle,
  };
}

function readText(text: string): { json: JsonObject } | { problem: string } {
  const read = checkJson(text);
  if ("problem" in read) return read;
  const { value } = read;
  return isJsonObject(value) ? { json: value } : { problem: 'A condition is a JSON object, such as {"status": "open"}.' };
}

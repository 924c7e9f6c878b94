/** The pending edits of each object. They stay while the console is open, also if the person leaves the screen. */
import { useCallback, useEffect } from "react";
import { sameJson } from "../../../api/json";
import { observable } from "../../../api/observable";
import { type Edits, NO_EDITS } from "./draft";

/** The key under which the draft of a new object is stored. */
export const NEW_OBJECT = "";

/** The server's error for a step that failed. It is shown at the place where the person made the change. */
export interface StepFailure {
  about: string;
  error: unknown;
}

interface Entry {
  edits: Edits;
  failure: StepFailure | null;
}

const EMPTY: Entry = { edits: NO_EDITS, failure: null };
const entries = observable<ReadonlyMap<string, Entry>>(new Map());
let counter = 0;

const entryOf = (object: string): Entry => entries.get().get(object) ?? EMPTY;

function put(object: string, entry: Entry): void {
  const next = new Map(entries.get());
  if (entry.failure === null && sameJson(entry.edits, NO_EDITS)) next.delete(object);
  else next.set(object, entry);
  entries.set(next);
}

/** Objects whose steps are being applied. While an object is here, a definition that disappears on the server was removed by this page. */
const applying = new Set<string>();

export function setApplying(object: string, is: boolean): void {
  if (is) applying.add(object);
  else applying.delete(object);
}

export function isApplying(object: string): boolean {
  return applying.has(object);
}

export function newKey(): string {
  counter += 1;
  return `new:${counter}`;
}

export function readEdits(object: string): Edits {
  return entryOf(object).edits;
}

export function setEdits(object: string, change: Edits | ((now: Edits) => Edits)): void {
  put(object, { failure: null, edits: typeof change === "function" ? change(readEdits(object)) : change });
}

export function setFailure(object: string, failure: StepFailure | null): void {
  put(object, { ...entryOf(object), failure });
}

export function clearEdits(object: string): void {
  put(object, EMPTY);
}

export function useEdits(object: string): [Edits, (change: Edits | ((now: Edits) => Edits)) => void, StepFailure | null] {
  const entry = entries.useValue().get(object) ?? EMPTY;
  const change = useCallback((next: Edits | ((now: Edits) => Edits)) => setEdits(object, next), [object]);
  const isPending = entry.edits !== NO_EDITS;
  useEffect(() => {
    if (!isPending) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [isPending]);
  return [entry.edits, change, entry.failure];
}

/** The names of the objects that have pending edits. */
export function useEditedObjects(): ReadonlySet<string> {
  return new Set(entries.useValue().keys());
}

/** The pending edits of each object. They stay while the console is open, also if the person leaves the screen. */
import { useCallback, useEffect, useSyncExternalStore } from "react";
import { sameJson } from "../../../api/json";
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
const entries = new Map<string, Entry>();
const watchers = new Set<() => void>();
let counter = 0;

const watch = (watcher: () => void) => {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
};

function put(object: string, entry: Entry): void {
  if (entry.failure === null && sameJson(entry.edits, NO_EDITS)) entries.delete(object);
  else entries.set(object, entry);
  for (const watcher of watchers) watcher();
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
  return (entries.get(object) ?? EMPTY).edits;
}

export function setEdits(object: string, change: Edits | ((now: Edits) => Edits)): void {
  const now = entries.get(object) ?? EMPTY;
  put(object, { failure: null, edits: typeof change === "function" ? change(now.edits) : change });
}

export function setFailure(object: string, failure: StepFailure | null): void {
  put(object, { ...(entries.get(object) ?? EMPTY), failure });
}

export function clearEdits(object: string): void {
  put(object, EMPTY);
}

export function useEdits(object: string): [Edits, (change: Edits | ((now: Edits) => Edits)) => void, StepFailure | null] {
  const entry = useSyncExternalStore(watch, () => entries.get(object) ?? EMPTY);
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
  const names = useSyncExternalStore(watch, () => [...entries.keys()].sort().join(","));
  return new Set(names === "" ? [] : names.split(","));
}

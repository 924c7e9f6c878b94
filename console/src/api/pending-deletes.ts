/** Records that are deleted in a few seconds unless the person undoes it. Lists show them in gray or leave them out. */
import { useMemo } from "react";
import { observable } from "./observable";

const pending = observable<ReadonlySet<string>>(new Set());

const keyOf = (object: string, id: string) => `${object}/${id}`;

function change(next: (now: Set<string>) => void): void {
  const copy = new Set(pending.get());
  next(copy);
  pending.set(copy);
}

export function markDeleted(object: string, ids: string[]): void {
  change((now) => ids.forEach((id) => now.add(keyOf(object, id))));
}

export function unmarkDeleted(object: string, ids: string[]): void {
  change((now) => ids.forEach((id) => now.delete(keyOf(object, id))));
}

/** The ids of an object's records that are about to be deleted. */
export function usePendingDeletes(object: string): ReadonlySet<string> {
  const now = pending.useValue();
  return useMemo(() => {
    const prefix = `${object}/`;
    return new Set([...now].filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length)));
  }, [now, object]);
}

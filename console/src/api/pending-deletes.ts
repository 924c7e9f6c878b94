/** Records that are deleted in a few seconds unless the person undoes it. Lists show them in gray or leave them out. */
import { useMemo, useSyncExternalStore } from "react";

let pending: ReadonlySet<string> = new Set();
const listeners = new Set<() => void>();

const keyOf = (object: string, id: string) => `${object}/${id}`;

function change(next: (now: Set<string>) => void): void {
  const copy = new Set(pending);
  next(copy);
  pending = copy;
  for (const listener of listeners) listener();
}

export function markDeleted(object: string, ids: string[]): void {
  change((now) => ids.forEach((id) => now.add(keyOf(object, id))));
}

export function unmarkDeleted(object: string, ids: string[]): void {
  change((now) => ids.forEach((id) => now.delete(keyOf(object, id))));
}

/** The ids of an object's records that are about to be deleted. */
export function usePendingDeletes(object: string): ReadonlySet<string> {
  const now = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => pending,
  );
  return useMemo(() => {
    const prefix = `${object}/`;
    return new Set([...now].filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length)));
  }, [now, object]);
}

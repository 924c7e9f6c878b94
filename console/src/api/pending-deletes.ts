/** Records that are being deleted, while the person may still undo it: lists leave them out. */
import { useSyncExternalStore } from "react";

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

export function isPendingDelete(object: string, id: string): boolean {
  return pending.has(keyOf(object, id));
}

/** `has(object, id)` of what is on its way out. */
export function usePendingDeletes(): { has: (object: string, id: string) => boolean } {
  const now = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => pending,
  );
  return { has: (object, id) => now.has(keyOf(object, id)) };
}

/** A value outside of React. Components that use it render again when it changes. */
import { useSyncExternalStore } from "react";

export function observable<Value>(first: Value) {
  let value = first;
  const watchers = new Set<() => void>();
  const get = (): Value => value;
  const watch = (watcher: () => void) => {
    watchers.add(watcher);
    return () => watchers.delete(watcher);
  };
  const set = (next: Value): void => {
    value = next;
    for (const watcher of watchers) watcher();
  };
  /** The hook. */
  const useValue = (): Value => useSyncExternalStore(watch, get);
  return { get, set, watch, useValue };
}

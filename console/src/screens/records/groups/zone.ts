/** The time zone of periods: that of the reader, or UTC if the server does not know it. */
import { useSyncExternalStore } from "react";
import { readerZone } from "../../../api/local-time";
import type { RecordShape } from "../columns";
import { takesZone } from "./request";

// The server has a table of its own, which can lack a name that the browser has. The tab remembers it, so that it does not ask again.
let isUnknown = false;
const listeners = new Set<() => void>();
const watch = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** Called when the server does not know the reader's time zone. */
export function becomeUtc(): void {
  isUnknown = true;
  for (const listener of listeners) listener();
}

/** The zone that the request names. Undefined for UTC. */
export function useZone(shape: RecordShape): string | undefined {
  const isUtc = useSyncExternalStore(watch, () => isUnknown);
  return isUtc || !takesZone(shape) ? undefined : readerZone;
}

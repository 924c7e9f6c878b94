/** The time zone of periods: that of the reader, or UTC if the server does not know it. */
import { readerZone } from "../../../api/local-time";
import { observable } from "../../../api/observable";
import type { RecordShape } from "../columns";
import { takesZone } from "./request";

// The server has a table of its own, which can lack a name that the browser has. The tab remembers it, so that it does not ask again.
const isUnknown = observable(false);

/** Called when the server does not know the reader's time zone. */
export const becomeUtc = (): void => isUnknown.set(true);

/** The zone that the request names. Undefined for UTC. */
export function useZone(shape: RecordShape): string | undefined {
  const isUtc = isUnknown.useValue();
  return isUtc || !takesZone(shape) ? undefined : readerZone;
}

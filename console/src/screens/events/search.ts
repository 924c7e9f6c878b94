import { type RawSearch, flag, given, text, whole } from "../../api/search";

/** The search parameters of `/events`. */
export function readEventsSearch(raw: RawSearch) {
  return given({
    /** A pattern, such as `data.*.created`. */
    topic: text(raw.topic),
    object: text(raw.object),
    record: text(raw.record),
    paused: flag(raw.paused),
    /** The id of the event in the inspector. */
    open: text(raw.open),
    limit: whole(raw.limit, 1, 500),
  });
}

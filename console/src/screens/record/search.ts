import { type RawSearch, given, oneOf, text } from "../../app/search";

/** Of `/data/$object/$id`. */
export function readRecordSearch(raw: RawSearch) {
  return given({ tab: oneOf(raw.tab, ["form", "links", "json", "history"]) });
}

/** Of `/data/$object/new`. */
export function readNewRecordSearch(raw: RawSearch) {
  return given({
    /** The record whose values the form begins with. */
    from: text(raw.from),
    /** Values that the form begins with, as a JSON object. */
    set: text(raw.set, 16_000),
  });
}

import { type RawSearch, given, oneOf, text } from "../../api/search";

/** The search parameters of `/data/$object/$id`. */
export function readRecordSearch(raw: RawSearch) {
  return given({ tab: oneOf(raw.tab, ["form", "links", "json", "history"]) });
}

/** The search parameters of `/data/$object/new`. */
export function readNewRecordSearch(raw: RawSearch) {
  return given({
    /** The id of the record whose values fill the form. */
    from: text(raw.from),
    /** The first values of the form, as a JSON object. */
    set: text(raw.set, 16_000),
  });
}

import { type RawSearch, flag, given, text } from "../../app/search";

/** Of `/tasks`. */
export function readTasksSearch(raw: RawSearch) {
  return given({ open: text(raw.open), run: text(raw.run), new: flag(raw.new) });
}

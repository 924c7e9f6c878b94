import { type RawSearch, flag, given, text } from "../../api/search";

/** The search parameters of `/tasks`. */
export function readTasksSearch(raw: RawSearch) {
  return given({ open: text(raw.open), run: text(raw.run), new: flag(raw.new) });
}

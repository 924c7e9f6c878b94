import { type RawSearch, flag, given, text } from "../../api/search";

/** The search parameters of `/keys`. */
export function readKeysSearch(raw: RawSearch) {
  return given({ q: text(raw.q), open: text(raw.open), new: flag(raw.new) });
}

import { type RawSearch, flag, given, text, whole } from "../../api/search";

/** The search parameters of `/users`. */
export function readUsersSearch(raw: RawSearch) {
  return given({ q: text(raw.q), role: text(raw.role), page: whole(raw.page), open: text(raw.open), new: flag(raw.new) });
}

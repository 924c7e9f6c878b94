import { type RawSearch, flag, given, oneOf, text } from "../../app/search";

/** Of `/roles`. */
export function readRolesSearch(raw: RawSearch) {
  return given({ q: text(raw.q), new: flag(raw.new) });
}

/** Of `/roles/$role`. */
export function readRoleSearch(raw: RawSearch) {
  return given({ tab: oneOf(raw.tab, ["grants", "effective", "users"]), q: text(raw.q) });
}

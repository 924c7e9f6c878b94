import { type RawSearch, flag, given, oneOf, text } from "../../api/search";

/** The search parameters of `/roles`. */
export function readRolesSearch(raw: RawSearch) {
  return given({ q: text(raw.q), new: flag(raw.new) });
}

/** The search parameters of `/roles/$role`. */
export function readRoleSearch(raw: RawSearch) {
  return given({
    tab: oneOf(raw.tab, ["grants", "effective", "users", "explain"]),
    q: text(raw.q),
    // The choices in the tab "Explain".
    user: text(raw.user),
    object: text(raw.object),
    action: oneOf(raw.action, ["read", "create", "update", "delete"]),
    record: text(raw.record),
  });
}

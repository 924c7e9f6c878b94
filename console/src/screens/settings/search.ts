import { type RawSearch, given, oneOf, text } from "../../api/search";

/** The search parameters of `/settings`. */
export function readSettingsSearch(raw: RawSearch) {
  return given({ tab: oneOf(raw.tab, ["status", "settings"]), q: text(raw.q) });
}

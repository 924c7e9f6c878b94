import { type RawSearch, given, oneOf, text } from "../../api/search";

/** The search parameters of `/api`. */
export function readApiSearch(raw: RawSearch) {
  return given({ tab: oneOf(raw.tab, ["reference", "graphql", "mcp", "snippets"]), operation: text(raw.operation), object: text(raw.object), q: text(raw.q) });
}

import { type RawSearch, given, oneOf, text } from "../../app/search";

/** Of `/objects`: the list, or the diagram of how objects relate. */
export function readObjectsSearch(raw: RawSearch) {
  return given({ view: oneOf(raw.view, ["list", "diagram"]), q: text(raw.q), open: text(raw.open) });
}

/** Of `/objects/new`. */
export function readNewObjectSearch(raw: RawSearch) {
  return given({ template: oneOf(raw.template, ["blog", "crm", "todo", "shop"]) });
}

/** Of `/objects/$object`. */
export function readObjectSearch(raw: RawSearch) {
  return given({ tab: oneOf(raw.tab, ["fields", "relations", "rules", "history"]), open: text(raw.open) });
}

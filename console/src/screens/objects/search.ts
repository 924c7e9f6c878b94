import { type RawSearch, given, oneOf, text } from "../../app/search";

/** Of `/objects`: the list, or the diagram of how objects relate. */
export function readObjectsSearch(raw: RawSearch) {
  return given({
    view: oneOf(raw.view, ["list", "diagram"]),
    q: text(raw.q),
    /** The object in the inspector. */
    open: text(raw.open),
    /** As the header was clicked: `name`, `-records`. */
    sort: text(raw.sort),
  });
}

/** Of `/objects/new`. */
export function readNewObjectSearch(raw: RawSearch) {
  return given({ template: oneOf(raw.template, ["blog", "crm", "todo", "shop"]), open: text(raw.open) });
}

/** Of `/objects/$object`. */
export function readObjectSearch(raw: RawSearch) {
  return given({
    tab: oneOf(raw.tab, ["fields", "relations", "rules", "history", "settings"]),
    /** The field in the inspector. */
    open: text(raw.open),
    q: text(raw.q),
  });
}

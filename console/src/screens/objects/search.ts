import { type RawSearch, given, oneOf, text } from "../../api/search";

/** The search parameters of `/objects`, which has the list and the diagram. */
export function readObjectsSearch(raw: RawSearch) {
  return given({
    view: oneOf(raw.view, ["list", "diagram"]),
    q: text(raw.q),
    /** The name of the object in the inspector. */
    open: text(raw.open),
    /** The sorted column, with `-` for descending: `name`, `-records`. */
    sort: text(raw.sort),
  });
}

/** The search parameters of `/objects/new`. */
export function readNewObjectSearch(raw: RawSearch) {
  return given({ template: oneOf(raw.template, ["blog", "crm", "todo", "shop"]), open: text(raw.open) });
}

/** The search parameters of `/objects/$object`. */
export function readObjectSearch(raw: RawSearch) {
  return given({
    tab: oneOf(raw.tab, ["fields", "relations", "rules", "history", "settings"]),
    /** The key of the field in the inspector. */
    open: text(raw.open),
    q: text(raw.q),
  });
}

import { type RawSearch, flag, given, text, whole } from "../../app/search";

/** Of `/data/$object`. */
export function readRecordsSearch(raw: RawSearch) {
  return given({
    /** A saved view's name. */
    view: text(raw.view),
    /** Conditions, as JSON: the records screen reads and writes them. */
    filter: text(raw.filter, 16_000),
    q: text(raw.q),
    /** As the API has it: `name`, `-created_at`, several by commas. */
    sort: text(raw.sort),
    page: whole(raw.page),
    size: whole(raw.size, 1, 100),
    /** Columns shown, by commas. */
    columns: text(raw.columns, 16_000),
    /** The record in the inspector. */
    open: text(raw.open),
    /** The role to view as. */
    as: text(raw.as),
    import: flag(raw.import),
  });
}

import { type RawSearch, flag, given, oneOf, text, whole } from "../../app/search";

/** Of `/data/$object`. What is absent is as the view has it. */
export function readRecordsSearch(raw: RawSearch) {
  return given({
    /** A saved view's name; `-` is the table as it is without one, where another view is the default. */
    view: text(raw.view),
    /** Conditions, as JSON: `[["status","eq","open"]]`. An empty list takes away those of the view. */
    filter: text(raw.filter, 16_000),
    /** A condition as JSON, for what the list of conditions cannot say: `{"_or":[{"status":"open"},{"owner.name":"Ann"}]}`. */
    where: text(raw.where, 16_000),
    q: text(raw.q),
    /** As the API has it: `name`, `-created_at`, several by commas; `-` takes away that of the view. */
    sort: text(raw.sort),
    page: whole(raw.page),
    size: whole(raw.size, 1, 100),
    /** Columns shown, by commas. */
    columns: text(raw.columns, 16_000),
    /** The record in the inspector. */
    open: text(raw.open),
    import: flag(raw.import),
    export: flag(raw.export),
    density: oneOf(raw.density, ["compact", "comfortable"]),
  });
}

export type RecordsSearch = ReturnType<typeof readRecordsSearch>;

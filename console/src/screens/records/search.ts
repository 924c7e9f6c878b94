import { type RawSearch, flag, given, oneOf, text, whole } from "../../api/search";

export const CHARTS = ["bars", "line"] as const;

/**
 * The text of a filter or a search, whatever its length is and whatever it says. Without it, the screen would show all records. `viewOf`
 * decides whether the text can be read, and the server refuses a search that is too long.
 */
const filterText = (raw: unknown): string | undefined => (raw === undefined || raw === "" ? undefined : String(raw));

/** The search parameters of `/data/$object`. If one is missing, the view decides. */
export function readRecordsSearch(raw: RawSearch) {
  return given({
    /** The name of a saved view. If a view is the default, `-` means the table without a view. */
    view: text(raw.view),
    /** Conditions as JSON: `[["status","eq","open"]]`. An empty list removes those of the view. */
    filter: filterText(raw.filter),
    /** A condition as JSON, if the list of conditions cannot express it: `{"_or":[{"status":"open"},{"owner.name":"Ann"}]}`. */
    where: filterText(raw.where),
    q: filterText(raw.q),
    /** The order in the format of the API: `name`, `-created_at`, several separated by commas. `-` removes the order of the view. */
    sort: text(raw.sort),
    /**
     * The fields by which the records are grouped, in the format of the API: `status,created_at:month`. If the address has it, the whole
     * grouping is in the address: the next four are part of it. `-` removes the grouping of the view.
     */
    group: text(raw.group),
    /** The functions of the groups: `count,sum:amount`. */
    fn: text(raw.fn),
    /** The order of the groups, by the keys of the result: `-sum_amount`. */
    groupSort: text(raw.groupSort),
    /** Conditions on the groups, in the form of `filter`: `[["count","gte","10"]]`. */
    having: filterText(raw.having),
    chart: oneOf(raw.chart, CHARTS),
    page: whole(raw.page),
    size: whole(raw.size, 1, 100),
    /** The shown columns, separated by commas. */
    columns: text(raw.columns, 16_000),
    /** The id of the record in the inspector. */
    open: text(raw.open),
    import: flag(raw.import),
    export: flag(raw.export),
    density: oneOf(raw.density, ["compact", "comfortable"]),
  });
}

export type RecordsSearch = ReturnType<typeof readRecordsSearch>;

//! The limits of a request. The table "Limits of a request" in `docs/data.md` has the same numbers.

/// Records of a page if the request does not set a number.
pub const PAGE_SIZE_DEFAULT: u64 = 25;
/// Most records of a page; a greater number is reduced to it.
pub const PAGE_SIZE_MAX: u64 = 100;
/// Greatest offset. No list of records is longer, and up to here 64-bit arithmetic cannot overflow.
pub const OFFSET_MAX: u64 = 1 << 50;
/// Longest search term in characters.
pub const SEARCH_CHARACTERS_MAX: usize = 1000;
/// Most filters of one request; each can cost a scan.
pub const FILTERS_MAX: usize = 100;
/// Most values that the filters of one request bind. SQLite's own bound is 32,766, Postgres' 65,535.
pub const FILTER_VALUES_MAX: usize = 10_000;
/// Most items of one `in` or `nin`.
pub const LIST_ITEMS_MAX: usize = 1000;
/// Levels of a dotted path of `expand`.
pub const EXPAND_LEVELS_MAX: usize = 3;
/// Most paths of one `expand`. Each is compared with all before it.
pub const EXPAND_PATHS_MAX: usize = 1000;
/// Most relation keys of one `expand`, over all levels.
pub const EXPAND_KEYS_MAX: usize = 50;
/// Most related records that one key brings, for all records of a page together.
pub const EXPAND_RECORDS_MAX: usize = 10_000;

/// Most names of related records in one export. Each is a further subquery for each row.
pub const NAMES_MAX: usize = 50;

#[cfg(test)]
mod tests {
    use blockbase_schema::table_rows;

    use super::*;

    #[test]
    fn the_documentation_has_every_limit() {
        let rows = table_rows(include_str!("../../../docs/data.md"), "| limit of a request |");
        let wanted = [
            format!("| records of a page | {PAGE_SIZE_DEFAULT} by default, {PAGE_SIZE_MAX} at most |"),
            format!("| offset | {OFFSET_MAX} |"),
            format!("| characters of a search term | {SEARCH_CHARACTERS_MAX} |"),
            format!("| filters | {FILTERS_MAX} |"),
            format!("| values of all filters | {FILTER_VALUES_MAX} |"),
            format!("| items of one `in` or `nin` | {LIST_ITEMS_MAX} |"),
            format!("| levels of a path of `expand` | {EXPAND_LEVELS_MAX} |"),
            format!("| paths of `expand` | {EXPAND_PATHS_MAX} |"),
            format!("| relation keys of `expand` | {EXPAND_KEYS_MAX} |"),
            format!("| related records of one relation key, in total for all records of a page | {EXPAND_RECORDS_MAX} |"),
            format!("| names of related records in an export | {NAMES_MAX} |"),
        ];
        assert_eq!(rows, wanted, "the table of limits in docs/data.md");
    }
}

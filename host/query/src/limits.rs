//! The limits of a request. The table "Limits of a request" in `docs/data.md` has the same numbers.

/// The number of records on a page if the request does not set one.
pub const PAGE_SIZE_DEFAULT: u64 = 25;
/// The maximum number of records on a page. A greater number is reduced to this one.
pub const PAGE_SIZE_MAX: u64 = 100;
/// The greatest offset. No list of records is longer, and up to this offset 64-bit arithmetic cannot overflow.
pub const OFFSET_MAX: u64 = 1 << 50;
/// The maximum length of a search term, in characters.
pub const SEARCH_CHARACTERS_MAX: usize = 1000;
/// The maximum number of filters in one request. Each filter can cost a scan.
pub const FILTERS_MAX: usize = 100;
/// The maximum number of values that the filters of one request bind. SQLite's own limit is 32,766, and that of Postgres is
/// 65,535.
pub const FILTER_VALUES_MAX: usize = 10_000;
/// The maximum number of items in one `in` or `nin`.
pub const LIST_ITEMS_MAX: usize = 1000;
/// The maximum number of keys in `sort`. On pages by cursors, the tests of a position grow with the square of this number. It
/// is the same for all lists, so that each sort has pages by cursors.
pub const SORT_KEYS_MAX: usize = 16;
/// The maximum number of bytes of the values of `sort`, as JSON, that a cursor contains. With longer values, it contains the record's id
/// instead. A URL with two cursors has less than 16 KiB.
pub const CURSOR_VALUES_BYTES_MAX: usize = 4 * 1024;
/// The maximum number of levels of a dotted path in `expand`.
pub const EXPAND_LEVELS_MAX: usize = 3;
/// The maximum number of paths in one `expand`. Each path is compared with all earlier ones.
pub const EXPAND_PATHS_MAX: usize = 1000;
/// The maximum number of relation keys in one `expand`, over all levels.
pub const EXPAND_KEYS_MAX: usize = 50;
/// The maximum number of related records that one key adds, for all records of a page together.
pub const EXPAND_RECORDS_MAX: usize = 10_000;
/// The maximum number of fields by which one aggregate groups.
pub const GROUP_FIELDS_MAX: usize = 8;
/// The maximum number of functions of one aggregate.
pub const FUNCTIONS_MAX: usize = 20;

/// The maximum number of names of related records in one export. Each of them is a further subquery for each row.
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
            format!("| fields of `sort` | {SORT_KEYS_MAX} |"),
            format!("| bytes of the values of `sort` in a cursor | {CURSOR_VALUES_BYTES_MAX} |"),
            format!("| levels of a path of `expand` | {EXPAND_LEVELS_MAX} |"),
            format!("| paths of `expand` | {EXPAND_PATHS_MAX} |"),
            format!("| relation keys of `expand` | {EXPAND_KEYS_MAX} |"),
            format!("| related records of one relation key, in total for all records of a page | {EXPAND_RECORDS_MAX} |"),
            format!("| fields of `groupBy` | {GROUP_FIELDS_MAX} |"),
            format!("| functions of one aggregate | {FUNCTIONS_MAX} |"),
            format!("| names of related records in an export | {NAMES_MAX} |"),
        ];
        assert_eq!(rows, wanted, "the table of limits in docs/data.md");
    }
}

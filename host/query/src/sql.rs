//! Plans, written as SQL with bound values.

mod found;
mod groups;
mod kept;
mod merged;
mod param;
mod read;
mod related;
mod rows;
mod sample;
mod search;
mod seek;
mod total;
mod write;
mod writer;

pub use found::{
    Attempt, END_OF_PLACES, Found, KeyRows, different_keys_of_page, first_of_list, first_of_part, keys_of_page, likely_of_list,
    likely_of_part, list_of_first, next_of_list, next_of_part, part_of_first, rows_of_keys,
};
pub use groups::{TINY, group_columns, groups};
pub use merged::{list_of_keys, part_of_keys};
pub use param::{Param, SqlText, Statement};
pub use read::{
    aggregate, candidates, export, get, get_many, get_many_bytes, ids, image_meets, list, list_part, lock, met, owners,
    part_has_rows, position_of, read_many, related, visible,
};
pub use rows::{
    RowRange, add_converted_column, column_page, column_page_end, count_all, count_duplicates, count_links, count_nulls,
    write_converted,
};
pub use sample::{LinkSample, Sample, link_sample, sample};
pub use total::count;
pub use write::{
    any_link, any_stamped, change_links, conflicting, delete_many, duplicate, hold_referring, ids_created_by, insert,
    insert_params, lock_and_overwrite, lock_and_update, move_links, move_references, referring, referring_ids, restamp,
    take_links, update, update_many, upsert,
};
pub use writer::is_long;

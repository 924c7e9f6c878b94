//! On SQLite: the sample for a condition on linked rows.
//!
//! Such a condition has three ways, if no index finds the related rows:
//!
//! - *By list*, the statement reads all related rows and the links of those that meet the condition, and makes a list of the keys
//!   of these links. This takes less time if there are few such links.
//! - *By row*, each row reads its links one after the other, finds the related row of each by its id, and stops at the first
//!   one that meets the condition.
//! - *By link*, the statement reads all related rows first, and makes a list of the ids of those that meet the condition. Each
//!   row then reads its links as before, and each link looks for its related row in this list. This takes half the time of the
//!   way by row, unless there are very many related rows.
//!
//! Links have no rowids, so the sample takes rows from all parts of the object's table, and reads the first links of each
//! ([`ROW_LINKS`]). Before that, it takes related rows from all parts of theirs. If few of these meet the condition, or if both
//! tables are small, no links are read.
//!
//! A row is *late* if none of its first links leads to a related row that meets the condition, and if it may have more. How many
//! links such a row reads is unknown, so one late row is enough for the list. A few rows with very many links can be missing in
//! the sample. If these are late, the other ways read all of their links.

use blockbase_schema::{Object, RelationShape, system};

use super::{
    LOOK_UP_COST, MET_ONE_IN_MAX, RELATED_ROWS_MIN, RUN_ROWS, RUNS, SAMPLE_ROWS_MIN, SEEK_COST, cost_of_keys, is_met,
    only_related, taken_from,
};
use crate::condition::Related;
use crate::ddl::link_table;
use crate::dialect::{Dialect, quote};
use crate::plan::{RelatedBy, Selection};
use crate::sql::param::Statement;
use crate::sql::related::takes_all;
use crate::sql::write::link_sides;
use crate::sql::writer::Writer;

/// The maximum number of links of a row that the statement reads.
const ROW_LINKS: i64 = 16;
/// The cost of reading a link, and of looking for its related row in a list. It is relative to the cost of reading the next row
/// of a table, and was measured with 200,000 and 2,000,000 links.
const LINK_COST: f64 = 1.5;

/// What the statement of [`link_sample`] returns, in this order.
#[derive(Clone, Copy, Debug)]
pub struct LinkSample {
    /// The number of rows in the sample. It is 0 if no links were read.
    pub taken: i64,
    /// The number of their first links.
    pub links: i64,
    /// The number of those links that lead to a related row that meets the condition.
    pub met: i64,
    /// About how many links the rows read until one of these comes.
    pub reads: i64,
    /// The number of rows that are late.
    pub late: i64,
    /// The number of all rows of the object.
    pub rows: i64,
    /// The number of related rows that a list reads. It is 0 if the links alone decide.
    pub related_rows: i64,
}

impl LinkSample {
    /// The way that takes the least time.
    pub fn related_by(self) -> RelatedBy {
        if self.taken < SAMPLE_ROWS_MIN || self.met == 0 || self.late > 0 {
            return RelatedBy::List;
        }
        let of_each = |part: i64| part as f64 / self.taken as f64;
        let (rows, related_rows) = (self.rows as f64, self.related_rows as f64);
        let listed = related_rows * self.met as f64 / self.links as f64;
        let by_list = related_rows + cost_of_keys(rows * of_each(self.met), rows);
        let by_row = rows * (SEEK_COST + LOOK_UP_COST * of_each(self.reads));
        let by_link = rows * (SEEK_COST + LINK_COST * of_each(self.reads)) + related_rows + cost_of_keys(listed, related_rows);
        match by_list <= by_row.min(by_link) {
            true => RelatedBy::List,
            false if by_link <= by_row => RelatedBy::Link,
            false => RelatedBy::Row,
        }
    }
}

/// Takes a sample of the rows and the related rows of the selection's condition. The statement returns one row, the integers of a
/// [`LinkSample`]. `None` if the way of the selection does not depend on links.
pub fn link_sample(dialect: Dialect, object: &Object, selection: &Selection) -> Option<Statement> {
    let (related, relationship_id, is_source) = sampled(dialect, selection)?;
    let mut writer = Writer::new(dialect, object);
    let (table, related_table, id) = (quote(object.name()), quote(related.object.name()), quote(system::ID));
    let (links, (near, far)) = (link_table(relationship_id), link_sides(is_source));
    let (is_met_of_link, is_met_of_taken) =
        (is_met(&mut writer, related, "svc_of_link"), is_met(&mut writer, related, "svc_taken_related"));
    let first = format!("WHERE svc_link.{near} = svc_taken.{id} LIMIT {ROW_LINKS}");
    let number = format!("SELECT count(*) FROM (SELECT 1 FROM {links} AS svc_link {first})");
    let met = format!(
        "SELECT coalesce(sum(svc_is_met), 0) FROM (SELECT {is_met_of_link} AS svc_is_met FROM {links} AS svc_link CROSS JOIN \
         {related_table} AS svc_of_link ON svc_of_link.{id} = svc_link.{far} {first})"
    );
    let (rows, related_rows) = (writer.stored_count(object), writer.stored_count(&related.object));
    let (taken, taken_related) = (taken_from(&table, "svc_taken"), taken_from(&related_table, "svc_taken_related"));
    let reads_links = format!(
        "max({rows}, {related_rows}) >= {RELATED_ROWS_MIN} AND (SELECT sum({is_met_of_taken}) * {MET_ONE_IN_MAX} >= count(*) \
         FROM {taken_related})"
    );
    let listed_rows = if takes_all(related, &related.condition) { "0" } else { related_rows.as_str() };
    // With its limit, SQLite counts the links of each row once, and not again for each sum.
    writer.sql.push_str(&format!(
        "SELECT count(*), coalesce(sum(svc_links), 0), coalesce(sum(svc_met), 0), coalesce(sum(CASE WHEN svc_met = 0 THEN \
         svc_links ELSE (svc_links + svc_met - 1) / svc_met END), 0), coalesce(sum(svc_links = {ROW_LINKS} AND svc_met = 0), 0), \
         {rows}, {listed_rows} FROM (SELECT ({number}) AS svc_links, ({met}) AS svc_met FROM {taken} WHERE {reads_links} \
         LIMIT {})",
        RUNS * RUN_ROWS
    ));
    Some(writer.finish())
}

/// The condition of a selection, its relationship, and whether the object is the source of the links, if [`link_sample`] decides
/// how the condition is judged.
pub(super) fn sampled(dialect: Dialect, selection: &Selection) -> Option<(&Related, i64, bool)> {
    let related = only_related(dialect, selection)?;
    let RelationShape::Linked { relationship_id, is_source } = related.shape else { return None };
    Some((related, relationship_id, is_source))
}

#[cfg(test)]
mod tests;

//! On SQLite: a sample that decides how a statement that may need all rows judges a condition on related rows.
//!
//! If no index finds the related rows, such a condition has two ways ([`super::related`]):
//!
//! - *By list*, the statement reads all related rows, one after the other, and makes a list of the keys of those that meet the
//!   condition. To add a key to the list costs several times as much as to read the next row of a table.
//! - *By row*, each row finds its related rows by the index of the foreign key, and stops at the first one that meets the
//!   condition. To find a related row costs several times as much as to read the next row of a table.
//!
//! So the way by row takes less time if most rows stop early. A list takes less time if most rows have to read all of their
//! related rows. SQLite has no statistics that show this. So a small statement takes related rows from all parts of their table,
//! and counts two things:
//!
//! - how many of them meet the condition. This also shows how many keys the list would have.
//! - how many of them are *late*: no related row that meets the condition is among the first ones of their key ([`KEY_ROWS`]). By
//!   row, the statement may have to read all related rows of such a key, so the share of late ones is the share of all related
//!   rows that it reads at most, apart from the first ones of each row. This is true for any distribution: the related rows that
//!   meet the condition may belong to few rows, and few rows may have most of the related rows. A sample of the rows themselves
//!   would seldom contain these few rows.
//!
//! With the stored numbers of rows, the two counts give the costs of both ways. The sample has a fixed size. For each of its
//! rows, the statement reads the first related rows of the same key, and it does this only if enough of the sample meets the
//! condition, and if there are many related rows. The decision changes how the rows are found, and never which rows are found.
//! Its places depend only on the first and the last row, so who creates the rows can make it choose the slower way.
//!
//! There is no sample if an index finds the related rows, if at most one related row can meet the condition, if other tests or a
//! search narrow the rows, or if the condition follows further relations or has very many values. If links lead to the related
//! rows, there is another sample ([`links`]).

mod links;

use blockbase_schema::{Object, RelationShape};

pub use self::links::{LinkSample, link_sample};
use super::param::Statement;
use super::related::{is_plain, is_repeatable, tests_of_all};
use super::writer::{Place, Writer};
use crate::access::Scope;
use crate::condition::{Condition, Related};
use crate::dialect::{Dialect, quote};
use crate::plan::{RelatedBy, Selection};

/// The number of places in the table of the related rows from which the sample takes rows.
const RUNS: i64 = 12;
/// The number of neighboring rows that it takes from each place. Values that alternate from row to row are in each run.
const RUN_ROWS: i64 = 4;
/// The maximum number of first related rows of a key that the statement judges. A related row is late if none of these meets the
/// condition.
const KEY_ROWS: i64 = 32;
/// If less than one in this number of related rows meets the condition, most rows would read many related rows. Then no keys are
/// judged.
const MET_ONE_IN_MAX: i64 = 8;
/// The minimum number of related rows with which keys are judged. A list of fewer rows takes less than a millisecond.
const RELATED_ROWS_MIN: i64 = 2000;
/// The minimum number of rows in a sample. It has fewer rows if many rows were deleted between others.
const SAMPLE_ROWS_MIN: i64 = RUNS * RUN_ROWS / 4;

// The costs are relative to the one of reading the next row of a table. They were measured with 10,000 and 100,000 related rows.
// A look-up took from 5 to 11 times as long, depending on how well the caches of the processor hold the rows. A key took from 2
// to 8 times as long: less if there are few different keys. These values choose the list where both ways may be equal.

/// The cost of finding the first related row of a row, beyond that of finding a row in a list.
const SEEK_COST: f64 = 4.0;
/// The cost of reading a related row that an index has found.
const LOOK_UP_COST: f64 = 8.0;
/// The cost of adding a key to a list.
const KEY_COST: f64 = 5.0;
/// The number of different keys that SQLite keeps in memory for a list.
const KEYS_IN_MEMORY: f64 = 50_000.0;
/// The cost of adding a key for which SQLite reads a part of the list from its temporary file. It was measured with up to 140,000
/// different keys in a mixed order: there a key took up to 20 times as long as to read the next row.
const SPILLED_KEY_COST: f64 = 15.0;

/// What the statement of [`sample`] returns, in this order.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The number of related rows in the sample.
    pub taken: i64,
    /// The number of those that meet the condition.
    pub met: i64,
    /// The number of those that are late. All of them count as late if their keys were not judged.
    pub late: i64,
    /// The number of all rows of the object.
    pub rows: i64,
    /// The number of all rows of the related object.
    pub related_rows: i64,
}

impl Sample {
    /// The way that takes less time.
    pub fn related_by(self) -> RelatedBy {
        if self.taken < SAMPLE_ROWS_MIN || self.met == 0 {
            return RelatedBy::List;
        }
        let share = |part: i64| part as f64 / self.taken as f64;
        let (rows, related_rows) = (self.rows as f64, self.related_rows as f64);
        let reads_of_row = 1.0 / share(self.met);
        let by_row = rows * (SEEK_COST + LOOK_UP_COST * reads_of_row) + related_rows * LOOK_UP_COST * share(self.late);
        let by_list = related_rows + cost_of_keys(related_rows * share(self.met), rows);
        if by_row < by_list { RelatedBy::Row } else { RelatedBy::List }
    }
}

/// The cost of adding this many keys to a list, if at most `different_max` of them are different.
fn cost_of_keys(keys: f64, different_max: f64) -> f64 {
    // If all keys are in memory, this is not positive.
    let share_in_file = (1.0 - KEYS_IN_MEMORY / keys.min(different_max)).max(0.0);
    keys * (KEY_COST + (SPILLED_KEY_COST - KEY_COST) * share_in_file)
}

/// Takes a sample of the related rows of the selection's condition. The statement returns one row, the integers of a [`Sample`].
/// `None` if the way of the selection does not depend on a sample.
pub fn sample(dialect: Dialect, object: &Object, selection: &Selection) -> Option<Statement> {
    let (related, column) = sampled(dialect, selection)?;
    let mut writer = Writer::new(dialect, object);
    let (table, key) = (quote(related.object.name()), quote(&related.object.columns[column].name));
    let taken = taken_from(&table, "svc_taken");
    let (met, of_key_met) = (is_met(&mut writer, related, "svc_taken"), is_met(&mut writer, related, "svc_of_key"));
    // The sample is read twice. A table of its rows would count as a sort, for which the disk must have room.
    let late = format!(
        "SELECT count(*) FROM {taken} WHERE svc_taken.{key} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM (SELECT {of_key_met} \
         AS svc_met FROM {table} AS svc_of_key WHERE svc_of_key.{key} = svc_taken.{key} LIMIT {KEY_ROWS}) AS svc_first \
         WHERE svc_met)"
    );
    let (rows, related_rows) = (writer.stored_count(object), writer.stored_count(&related.object));
    // If no keys are judged, all rows of the sample count as late.
    let judges = format!("sum({met}) * {MET_ONE_IN_MAX} >= count(*) AND {related_rows} >= {RELATED_ROWS_MIN}");
    writer.sql.push_str(&format!(
        "SELECT count(*), coalesce(sum({met}), 0), CASE WHEN {judges} THEN ({late}) ELSE count(*) END, {rows}, {related_rows} \
         FROM {taken}"
    ));
    Some(writer.finish())
}

/// Whether a sample decides how the condition of a selection is judged.
pub(super) fn is_sampled(dialect: Dialect, selection: &Selection) -> bool {
    sampled(dialect, selection).is_some() || links::sampled(dialect, selection).is_some()
}

/// The condition of a selection, and the foreign key of its related rows, if [`sample`] decides how the condition is judged.
fn sampled(dialect: Dialect, selection: &Selection) -> Option<(&Related, usize)> {
    let related = only_related(dialect, selection)?;
    let RelationShape::Reverse { column, is_single: false } = related.shape else { return None };
    Some((related, column))
}

/// The condition of a selection, if it is the only one, and if a list of its related rows would read all of them.
fn only_related(dialect: Dialect, selection: &Selection) -> Option<&Related> {
    let [part] = selection.conditions.as_slice() else { return None };
    let Condition::Related(related) = part else { return None };
    let is_narrowed = selection.scope != Scope::All || selection.search.is_some();
    if dialect != Dialect::Sqlite || is_narrowed || is_plain(part) || !is_repeatable(&selection.conditions) {
        return None;
    }
    tests_of_all(related, &related.condition).map(|_| &**related)
}

/// `(…) AS svc_run CROSS JOIN …`: rows from all parts of a table, after FROM.
fn taken_from(table: &str, alias: &str) -> String {
    let edge = |function: &str| format!("(SELECT {function}(svc_rowid) FROM {table})");
    let (first, last, others) = (edge("min"), edge("max"), RUN_ROWS - 1);
    let runs: Vec<String> = (0..RUNS).map(|run| run.to_string()).collect();
    // The first run begins with the first row, and the last one ends with the last row.
    format!(
        "(SELECT {first} + value * max({last} - {first} - {others}, 0) / {} AS svc_begin FROM json_each('[{}]')) AS svc_run \
         CROSS JOIN {table} AS {alias} ON {alias}.svc_rowid BETWEEN svc_run.svc_begin AND svc_run.svc_begin + {others}",
        RUNS - 1,
        runs.join(",")
    )
}

/// Writes 1 if a related row counts and meets the condition, and 0 otherwise.
fn is_met(writer: &mut Writer, related: &Related, alias: &str) -> String {
    let place = Place::inside(&related.object, alias);
    let mut tests = writer.scope_at(&place, &related.scope);
    tests.push(writer.condition(&place, &related.condition));
    format!("CASE WHEN {} THEN 1 ELSE 0 END", tests.join(" AND "))
}

#[cfg(test)]
mod tests;

//! What small statements find about a page with a condition on related rows, before a statement for all cases reads it.
//!
//! On SQLite, there are two small statements, one after the other. They find keys or places, by which the rows are read:
//!
//! - If an index finds the related rows of such a condition, the keys to which they lead are read. If there are few keys, they
//!   lead to the page. If they are foreign keys, the page is a merge: the index of the foreign key has the rows of each key in the
//!   order of their creation, and SQLite reads these lists side by side, and stops when the page is full. So the time depends
//!   neither on the number of rows, nor on how many of them meet the condition.
//! - Otherwise the first rows in the order of the page are judged by row. If many rows meet the conditions, these rows fill the
//!   page. If there are so few rows that all of them are judged, they are the page in any case.
//!
//! If at least half of the page is among the first rows, the next rows are judged as well ([`next_of_list`]). They are likely to
//! have the rest of it.
//!
//! If neither finds the page, and there are more keys, one of these two is tried again with more rows. The number of rows then
//! depends on the sizes of the tables:
//!
//! - If the keys are ids, many keys may be few different ones, because a row can have any number of related rows and links. To
//!   judge the first rows by row would then read all of these.
//! - If they are foreign keys, a small statement finds out about how many rows have them ([`KeyRows`]). If these are many, it
//!   takes long to read and sort them. Unless they are all late in the order of the page, some more of the first rows fill it.
//!
//! If nothing finds the page, a sample may show that all rows should be judged by row ([`super::sample`]). Otherwise one
//! statement chooses between further ways while it runs ([`super::related`]).
//!
//! On Postgres, indexes and statistics lead to few rows. If no index leads to them, one small statement judges the first rows,
//! as on SQLite, and reads those of the page at once. Its plan is the same for all values, so Postgres makes it once for each
//! connection. To plan the statement for all cases takes longer than reading a page. If an index leads to few foreign keys, another
//! small statement reads the first rows of each ([`super::merged`]).

use std::collections::BTreeSet;

use blockbase_schema::{Object, RelationShape, system};
use uuid::Uuid;

use super::param::{Param, Statement};
use super::read::{limit_of, order_keys, rows_at_places};
use super::related::{
    FEW_MAX, FOUND_MAX, HEADS_MAX, is_by_creation, is_indexed, is_led_by_index, is_led_by_links, is_plain, is_repeatable,
    lead_of_page, leads, parts_of,
};
use super::sample::is_sampled;
use super::writer::{Place, Way, Writer};
use crate::access::Scope;
use crate::condition::{Condition, Related};
use crate::cursor::Part;
use crate::dialect::{Dialect, quote};
use crate::plan::ListPlan;
use crate::request::Paging;

/// The maximum number of foreign keys whose rows are merged.
pub(super) const MERGED_KEYS_MAX: usize = 64;
/// The same if there are other tests, or a row policy with conditions, because the statement contains these for each key.
pub(super) const TESTED_KEYS_MAX: usize = 16;
/// The maximum number of keys that lead to one row each.
const ROW_KEYS_MAX: usize = 100;
/// To find few different keys, one key in this number of related rows is read.
const DIFFERENT_ONE_IN: usize = 100;
/// The number of foreign keys whose rows are counted.
const SAMPLED_KEYS: i64 = 64;
/// The maximum number of first rows that are judged, if they are likely to fill the page.
const LIKELY_ROWS_MAX: i64 = 20_000;
/// This many times as many rows as the page needs are expected among these. Other conditions can exclude some of them.
const LIKELY_TIMES: i64 = 3;
/// The number of first rows that are judged, if the conditions lead from each of them to one row at most.
pub(super) const FIRST_ROWS_MAX: i64 = 250;
/// The same if a row can have any number of related rows, so that judging it can take longer.
const FIRST_ROWS_TO_MANY_MAX: i64 = 100;

/// This many times as many rows are judged after the first rows as should have the rest of the page. The number is then rounded
/// to a power of two.
const NEXT_TIMES: i64 = 2;
/// The minimum number of rows that are judged after the first rows.
const NEXT_ROWS_MIN: i64 = 64;

/// What comes after the places of a page that ends before it is full. No row has this rowid.
pub const END_OF_PLACES: i64 = 0;

/// What was found about the rows of a page.
#[derive(Debug)]
pub enum Found {
    /// All keys that the rows of the page can have.
    Keys(Vec<Uuid>),
    /// The rowids of the rows of the page, in its order.
    Places(Vec<i64>),
}

/// Rows in the order of a page, by their number.
struct Judged {
    /// The number of rows before them.
    before: i64,
    rows: i64,
}

/// A statement that finds the page only if it returns a certain number of rows.
#[derive(Debug)]
pub struct Attempt {
    pub statement: Statement,
    pub rows: usize,
}

/// What the statement of [`rows_of_keys`] returns, in this order.
#[derive(Clone, Copy, Debug)]
pub struct KeyRows {
    /// The number of foreign keys that lead to the page, or [`FOUND_MAX`] + 1 if there are more.
    pub keys: i64,
    /// The number of rows that have one of the first 64 of them, or the maximum that is counted. It is 0 if there are so few keys
    /// that a page is made of the first rows of each.
    pub rows_of_first: i64,
    /// The number of all rows of the object.
    pub rows: i64,
}

impl KeyRows {
    /// The number of first rows that are judged for a page that reads and skips this many rows. `None` if they are not likely to
    /// fill it, or if the rows of the keys are few and so are found in less time by their keys. It is also `None` for more keys:
    /// the statement for all cases then judges the rows in their order.
    fn judged(self, needed: i64) -> Option<i64> {
        let expected = self.rows_of_first.saturating_mul(self.keys) / SAMPLED_KEYS;
        let among = needed.saturating_mul(LIKELY_TIMES).saturating_mul(self.rows) / expected.max(1);
        let is_counted = usize::try_from(self.keys).is_ok_and(|keys| keys <= FOUND_MAX);
        let are_many = usize::try_from(expected).is_ok_and(|expected| expected > FEW_MAX);
        // Fewer rows were judged before. Powers of two make few different statements.
        let is_likely = (FIRST_ROWS_MAX + 1..=LIKELY_ROWS_MAX).contains(&among);
        let rows = among.unsigned_abs().next_power_of_two().try_into().unwrap_or(LIKELY_ROWS_MAX);
        (is_counted && are_many && is_likely).then_some(rows.min(LIKELY_ROWS_MAX))
    }
}

/// Reads the keys that the rows of a page can have. They are only of use if the statement does not return more than
/// [`Attempt::rows`].
///
/// `None` if no keys lead to the page: on Postgres, with a search, if no index finds exactly the related rows of a condition, or
/// if these are foreign keys and the page has another order than that of creation, or a row policy with many values. It is also
/// `None` if an index leads to the rows that meet another test, because these may be fewer.
pub fn keys_of_page(dialect: Dialect, plan: &ListPlan) -> Option<Attempt> {
    let (related, rows) = led_by_keys(dialect, plan)?;
    let mut writer = Writer::new(dialect, &related.object);
    let keys = writer.keys_by_index(related);
    writer.sql.push_str(&format!("{keys} LIMIT {}", rows + 1));
    Some(Attempt { statement: writer.finish(), rows })
}

/// Reads the different keys that the rows of a page can have, if [`keys_of_page`] has found too many. This is in vain if these
/// are all different. Beside the last key there is a 1 if the statement has not read all keys, and beside all others a 0. The
/// keys are only of use if there is no 1, and if they are not more than [`Attempt::rows`].
///
/// Usually different keys follow each other, and the statement ends after few of them. It reads more if many related rows belong
/// to few rows. To judge rows by row would then take long, because most of them would read all of their related rows. If more
/// related rows meet the condition than keys may be read, the statement reads only one key, also if few of these rows have links.
/// To count the related rows in their index takes far less time than to read their keys.
///
/// `None` if the keys are foreign keys: each is the id of one related row.
pub fn different_keys_of_page(dialect: Dialect, plan: &ListPlan) -> Option<Attempt> {
    let (related, rows) = led_by_keys(dialect, plan)?;
    if matches!(related.shape, RelationShape::Forward { .. }) {
        return None;
    }
    let mut writer = Writer::new(dialect, &related.object);
    let keys = writer.keys_by_index(related);
    let test = writer.condition(&Place::inside(&related.object, "svc_counted"), &related.condition);
    let most = format!("max({FOUND_MAX}, {} / {DIFFERENT_ONE_IN})", writer.stored_count(&related.object));
    let counted = format!("SELECT 1 FROM {} AS svc_counted WHERE {test} LIMIT {most} + 1", quote(related.object.name()));
    let read = format!("CASE WHEN (SELECT count(*) FROM ({counted})) > {most} THEN 0 ELSE {most} END");
    writer.sql.push_str(&format!(
        "SELECT DISTINCT svc_key, row_number() OVER () > {read} AS svc_is_cut FROM ({keys} LIMIT {read} + 1) LIMIT {}",
        rows + 1
    ));
    Some(Attempt { statement: writer.finish(), rows })
}

/// Counts the foreign keys that lead to a page, and the rows that have one of the first ones. The statement returns one row, the
/// integers of a [`KeyRows`]. `None` if other tests narrow the rows, if a row can have any number of related rows, or if the page is
/// so late that more first rows do not have it.
pub fn rows_of_keys(dialect: Dialect, plan: &ListPlan) -> Option<Statement> {
    if read_and_skipped(plan, limit_of(plan)).saturating_mul(LIKELY_TIMES) > LIKELY_ROWS_MAX {
        return None;
    }
    let (related, _) = led_by_keys(dialect, plan)?;
    let RelationShape::Forward { column } = related.shape else { return None };
    let (object, selection) = (&plan.object, &plan.selection);
    let is_narrowed = selection.scope != Scope::All || selection.conditions.iter().any(is_plain);
    if is_narrowed || !lead_to_one_each(&selection.conditions) {
        return None;
    }
    let mut writer = Writer::new(dialect, object);
    let (counted, first) = (writer.keys_by_index(related), writer.keys_by_index(related));
    let (table, key, rows) = (quote(object.name()), quote(&object.columns[column].name), writer.stored_count(object));
    writer.sql.push_str(&format!(
        "SELECT svc_keys, CASE WHEN svc_keys > {HEADS_MAX} THEN (SELECT count(*) FROM (SELECT 1 FROM ({first} LIMIT \
         {SAMPLED_KEYS}) AS svc_first CROSS JOIN {table} AS svc_of_first ON svc_of_first.{key} = svc_first.svc_key LIMIT \
         {FEW_MAX})) ELSE 0 END, {rows} FROM (SELECT count(*) AS svc_keys FROM ({counted} LIMIT {FOUND_MAX} + 1))"
    ));
    Some(writer.finish())
}

/// The condition whose keys lead to a page, and the maximum number of keys by which the page is read.
fn led_by_keys(dialect: Dialect, plan: &ListPlan) -> Option<(&Related, usize)> {
    let (place, related) = led_by_related(dialect, plan)?;
    let (object, conditions) = (&plan.object, &plan.selection.conditions);
    let rows = match (related.shape, &plan.selection.scope) {
        (RelationShape::Reverse { .. } | RelationShape::Linked { .. }, _) => ROW_KEYS_MAX,
        (RelationShape::Forward { .. }, _) if !is_by_creation(plan) => return None,
        (RelationShape::Forward { .. }, Scope::Where(policy)) if !is_repeatable(std::slice::from_ref(&**policy)) => return None,
        (RelationShape::Forward { .. }, Scope::Where(_)) => TESTED_KEYS_MAX,
        (RelationShape::Forward { .. }, _) if conditions.len() > 1 => TESTED_KEYS_MAX,
        (RelationShape::Forward { .. }, _) => MERGED_KEYS_MAX,
    };
    let [test] = parts_of(&related.condition) else { return None };
    let mut others = conditions.iter().enumerate().filter(|(other, _)| *other != place);
    let is_found_by_index = related.scope == Scope::All && is_indexed(&related.object, test);
    if !is_found_by_index || others.any(|(_, part)| is_plain(part) && leads(object, part)) {
        return None;
    }
    Some((related, rows))
}

/// On SQLite: judges the first rows in the order of a page. The statement returns the rowids of those that meet all conditions.
/// They are the page only if it returns [`Attempt::rows`] of them, or if [`END_OF_PLACES`] comes after them. `None` if they
/// cannot be the page, or if this is not the best way to it.
pub fn first_of_list(dialect: Dialect, plan: &ListPlan) -> Option<Attempt> {
    few_first_rows(dialect, plan, &Part::default(), limit_of(plan))
}

/// Does the same for at most `rows_max` rows of a part of a list.
pub fn first_of_part(dialect: Dialect, plan: &ListPlan, part: &Part, rows_max: usize) -> Option<Attempt> {
    few_first_rows(dialect, plan, part, i64::try_from(rows_max).unwrap_or(i64::MAX))
}

/// On SQLite: judges the next rows, if [`first_of_list`] returned a part of the page: `met` rows. The statement returns the
/// rowids of the rest of the page, under the same condition. It does not judge the first rows again.
///
/// `None` if the first rows had less than half of the rows that the page reads and skips. So the next rows are at most two and a
/// half times as many as the first ones. They are at most one and a half times as many if a row can have any number of related
/// rows: one row may then read very many of these.
pub fn next_of_list(dialect: Dialect, plan: &ListPlan, met: usize) -> Option<Attempt> {
    next_rows(dialect, plan, &Part::default(), limit_of(plan), met)
}

/// Does the same if [`first_of_part`] returned `met` rows.
pub fn next_of_part(dialect: Dialect, plan: &ListPlan, part: &Part, rows_max: usize, met: usize) -> Option<Attempt> {
    next_rows(dialect, plan, part, i64::try_from(rows_max).unwrap_or(i64::MAX), met)
}

/// Does the same as [`first_of_list`] with more rows, if they are likely to fill the page. `rows` is what [`rows_of_keys`] found.
pub fn likely_of_list(dialect: Dialect, plan: &ListPlan, rows: KeyRows) -> Option<Attempt> {
    likely_rows(dialect, plan, &Part::default(), limit_of(plan), rows)
}

/// Does the same for at most `rows_max` rows of a part of a list.
pub fn likely_of_part(dialect: Dialect, plan: &ListPlan, part: &Part, rows_max: usize, rows: KeyRows) -> Option<Attempt> {
    likely_rows(dialect, plan, part, i64::try_from(rows_max).unwrap_or(i64::MAX), rows)
}

fn few_first_rows(dialect: Dialect, plan: &ListPlan, part: &Part, limit: i64) -> Option<Attempt> {
    let rows = judged_rows(plan, limit)?;
    if is_led_by_links(&plan.object, &plan.selection.conditions) {
        return None;
    }
    first_rows(dialect, plan, part, limit, Judged { before: 0, rows }, None)
}

fn next_rows(dialect: Dialect, plan: &ListPlan, part: &Part, limit: i64, met: usize) -> Option<Attempt> {
    let (before, found) = (judged_rows(plan, limit)?, i64::try_from(met).ok()?);
    let missing = limit.saturating_sub(found);
    // If the first rows had a row of the page, they also had all rows that the page skips.
    let met = read_and_skipped(plan, found);
    if found == 0 || missing <= 0 || missing > met {
        return None;
    }
    let likely = (before * missing * NEXT_TIMES / met).max(NEXT_ROWS_MIN).unsigned_abs();
    // Powers of two make few different statements.
    let rows = match lead_to_one_each(&plan.selection.conditions) {
        true => likely.next_power_of_two(),
        false => 1_u64 << likely.ilog2(),
    };
    let rows = i64::try_from(rows).ok()?;
    first_rows(dialect, plan, part, missing, Judged { before, rows }, None)
}

fn likely_rows(dialect: Dialect, plan: &ListPlan, part: &Part, limit: i64, rows: KeyRows) -> Option<Attempt> {
    let lead = led_by(dialect, plan)?;
    let judged = Judged { before: 0, rows: rows.judged(read_and_skipped(plan, limit))? };
    first_rows(dialect, plan, part, limit, judged, Some(lead))
}

/// Judges these rows. The condition at `listed` is tested with a list of its keys, and all others by row.
fn first_rows(
    dialect: Dialect,
    plan: &ListPlan,
    part: &Part,
    limit: i64,
    judged: Judged,
    listed: Option<usize>,
) -> Option<Attempt> {
    if led_by(dialect, plan).is_none() && !is_sampled(dialect, &plan.selection) {
        return None;
    }
    let (object, conditions) = (&plan.object, &plan.selection.conditions);
    let Judged { before, rows } = judged;
    // Either the page skips rows that meet the conditions, or the rows before are skipped, and the page begins among them.
    let skipped = if before > 0 { u64::try_from(before).ok()? } else { plan.paging.offset };
    let mut writer = Writer::of_page(dialect, object, Paging { offset: skipped, ..plan.paging });
    writer.begin_at(plan, part);
    let keys = order_keys(dialect, plan, part, plan.order.len());
    let table = quote(object.name());
    let own = writer.own_tests(object, &plan.selection);
    let way = |place: usize| if listed == Some(place) { Way::TestedByList } else { Way::ByRow };
    let tests: Vec<String> = conditions
        .iter()
        .enumerate()
        .filter(|(_, part)| !is_plain(part))
        .map(|(place, part)| writer.by(way(place), |writer| writer.condition(&Place::of(object), part)))
        .collect();
    // Links and the foreign keys of other objects refer to the id.
    let mut read: BTreeSet<usize> = object.column_index(system::ID).into_iter().collect();
    conditions.iter().filter(|part| !is_plain(part)).for_each(|part| part.columns_into(&mut read));
    // These rows may be no more than are judged. It takes little time to count them if they follow each other in the index of the
    // order, because no test leaves out others, or if the index of a test leads to them.
    let is_whole = plan.selection.scope == Scope::All && !conditions.iter().any(is_plain);
    let is_counted = is_whole || conditions.iter().any(|part| is_plain(part) && leads(object, part));
    writer.sql.push_str(if is_counted { "SELECT svc_rowid FROM (" } else { "" });
    writer.sql.push_str("SELECT svc_rowid FROM (SELECT svc_rowid, ");
    writer.columns(object, read);
    writer.sql.push_str(&format!(" FROM {table}"));
    writer.where_clause(&own);
    // SQLite reads the inner SELECT row by row, and stops when the outer one has enough rows.
    let after = if before > 0 { writer.offset_in_text() } else { String::new() };
    writer.sql.push_str(&format!(" ORDER BY {keys} LIMIT {rows}{after}) AS {table}"));
    writer.where_clause(&tests);
    let (limit_bound, offset) = (writer.bind(Param::from(limit)), if before > 0 { String::new() } else { writer.offset() });
    writer.sql.push_str(&format!(" LIMIT {limit_bound}{offset}"));
    if is_counted {
        let judged = before + rows;
        writer.sql.push_str(&format!(") UNION ALL SELECT {END_OF_PLACES} WHERE (SELECT count(*) FROM (SELECT 1 FROM {table}"));
        writer.where_clause(&own);
        // SQLite does not count if the page is full. In this order, it reads the same rows again.
        writer.sql.push_str(&format!(" ORDER BY {keys} LIMIT {judged})) < {judged} LIMIT {limit_bound}"));
    }
    Some(Attempt { statement: writer.finish(), rows: usize::try_from(limit).ok()? })
}

/// On Postgres: judges the first rows in the order of a page, and reads those that meet all conditions. They are the page only if
/// the statement returns [`Attempt::rows`] of them. `None` if they cannot be the page, if indexes lead to few rows, or if the
/// total is counted with the page.
pub fn list_of_first(dialect: Dialect, plan: &ListPlan) -> Option<Attempt> {
    read_first(dialect, plan, &Part::default(), limit_of(plan))
}

/// Does the same for at most `rows_max` rows of a part of a list.
pub fn part_of_first(dialect: Dialect, plan: &ListPlan, part: &Part, rows_max: usize) -> Option<Attempt> {
    read_first(dialect, plan, part, i64::try_from(rows_max).unwrap_or(i64::MAX))
}

fn read_first(dialect: Dialect, plan: &ListPlan, part: &Part, limit: i64) -> Option<Attempt> {
    let (object, selection) = (&plan.object, &plan.selection);
    let conditions = &selection.conditions;
    let follows_relations = conditions.iter().any(|part| part.relations().next().is_some());
    let is_led = selection.scope != Scope::All || conditions.iter().any(|part| is_led_by_index(object, part));
    if dialect != Dialect::Postgres || plan.counts_with_page(dialect) || !follows_relations || is_led || is_searched(plan) {
        return None;
    }
    let most = judged_rows(plan, limit)?;
    let mut writer = Writer::of_page(dialect, object, plan.paging);
    writer.begin_at(plan, part);
    let keys = order_keys(dialect, plan, part, plan.order.len());
    let table = quote(object.name());
    writer.sql.push_str("SELECT ");
    writer.columns(object, plan.columns.iter().chain(&plan.hidden).copied());
    writer.sql.push_str(&format!(" FROM (SELECT * FROM {table}"));
    let beginning: Vec<String> = writer.beginning.iter().cloned().collect();
    writer.where_clause(&beginning);
    // All numbers are in the text. With parameters, Postgres would expect other costs of a plan for all values.
    writer.sql.push_str(&format!(" ORDER BY {keys} LIMIT {most}) AS {table}"));
    let tests = writer.conditions_by(object, conditions, Way::OnlyByRow);
    writer.where_clause(&tests);
    let offset = writer.offset_in_text();
    writer.sql.push_str(&format!(" ORDER BY {keys} LIMIT {limit}{offset}"));
    Some(Attempt { statement: writer.finish(), rows: usize::try_from(limit).ok()? })
}

/// The number of first rows that are judged for a page with at most `limit` rows. `None` if the page cannot be among the first
/// rows.
fn judged_rows(plan: &ListPlan, limit: i64) -> Option<i64> {
    let most = match lead_to_one_each(&plan.selection.conditions) {
        true => FIRST_ROWS_MAX,
        false => FIRST_ROWS_TO_MANY_MAX,
    };
    (read_and_skipped(plan, limit) <= most && plan.is_in_order_of_index()).then_some(most)
}

/// The number of rows that a page with at most `limit` rows reads and skips.
pub(super) fn read_and_skipped(plan: &ListPlan, limit: i64) -> i64 {
    limit.saturating_add(i64::try_from(plan.paging.offset).unwrap_or(i64::MAX))
}

/// Whether each relation of the conditions leads to one row at most.
fn lead_to_one_each(conditions: &[Condition]) -> bool {
    conditions.iter().flat_map(Condition::relations).all(leads_to_one)
}

/// Whether a relation leads to one row at most, and each relation of the condition on that row as well.
fn leads_to_one(related: &Related) -> bool {
    matches!(related.shape, RelationShape::Forward { .. }) && related.condition.relations().all(leads_to_one)
}

/// The place, among the conditions, of the one on related rows that leads to a page.
fn led_by(dialect: Dialect, plan: &ListPlan) -> Option<usize> {
    let parts = &plan.selection.conditions;
    let is_masked = matches!(plan.selection.scope, Scope::Seen(_));
    if dialect != Dialect::Sqlite || is_searched(plan) || is_masked || !is_repeatable(parts) {
        return None;
    }
    lead_of_page(&plan.object, parts)
}

/// Whether the search index may lead to the rows.
pub(super) fn is_searched(plan: &ListPlan) -> bool {
    plan.selection.search.is_some() || plan.selection.indexed_term(&plan.object).is_some()
}

/// The same, and the condition itself, if it is on one relation.
fn led_by_related(dialect: Dialect, plan: &ListPlan) -> Option<(usize, &Related)> {
    let place = led_by(dialect, plan)?;
    match &plan.selection.conditions[place] {
        Condition::Related(related) => Some((place, related)),
        _ => None,
    }
}

/// Reads the rows of a page that was found, or of a part of it.
pub(super) fn rows(plan: &ListPlan, part: &Part, found: &Found, limit: i64) -> Option<Statement> {
    let object = &plan.object;
    let mut writer = Writer::of_page(Dialect::Sqlite, object, plan.paging);
    writer.sql.push_str("SELECT ");
    writer.columns(object, plan.columns.iter().chain(&plan.hidden).copied());
    writer.sql.push_str(" FROM (");
    match found {
        Found::Places(places) => {
            let places = writer.bind(Param::IntegerList(places.clone()));
            writer.sql.push_str(&format!("SELECT value AS svc_place FROM json_each({places})"));
        }
        Found::Keys(keys) => {
            let (place, related) = led_by_related(Dialect::Sqlite, plan)?;
            writer.begin_at(plan, part);
            let tests = tests_beside(&mut writer, plan, place);
            let order = order_keys(Dialect::Sqlite, plan, part, plan.order.len());
            let rows = match related.shape {
                RelationShape::Forward { column } => writer.merged(object, column, keys, &tests),
                RelationShape::Reverse { .. } | RelationShape::Linked { .. } => {
                    let keys = writer.bind(Param::UuidList(keys.clone()));
                    let is_one = Dialect::Sqlite.among(&quote(system::ID), &keys);
                    format!("SELECT svc_rowid AS svc_place FROM {} WHERE {is_one}{tests}", quote(object.name()))
                }
            };
            let (limit, offset) = (writer.bind(Param::from(limit)), writer.offset());
            writer.sql.push_str(&format!("SELECT svc_place FROM ({rows} ORDER BY {order} LIMIT {limit}{offset})"));
        }
    }
    rows_at_places(&mut writer, object, &plan.selection.scope);
    Some(writer.finish())
}

/// ` AND …`: the tests of all conditions but one, and of the rows at which the part begins.
pub(super) fn tests_beside(writer: &mut Writer, plan: &ListPlan, place: usize) -> String {
    let object: &Object = &plan.object;
    let mut tests = writer.scope_and_beginning(object, &plan.selection);
    for (_, part) in plan.selection.conditions.iter().enumerate().filter(|(other, _)| *other != place) {
        tests.push(writer.by(Way::ByRow, |writer| writer.condition(&Place::of(object), part)));
    }
    tests.iter().map(|test| format!(" AND {test}")).collect()
}

impl Writer {
    /// `SELECT …`: the keys of a condition whose related rows an index finds.
    fn keys_by_index(&mut self, related: &Related) -> String {
        self.by(Way::ByList, |writer| writer.keys(related, &related.condition))
    }

    /// `SELECT … UNION ALL …`: the rows of each foreign key. With an order of creation after it, SQLite merges them.
    fn merged(&mut self, object: &Object, column: usize, keys: &[Uuid], tests: &str) -> String {
        let rows = format!(
            "SELECT svc_rowid AS svc_place, {}, {} FROM {} WHERE {} = ",
            quote(system::CREATED_AT),
            quote(system::ID),
            quote(object.name()),
            quote(&object.columns[column].name)
        );
        // The number of keys is filled up with nulls, so that there are few different statements. Nothing is equal to null.
        let filled = keys.len().max(1).next_power_of_two();
        let keys = keys.iter().copied().map(Some).chain(std::iter::repeat(None)).take(filled);
        let lists: Vec<String> = keys.map(|key| format!("{rows}{}{tests}", self.bind(Param::Uuid(key)))).collect();
        lists.join(" UNION ALL ")
    }
}

#[cfg(test)]
mod tests;

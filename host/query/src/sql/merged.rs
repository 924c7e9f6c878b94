//! On Postgres: a page of the rows that have one of few foreign keys, read by one small statement.
//!
//! An index finds the keys, at most [`MERGED_KEYS_MAX`]. The index of the foreign key has the rows of each key in the order of their
//! creation. So the first rows of each key are read there, and then sorted. How many rows have the keys does not matter, unless they
//! are counted or tested.
//!
//! Without it, Postgres plans the statement of the list for its values each time ([`super::related`]), which takes longer than to
//! read such a page. And it either reads all rows of the keys, or judges rows in their order until the page is full.
//!
//! Postgres plans the small statement once for each connection, after it has run a few times. This plan is good for all values: the
//! indexes that it needs are the only ones whose expected cost is low.
//!
//! If there are more keys, or if the page is empty, the statement returns no row. Then it was in vain.

use blockbase_schema::{RelationShape, Value, system};

use super::found::{Attempt, FIRST_ROWS_MAX, MERGED_KEYS_MAX, TESTED_KEYS_MAX, is_searched, read_and_skipped, tests_beside};
use super::param::Param;
use super::read::{count_if_full, limit_of, order_keys};
use super::related::{is_by_creation, is_plain, is_range, lead_of_page, leads, parts_of};
use super::write::link_sides;
use super::writer::Writer;
use crate::access::Scope;
use crate::condition::{Condition, Quantifier, Related};
use crate::cursor::Part;
use crate::ddl::link_table;
use crate::dialect::{Dialect, quote};
use crate::plan::ListPlan;
use crate::predicate::{Comparison, Predicate, Test};

/// The maximum number of rows that are sorted: the first rows of all keys together.
const SORTED_ROWS_MAX: u64 = 1024;

/// On Postgres: reads a page by few foreign keys. It has the total as well if the statement of the list would have it
/// ([`ListPlan::counts_with_page`]). The rows are the page if the statement returns any.
///
/// `None` if no index finds the keys, if the rows of a key are not in the order of the page, or if another index may lead to fewer
/// rows.
pub fn list_of_keys(dialect: Dialect, plan: &ListPlan) -> Option<Attempt> {
    read_merged(dialect, plan, &Part::default(), limit_of(plan), plan.counts_with_page(dialect))
}

/// Does the same for at most `rows_max` rows of a part of a list, without a total.
pub fn part_of_keys(dialect: Dialect, plan: &ListPlan, part: &Part, rows_max: usize) -> Option<Attempt> {
    read_merged(dialect, plan, part, i64::try_from(rows_max).unwrap_or(i64::MAX), false)
}

fn read_merged(dialect: Dialect, plan: &ListPlan, part: &Part, limit: i64, with_total: bool) -> Option<Attempt> {
    let (object, conditions) = (&plan.object, &plan.selection.conditions);
    let rows = read_and_skipped(plan, limit);
    let is_whole = plan.selection.scope == Scope::All && !is_searched(plan);
    if dialect != Dialect::Postgres || !is_whole || !is_by_creation(plan) || rows > FIRST_ROWS_MAX {
        return None;
    }
    let place = lead_of_page(object, conditions)?;
    let Condition::Related(related) = &conditions[place] else { return None };
    let RelationShape::Forward { column } = related.shape else { return None };
    let is_tested = conditions.len() > 1;
    let mut others = conditions.iter().enumerate().filter(|(other, _)| *other != place);
    let may_lead = |part: &Condition| !is_plain(part) || leads(object, part) || is_range(object, part);
    // To count the rows of the keys, Postgres reads only the index, unless it has to test them.
    if others.any(|(_, part)| may_lead(part)) || (is_tested && with_total) {
        return None;
    }
    // Powers of two make few different statements.
    let first = rows.max(1).unsigned_abs().next_power_of_two();
    let sorted = usize::try_from(SORTED_ROWS_MAX / first).unwrap_or(MERGED_KEYS_MAX);
    let most = sorted.min(if is_tested { TESTED_KEYS_MAX } else { MERGED_KEYS_MAX });
    let mut writer = Writer::of_page(dialect, object, plan.paging);
    let keys = found_keys(&mut writer, related)?;
    writer.add_table("svc_found", format!("{keys} LIMIT {}", most + 1));
    writer.begin_at(plan, part);
    let order = order_keys(dialect, plan, part, plan.order.len());
    let (table, key) = (quote(object.name()), quote(&object.columns[column].name));
    let tests = format!("{key} = svc_found.svc_key{}", tests_beside(&mut writer, plan, place));
    writer.sql.push_str("SELECT ");
    writer.columns(object, plan.columns.iter().chain(&plan.hidden).copied());
    // This number is in the text. Postgres would expect a tenth of all rows for a parameter, and not use the index of the key. It
    // tests the number of keys once, before it reads any row.
    let of_key = format!("SELECT * FROM {table} WHERE {tests} ORDER BY {order} LIMIT {first}");
    let (limit, offset) = (writer.bind(Param::from(limit)), writer.offset());
    writer.sql.push_str(&format!(
        " FROM svc_found CROSS JOIN LATERAL ({of_key}) AS {table} WHERE (SELECT count(*) FROM svc_found) <= {most} \
         ORDER BY {order} LIMIT {limit}{offset}"
    ));
    if with_total {
        // The rows of each key are counted by themselves, because otherwise Postgres may read the whole table.
        let of_key = format!("SELECT count(*) AS svc_rows FROM {table} WHERE {tests}");
        let total = format!("SELECT CAST(sum(svc_rows) AS BIGINT) FROM svc_found CROSS JOIN LATERAL ({of_key}) AS svc_of_key");
        count_if_full(&mut writer, &limit, |_| total);
    }
    Some(Attempt { statement: writer.finish(), rows: 1 })
}

/// `SELECT … AS svc_key …`: the ids of the related rows that meet a condition. `None` if no index finds exactly these.
fn found_keys(writer: &mut Writer, related: &Related) -> Option<String> {
    let [part] = parts_of(&related.condition) else { return None };
    if related.scope != Scope::All {
        return None;
    }
    if let Condition::Related(linked) = part {
        return keys_of_links(writer, linked);
    }
    let (column, value) = compared(related, part)?;
    let bound = |comparison| Condition::Test(Predicate { column, test: Test::Compare(comparison, value.clone()) });
    // A plan for all values expects as many rows as a value has on average. If it expects many, it reads the table until it has
    // enough keys, which takes long for a rare value. With these two tests it expects few, and uses the index.
    let bounds = [Comparison::GreaterOrEqual, Comparison::LessOrEqual].map(bound);
    let tests = std::iter::once(part.clone()).chain(bounds).collect();
    Some(writer.keys(related, &Condition::All(tests)))
}

/// The column and the value of a test that a column of the related rows is equal to a value, if an index begins with this column.
fn compared<'c>(related: &Related, part: &'c Condition) -> Option<(usize, &'c Value)> {
    match part {
        Condition::Test(Predicate { column, test: Test::Compare(Comparison::Equal, value) }) => {
            let has_value = !matches!(value, Value::Null | Value::DecimalBetween { .. });
            (has_value && related.object.columns[*column].indexes.lead_to_rows).then_some((*column, value))
        }
        _ => None,
    }
}

/// `SELECT … AS svc_key …`: the ids of the related rows that have a link to one certain row, for example to the caller. The table
/// of the links has them.
fn keys_of_links(writer: &mut Writer, linked: &Related) -> Option<String> {
    let RelationShape::Linked { relationship_id, is_source } = linked.shape else { return None };
    let [part] = parts_of(&linked.condition) else { return None };
    let (column, id) = compared(linked, part)?;
    let column = &linked.object.columns[column];
    if column.name != system::ID || linked.quantifier != Quantifier::Some || linked.scope != Scope::All {
        return None;
    }
    let (near, far) = link_sides(is_source);
    let id = writer.bind(Param::of(column.ty, id.clone()));
    Some(format!(
        "SELECT {near} AS svc_key FROM {} WHERE {far} = {id} AND {far} >= {id} AND {far} <= {id}",
        link_table(relationship_id)
    ))
}

#[cfg(test)]
mod tests;

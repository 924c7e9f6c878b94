//! On Postgres: a page of the rows that have one of few foreign keys, read by one small statement.
//!
//! The statement finds the keys by an index, as far as there are few. The index of the foreign key has the rows of each key in the
//! order of their creation, so the first rows of each key are read there, and sorted. It takes as long for many rows as for few.
//!
//! Without it, Postgres plans the statement of the list for its values each time ([`super::related`]), which takes longer than to
//! read such a page. And it either reads all rows of the keys, or judges rows in their order until the page is full.
//!
//! The plan of the small statement is the same for all values, so Postgres makes it once for each connection. The parts of the
//! statement leave the plan no choice that would be good for some values only.

use blockbase_schema::{ColumnType, RelationShape, Value, system};

use super::found::{Attempt, FIRST_ROWS_MAX, MERGED_KEYS_MAX, is_searched, read_and_skipped, tests_beside};
use super::param::Param;
use super::read::{count_if_full, limit_of, order_keys};
use super::related::{is_by_creation, is_indexed, is_plain, lead_of_page, leads, parts_of};
use super::write::link_sides;
use super::writer::Writer;
use crate::access::Scope;
use crate::condition::{Condition, Quantifier, Related};
use crate::cursor::Part;
use crate::ddl::link_table;
use crate::dialect::{Dialect, quote};
use crate::plan::ListPlan;
use crate::predicate::{Comparison, Predicate, Test};

/// The maximum number of rows that are read for a page, of all keys together.
const READ_ROWS_MAX: i64 = 1000;

/// On Postgres: reads a page by few foreign keys, with the total if the page has it. The rows are the page if the statement returns
/// any. It returns none if there are more keys, or if the page is empty.
///
/// `None` if no index finds the keys, or if the rows of a key are not in the order of the page.
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
    let mut others = conditions.iter().enumerate().filter(|(other, _)| *other != place);
    // Another index may lead to fewer rows.
    if others.any(|(_, part)| !is_plain(part) || leads(object, part)) {
        return None;
    }
    let mut writer = Writer::of_page(dialect, object, plan.paging);
    let keys = found_keys(&mut writer, related)?;
    let most = MERGED_KEYS_MAX.min(usize::try_from(READ_ROWS_MAX / rows.max(1)).unwrap_or(MERGED_KEYS_MAX));
    writer.add_table("svc_found", format!("{keys} LIMIT {}", most + 1));
    // Its plan depends on no row, so nothing is read if there are more keys.
    let are_few = format!("(SELECT count(*) FROM svc_found) <= {most}");
    writer.begin_at(plan, part);
    let order = order_keys(dialect, plan, part, plan.order.len());
    let (table, key) = (quote(object.name()), quote(&object.columns[column].name));
    let tests = format!("{key} = svc_found.svc_key{}", tests_beside(&mut writer, plan, place));
    writer.sql.push_str("SELECT ");
    writer.columns(object, plan.columns.iter().chain(&plan.hidden).copied());
    // All numbers are in the text. With parameters, Postgres would expect other costs of a plan for all values.
    let (first, skipped) =
        (format!("SELECT * FROM {table} WHERE {tests} ORDER BY {order} LIMIT {rows}"), writer.offset_in_text());
    writer.sql.push_str(&format!(
        " FROM svc_found CROSS JOIN LATERAL ({first}) AS {table} WHERE {are_few} ORDER BY {order} LIMIT {limit}{skipped}"
    ));
    if with_total {
        let tests = format!("{key} = svc_found.svc_key{}", tests_beside(&mut writer, plan, place));
        // The rows of each key are counted by themselves, because otherwise Postgres may read the whole table.
        let of_key = format!("SELECT count(*) AS svc_rows FROM {table} WHERE {tests}");
        let total = format!("SELECT CAST(sum(svc_rows) AS BIGINT) FROM svc_found CROSS JOIN LATERAL ({of_key}) AS svc_of_key");
        count_if_full(&mut writer, &limit.to_string(), |_| total);
    }
    Some(Attempt { statement: writer.finish(), rows: 1 })
}

/// `SELECT … AS svc_key …`: the ids of the related rows that meet a condition. `None` if no index finds few of them.
fn found_keys(writer: &mut Writer, related: &Related) -> Option<String> {
    if related.scope != Scope::All {
        return None;
    }
    let parts = parts_of(&related.condition);
    if let [Condition::Related(linked)] = parts {
        return keys_of_links(writer, linked);
    }
    let (column, value) = parts.iter().find_map(|part| compared(related, part))?;
    let bound = |comparison| Condition::Test(Predicate { column, test: Test::Compare(comparison, value.clone()) });
    let mut condition = parts.to_vec();
    // A plan for all values expects the average number of rows of a value. If this is large, it would read the table until there
    // are enough keys, which takes long for a rare value. The bounds of a range make it expect few rows, and use the index.
    condition.extend([Comparison::GreaterOrEqual, Comparison::LessOrEqual].map(bound));
    Some(writer.keys(related, &Condition::All(condition)))
}

/// The column and the value of a condition that compares an indexed column of the related rows with a value.
fn compared<'c>(related: &Related, part: &'c Condition) -> Option<(usize, &'c Value)> {
    match part {
        Condition::Test(Predicate { column, test: Test::Compare(Comparison::Equal, value) }) => {
            let is_sorted = related.object.columns[*column].ty != ColumnType::TextList;
            let has_value = !matches!(value, Value::Null | Value::DecimalBetween { .. });
            (is_sorted && has_value && is_indexed(&related.object, part)).then_some((*column, value))
        }
        _ => None,
    }
}

/// Does the same for related rows with a link to one certain row, for example to the caller. The links alone have the keys.
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

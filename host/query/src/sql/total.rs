//! Totals: the number of rows of a selection.
//!
//! A condition like `none` or `neq` leaves most rows, and no index leads to these. But an index or related rows often lead to the
//! few rows that it excludes. If it is the only thing that narrows the rows, the statement counts the excluded ones, and subtracts
//! them from the stored number of all rows.
//!
//! The result is exact. A condition is true or false for each row and never unknown, so its complement has all other rows. Each
//! commit changes the stored number together with the rows, and one statement reads both from one snapshot.

use blockbase_schema::Object;

use super::param::Statement;
use super::related::leads;
use super::writer::Writer;
use crate::access::Scope;
use crate::condition::Condition;
use crate::dialect::Dialect;
use crate::plan::Selection;

/// Counts the rows of the selection. The result is one row with one big integer.
pub fn count(dialect: Dialect, object: &Object, selection: &Selection) -> Statement {
    let mut writer = Writer::new(dialect, object);
    let total = total(&mut writer, object, selection);
    writer.sql.push_str(&total);
    writer.finish()
}

/// `SELECT …`: the number of rows of the selection, as a big integer.
pub(super) fn total(writer: &mut Writer, object: &Object, selection: &Selection) -> String {
    let Some(excluded) = excluded(object, selection) else { return counted(writer, object, selection) };
    let (excluded, all) = (counted(writer, object, &excluded), stored(writer, object));
    format!("SELECT {all} - ({excluded})")
}

/// `CAST(…)`: the stored number of all rows of an object, as a big integer.
pub(super) fn stored(writer: &mut Writer, object: &Object) -> String {
    format!("CAST({} AS BIGINT)", writer.stored_count(object))
}

/// `SELECT count(*) …`: counts the rows of the selection one by one.
fn counted(writer: &mut Writer, object: &Object, selection: &Selection) -> String {
    let source = writer.source(object, &selection.scope, None);
    let tests = writer.selection_tests(object, selection);
    let tests = if tests.is_empty() { String::new() } else { format!(" WHERE {}", tests.join(" AND ")) };
    format!("SELECT count(*) FROM {source}{tests}")
}

/// The rows that the condition of a selection excludes, if an index or related rows lead to them. `None` if there are several
/// conditions (one of a row policy counts too), or if a search, an owner or hidden cells narrow the rows as well.
///
/// `None` also if the excluded rows meet several conditions: the engine could begin with one that most rows meet.
fn excluded(object: &Object, selection: &Selection) -> Option<Selection> {
    let [condition] = selection.conditions.as_slice() else { return None };
    if selection.scope != Scope::All || selection.search.is_some() {
        return None;
    }
    let excluded = condition.clone().complement();
    let is_led = !matches!(excluded, Condition::All(_)) && leads(object, &excluded);
    is_led.then(|| Selection {
        scope: Scope::All,
        search: None,
        conditions: vec![excluded],
        search_by: selection.search_by.clone(),
        related_by: selection.related_by,
    })
}

#[cfg(test)]
mod tests;

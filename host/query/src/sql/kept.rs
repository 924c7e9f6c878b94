//! Texts of statements that depend on nothing but the object. The object keeps them, so that they are neither written nor copied
//! for each request. A new version of an object is another object, which has no texts yet.

use blockbase_schema::{Object, TEXTS_MAX, system};

use super::param::{Param, SqlText, Statement};
use super::read::is_deep;
use crate::access::Scope;
use crate::dialect::Dialect;
use crate::plan::{ListPlan, RecordPlan};

/// The statements whose texts are kept.
#[derive(Clone, Copy)]
enum Kept {
    List,
    CountedList,
    Record,
}

impl Kept {
    /// The number of this statement's text among the texts of an object.
    const fn number(self, dialect: Dialect) -> usize {
        2 * self as usize + dialect as usize
    }
}

// The object has room for the text with the highest number.
const _: () = assert!(Kept::Record.number(Dialect::Postgres) < TEXTS_MAX);

/// The statement of a list that reads `limit` rows, which `write` writes. Its text is kept if the list is a usual one.
pub(super) fn list(dialect: Dialect, plan: &ListPlan, limit: i64, write: impl FnOnce() -> Statement) -> Statement {
    if !is_usual(plan, limit) {
        return write();
    }
    let is_counted = plan.counts_with_page(dialect);
    let offset = i64::try_from(plan.paging.offset).unwrap_or(i64::MAX);
    // The values in the order in which the text names them.
    let counted = is_counted.then_some(plan.object.id);
    let params = counted.into_iter().chain([limit, offset]).map(Param::from).collect();
    let kept = if is_counted { Kept::CountedList } else { Kept::List };
    statement(dialect, &plan.object, kept, params, write)
}

/// The statement of a record, which `write` writes. Its text is kept if the caller may read every row.
pub(super) fn record(dialect: Dialect, plan: &RecordPlan, write: impl FnOnce() -> Statement) -> Statement {
    if plan.scope != Scope::All {
        return write();
    }
    statement(dialect, &plan.object, Kept::Record, vec![Param::Uuid(Some(plan.id))], write)
}

fn statement(dialect: Dialect, object: &Object, kept: Kept, params: Vec<Param>, write: impl FnOnce() -> Statement) -> Statement {
    let text = object.texts.text(kept.number(dialect), || write().sql.into());
    Statement { sql: SqlText::Kept(text), params }
}

/// Whether a list shows all columns of all rows, the newest rows first.
fn is_usual(plan: &ListPlan, limit: i64) -> bool {
    let columns = &plan.object.columns;
    let is_newest_first = match plan.order.as_slice() {
        [(first, true), (second, true)] => columns[*first].name == system::CREATED_AT && columns[*second].name == system::ID,
        _ => false,
    };
    is_newest_first
        && plan.selection.is_everything()
        && plan.columns.iter().copied().eq(0..columns.len())
        && plan.hidden.is_empty()
        && !is_deep(plan, limit)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::cursor::Part;
    use crate::request::Paging;
    use crate::sql;
    use crate::sql::read::{limit_of, rows, written_record};
    use crate::sql::related::tests::planned;

    const DIALECTS: [Dialect; 2] = [Dialect::Sqlite, Dialect::Postgres];

    fn parts(statement: Statement) -> (String, Vec<Param>) {
        (statement.sql.into(), statement.params)
    }

    #[test]
    fn a_kept_statement_is_the_one_that_is_written() {
        let mut plan = planned("task", json!({}), "");
        // The first page of each kind keeps the text, and the second one uses it.
        for offset in [0, 60] {
            plan.paging = Paging { limit: 20 + offset, offset };
            for (dialect, with_count) in DIALECTS.into_iter().flat_map(|dialect| [(dialect, false), (dialect, true)]) {
                plan.with_count = with_count;
                let limit = limit_of(&plan);
                assert!(is_usual(&plan, limit));
                let written = rows(dialect, &plan, &Part::default(), &[], plan.counts_with_page(dialect), Some(limit));
                assert_eq!(parts(sql::list(dialect, &plan, None)), parts(written));
            }
        }
        for number in [1, 2] {
            let record = RecordPlan { object: Arc::clone(&plan.object), scope: Scope::All, id: Uuid::from_u128(number) };
            for dialect in DIALECTS {
                let written = written_record(dialect, &record, false);
                assert_eq!(parts(sql::get(dialect, &record, false)), parts(written));
                let text = || match sql::get(dialect, &record, false).sql {
                    SqlText::Kept(text) => text,
                    SqlText::Written(text) => panic!("written again: {text}"),
                };
                assert!(Arc::ptr_eq(&text(), &text()), "a request copies the text");
            }
        }
    }

    #[test]
    fn a_text_that_depends_on_the_request_is_not_kept() {
        let is_kept = |plan: &ListPlan| is_usual(plan, limit_of(plan));
        assert!(is_kept(&planned("task", json!({}), "")));
        assert!(!is_kept(&planned("task", json!({ "state": "x" }), "")));
        let changes: [fn(&mut ListPlan); 8] = [
            |plan| plan.order.swap(0, 1),
            |plan| plan.order[0].1 = false,
            |plan| plan.order.truncate(1),
            |plan| plan.columns.swap(0, 1),
            |plan| plan.hidden.push(0),
            |plan| plan.selection.scope = Scope::Own("somebody".to_owned()),
            |plan| plan.selection.search = Some("text".to_owned()),
            |plan| plan.paging.offset = 5_000,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut plan = planned("task", json!({}), "");
            change(&mut plan);
            assert!(!is_kept(&plan), "{number}");
        }
        let object = planned("task", json!({}), "").object;
        let get = |scope: Scope, for_update: bool| {
            let plan = RecordPlan { object: Arc::clone(&object), scope, id: Uuid::from_u128(1) };
            sql::get(Dialect::Sqlite, &plan, for_update)
        };
        let whole = String::from(get(Scope::All, false).sql);
        let own = get(Scope::Own("somebody".to_owned()), false);
        assert!(own.sql.contains("created_by\" = ?2") && own.params.len() == 2, "{}", own.sql);
        assert!(get(Scope::All, true).sql.contains("svc_rowid"));
        assert_eq!(String::from(get(Scope::All, false).sql), whole);
    }
}

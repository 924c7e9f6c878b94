use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::access::Scope;
use crate::condition::Condition;
use crate::plan::ListPlan;
use crate::sql::related::tests::{bound, planned};
use crate::sql::{
    Found, KeyRows, different_keys_of_page, first_of_list, keys_of_page, likely_of_list, list, list_of_first, next_of_list,
    rows_of_keys,
};
use crate::{Dialect, Param};

const SQLITE: Dialect = Dialect::Sqlite;

/// The statement that reads the keys of a page, and the maximum number of keys.
fn keys(object: &str, condition: Value, sort: &str) -> Option<(String, usize)> {
    let attempt = keys_of_page(SQLITE, &planned(object, condition, sort))?;
    Some((bound(SQLITE, attempt.statement), attempt.rows))
}

/// The statement that judges the first rows of a page, and the number of rows that the page needs.
fn first(object: &str, condition: Value, sort: &str) -> Option<(String, usize)> {
    let attempt = first_of_list(SQLITE, &planned(object, condition, sort))?;
    Some((bound(SQLITE, attempt.statement), attempt.rows))
}

#[test]
fn few_foreign_keys_are_merged() {
    let (read, most) = keys("task", json!({ "project": { "kind": 1 } }), "").expect("keys");
    assert!(read.starts_with("SELECT svc_related_1.\"id\" AS svc_key FROM \"project\"") && read.ends_with(" LIMIT 65"), "{read}");
    assert_eq!(most, 64);
    let plan = planned("task", json!({ "project": { "kind": 1 } }), "");
    let page = |keys: usize| list(SQLITE, &plan, Some(&Found::Keys((0..keys).map(|_| Uuid::nil()).collect())));
    for (keys, lists) in [(0, 1), (1, 1), (2, 2), (3, 4), (9, 16), (64, 64)] {
        let statement = page(keys);
        let nulls = statement.params.iter().filter(|param| matches!(param, Param::Uuid(None))).count();
        assert_eq!(nulls, lists - keys);
        let text = bound(SQLITE, statement);
        assert_eq!(text.matches("\"project_id\" = ?").count(), lists, "{text}");
        assert_eq!(text.matches(" UNION ALL ").count(), lists - 1, "{text}");
        assert!(text.contains("ORDER BY \"created_at\" DESC, \"id\" DESC LIMIT ") && !text.contains("EXISTS"), "{text}");
    }
    // Each list has all other tests.
    let narrowed = json!({ "state": "x", "project": { "kind": 1 } });
    assert_eq!(keys("task", narrowed.clone(), "").expect("keys").1, 16);
    let narrowed = planned("task", narrowed, "");
    let text = bound(SQLITE, list(SQLITE, &narrowed, Some(&Found::Keys(vec![Uuid::nil(); 3]))));
    assert_eq!(text.matches(" AND \"state\" = ?").count(), 4, "{text}");
}

#[test]
fn a_row_policy_is_in_each_list() {
    let in_state = |values: std::ops::Range<usize>| {
        let values: Vec<String> = values.map(|value| format!("s{value}")).collect();
        Condition::all(planned("task", json!({ "state": { "in": values } }), "").selection.conditions)
    };
    let mut plan = planned("task", json!({ "project": { "kind": 1 } }), "");
    plan.selection.scope = Scope::Where(Arc::new(in_state(0..2)));
    assert_eq!(keys_of_page(SQLITE, &plan).expect("keys").rows, 16);
    let text = bound(SQLITE, list(SQLITE, &plan, Some(&Found::Keys(vec![Uuid::nil(); 3]))));
    assert_eq!(text.matches("\"task\".\"state\" IN (").count(), 4, "{text}");
    // The statement is too long with many values.
    let many = (0..6).map(|part| in_state(part * 200..part * 200 + 200)).collect();
    plan.selection.scope = Scope::Where(Arc::new(Condition::any(many)));
    assert!(keys_of_page(SQLITE, &plan).is_none());
    // Rows of the caller are one test of one value.
    plan.selection.scope = Scope::Own("somebody".to_owned());
    assert_eq!(keys_of_page(SQLITE, &plan).expect("keys").rows, 64);
}

#[test]
fn keys_of_one_row_each_lead_to_a_page_in_any_order() {
    for sort in ["", "state", "-kind"] {
        let some = json!({ "task_by_project": { "some": { "kind": 1 } } });
        let (read, most) = keys("project", some.clone(), sort).expect("keys");
        assert!(read.contains("svc_related_1.\"project_id\" AS svc_key") && read.ends_with(" LIMIT 101"), "{read}");
        assert_eq!(most, 100);
        let text = bound(SQLITE, list(SQLITE, &planned("project", some, sort), Some(&Found::Keys(vec![Uuid::nil()]))));
        assert!(text.contains("WHERE \"id\" IN (SELECT value FROM json_each(?1)) ORDER BY "), "{text}");
    }
    assert!(keys("task", json!({ "tags": { "some": { "kind": 1 } } }), "state").is_some());
}

#[test]
fn keys_are_not_read_where_other_ways_may_be_shorter() {
    for (object, condition, sort) in [
        // No index finds the related rows, or it finds too many.
        ("task", json!({ "project": { "state": "x" } }), ""),
        ("task", json!({ "project": { "kind": 1, "state": "x" } }), ""),
        ("project", json!({ "task_by_project": { "some": { "state": "x" } } }), ""),
        // The rows of a key are not in the order of the page.
        ("task", json!({ "project": { "kind": 1 } }), "kind"),
        ("task", json!({ "project": { "kind": 1 } }), "id"),
        // Another index leads to the rows.
        ("task", json!({ "kind": 1, "project": { "kind": 1 } }), ""),
        ("task", json!({ "code": "x", "project": { "kind": 1 } }), ""),
        ("task", json!({ "created_by": "x", "project": { "kind": 1 } }), ""),
        // Only one row, or no condition on related rows.
        ("task", json!({ "project": { "code": "x" } }), ""),
        ("task", json!({ "state": "x" }), ""),
        ("project", json!({ "task_by_project": { "none": { "kind": 1 } } }), ""),
    ] {
        assert!(keys(object, condition.clone(), sort).is_none(), "{object} {condition} {sort}");
    }
    assert!(keys_of_page(Dialect::Postgres, &planned("task", json!({ "project": { "kind": 1 } }), "")).is_none());
}

#[test]
fn different_keys_are_read_until_there_are_many() {
    for (object, condition, related, name) in [
        ("label", json!({ "tags": { "some": { "kind": 1 } } }), 1, "task"),
        ("task", json!({ "tags": { "some": { "kind": 1 } } }), 3, "label"),
        ("project", json!({ "task_by_project": { "some": { "kind": 1 } } }), 1, "task"),
    ] {
        for sort in ["", "state"] {
            let attempt = different_keys_of_page(SQLITE, &planned(object, condition.clone(), sort)).expect("keys");
            assert_eq!(attempt.rows, 100);
            // As many keys are read as one related row in a hundred, and one more shows whether there are more.
            assert_eq!(attempt.statement.params.last(), Some(&Param::BigInteger(Some(related))));
            let text = bound(SQLITE, attempt.statement);
            let most = "max(1000, (SELECT coalesce(sum(rows), 0) FROM svc_counts WHERE object_id = ?3) / 100)";
            // If the related rows alone are more, only one key is read.
            let test = "(svc_counted.\"kind\" IS NULL) = 0 AND svc_counted.\"kind\" = ?2";
            let counted = format!("SELECT 1 FROM \"{name}\" AS svc_counted WHERE {test} LIMIT {most} + 1");
            let read = format!("CASE WHEN (SELECT count(*) FROM ({counted})) > {most} THEN 0 ELSE {most} END");
            assert!(text.starts_with(&format!("SELECT DISTINCT svc_key, row_number() OVER () > {read} AS ")), "{text}");
            assert!(text.ends_with(&format!(" LIMIT {read} + 1) LIMIT 101")), "{text}");
        }
    }
    for (object, condition) in [
        // A foreign key is the id of one related row.
        ("task", json!({ "project": { "kind": 1 } })),
        // No keys are read at all.
        ("project", json!({ "task_by_project": { "some": { "state": "x" } } })),
        ("label", json!({ "kind": 1, "tags": { "some": { "kind": 1 } } })),
        ("label", json!({ "tags": { "none": { "kind": 1 } } })),
    ] {
        assert!(different_keys_of_page(SQLITE, &planned(object, condition.clone(), "")).is_none(), "{object} {condition}");
    }
    let plan = planned("label", json!({ "tags": { "some": { "kind": 1 } } }), "");
    assert!(different_keys_of_page(Dialect::Postgres, &plan).is_none());
}

#[test]
fn rows_of_foreign_keys_are_counted_where_they_can_be_too_many() {
    for condition in [
        json!({ "project": { "kind": 1 } }),
        json!({ "project": { "kind": 1 }, "_or": [{ "state": "x" }, { "project": { "state": "x" } }] }),
    ] {
        let mut plan = planned("task", condition.clone(), "");
        let statement = rows_of_keys(SQLITE, &plan).expect("a statement");
        assert_eq!(statement.params.last(), Some(&Param::BigInteger(Some(1))), "the object whose rows are counted");
        let text = bound(SQLITE, statement);
        for part in [
            "SELECT svc_keys, CASE WHEN svc_keys > 100 THEN (SELECT count(*) FROM (SELECT 1 FROM (SELECT svc_related_",
            " LIMIT 64) AS svc_first CROSS JOIN \"task\" AS svc_of_first ON svc_of_first.\"project_id\" = ",
            " = svc_first.svc_key LIMIT 4000)) ELSE 0 END, (SELECT coalesce(sum(rows), 0) FROM svc_counts ",
            " FROM (SELECT count(*) AS svc_keys FROM (SELECT svc_related_1.\"id\" AS svc_key FROM ",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.ends_with(" LIMIT 1000 + 1))") && !text.contains("MATERIALIZED") && !text.contains("ORDER BY"), "{text}");
        assert!(rows_of_keys(Dialect::Postgres, &plan).is_none());
        plan.paging.offset = 6_641;
        assert!(rows_of_keys(SQLITE, &plan).is_none(), "no number of first rows is enough");
    }
    for (object, condition, sort) in [
        // Other tests narrow the rows, or the rows have many related rows, or the page has another order.
        ("task", json!({ "state": "x", "project": { "kind": 1 } }), ""),
        ("task", json!({ "project": { "kind": 1 }, "tags": { "none": { "state": "x" } } }), ""),
        ("task", json!({ "project": { "kind": 1 } }), "kind"),
        ("task", json!({ "project": { "state": "x" } }), ""),
        ("project", json!({ "task_by_project": { "some": { "kind": 1 } } }), ""),
        ("label", json!({ "tags": { "some": { "kind": 1 } } }), ""),
    ] {
        assert!(rows_of_keys(SQLITE, &planned(object, condition.clone(), sort)).is_none(), "{object} {condition} {sort}");
    }
}

#[test]
fn more_first_rows_are_judged_if_they_are_likely_to_fill_the_page() {
    let mut plan = planned("task", json!({ "project": { "kind": 1 } }), "");
    let likely = |plan: &ListPlan, keys: i64, rows_of_first: i64, rows: i64| {
        likely_of_list(SQLITE, plan, KeyRows { keys, rows_of_first, rows })
    };
    let attempt = likely(&plan, 1000, 640, 1_000_000).expect("first rows");
    assert_eq!(attempt.rows, 26);
    let text = bound(SQLITE, attempt.statement);
    let by_list = r#" LIMIT 8192) AS "task" WHERE +"task"."project_id" IN (SELECT svc_related_1."id" AS svc_key FROM "project""#;
    let begin = "SELECT svc_rowid FROM (SELECT svc_rowid FROM (SELECT svc_rowid, ";
    assert!(text.starts_with(begin) && text.contains(by_list) && text.ends_with(" LIMIT 8192)) < 8192 LIMIT ?2"), "{text}");
    for (keys, rows_of_first, rows) in [
        // The keys have few rows, or are so few that their rows were not counted.
        (1000, 64, 1_000_000),
        (400, 640, 100_000),
        (100, 0, 1_000_000),
        (0, 0, 0),
        // There are more keys than are counted.
        (1001, 640, 1_000_000),
        // The page is full among the rows that were judged before.
        (1000, 640, 20_000),
        // One row in a thousand has one of the keys.
        (1000, 640, 10_000_000),
    ] {
        assert!(likely(&plan, keys, rows_of_first, rows).is_none(), "{keys} {rows_of_first} {rows}");
    }
    // The rows that the page skips count as well.
    plan.paging.offset = 30;
    assert!(likely(&plan, 1000, 640, 1_000_000).is_some());
    plan.paging.offset = 300;
    assert!(likely(&plan, 1000, 640, 1_000_000).is_none());
}

#[test]
fn the_first_rows_of_a_page_are_judged_by_row() {
    for (object, condition, sort, judged) in [
        ("task", json!({ "project": { "kind": 1 } }), "", 250),
        ("task", json!({ "project": { "state": "x" } }), "kind", 250),
        ("task", json!({ "_or": [{ "project": { "kind": 1 } }, { "project": { "kind": 2 } }] }), "", 250),
        ("project", json!({ "task_by_project": { "some": { "state": "x" } } }), "", 100),
        ("task", json!({ "tags": { "some": { "state": "x" } } }), "id", 100),
        ("task", json!({ "project.task_by_project": { "some": { "state": "x" } } }), "", 100),
        ("project", json!({ "task_by_project": { "none": { "state": "x" } } }), "", 100),
        ("task", json!({ "tags": { "none": { "state": "x" } } }), "", 100),
    ] {
        let (read, rows) = first(object, condition.clone(), sort).expect("first rows");
        assert_eq!(rows, 26);
        assert!(read.contains(&format!("LIMIT {judged}) AS \"{object}\" WHERE ")) && read.contains("EXISTS (SELECT"), "{read}");
        assert!(!read.contains("WITH") && !read.contains(" IN ("), "{read}");
        // If the object has fewer rows, the page ends before it is full.
        let count = format!(" UNION ALL SELECT 0 WHERE (SELECT count(*) FROM (SELECT 1 FROM \"{object}\" ORDER BY ");
        assert!(read.contains(&count) && read.contains(&format!(" LIMIT {judged})) < {judged} LIMIT ?")), "{read}");
    }
    // It also ends if an index finds the rows that the other tests leave, and these are fewer.
    for (object, condition, judged) in [
        ("task", json!({ "kind": 1, "project": { "state": "x" } }), 250),
        ("project", json!({ "kind": 1, "task_by_project": { "some": { "state": "x" } } }), 100),
    ] {
        let (read, rows) = first(object, condition, "").expect("first rows");
        assert_eq!(rows, 26);
        let own = format!("FROM \"{object}\" WHERE (\"kind\" IS NULL) = 0 AND \"kind\" = ?1 ");
        let order = r#"ORDER BY "created_at" DESC, "id" DESC "#;
        let count = format!("(SELECT count(*) FROM (SELECT 1 {own}{order}LIMIT {judged}))");
        let end = format!(" LIMIT ?3 OFFSET ?4) UNION ALL SELECT 0 WHERE {count} < {judged} LIMIT ?3");
        assert!(read.contains(&format!("{own}ORDER BY ")) && read.ends_with(&end), "{read}");
    }
    // To count the rows that other tests leave, the statement would read all rows.
    assert!(!first("task", json!({ "state": "x", "project": { "state": "x" } }), "").expect("first rows").0.contains("UNION"));
    let mut own = planned("task", json!({ "project": { "state": "x" } }), "");
    own.selection.scope = Scope::Own("somebody".to_owned());
    assert!(!first_of_list(SQLITE, &own).expect("first rows").statement.sql.contains("UNION"));
    // An index leads to few linked rows, or a single row, or to the rows of one key; or the order has no index.
    for (object, condition, sort) in [
        ("task", json!({ "tags": { "some": { "kind": 1 } } }), ""),
        ("task", json!({ "project": { "code": "x" } }), ""),
        ("task", json!({ "code": "x", "project": { "kind": 1 } }), ""),
        ("task", json!({ "project": { "kind": 1 } }), "state"),
        ("project", json!({ "task_by_project": { "none": { "kind": 1 } } }), ""),
    ] {
        assert!(first(object, condition.clone(), sort).is_none(), "{object} {condition} {sort}");
    }
    let plan = planned("task", json!({ "project": { "kind": 1 } }), "");
    let text = bound(SQLITE, list(SQLITE, &plan, Some(&Found::Places(vec![3, 1]))));
    assert!(text.contains("FROM (SELECT value AS svc_place FROM json_each(?1)) AS svc_page CROSS JOIN \"task\""), "{text}");
    assert!(!text.contains("ORDER BY") && !text.contains("EXISTS"), "{text}");
}

#[test]
fn the_next_rows_are_judged_if_half_of_the_page_was_among_the_first_ones() {
    let next = |plan: &ListPlan, met: usize| {
        let attempt = next_of_list(SQLITE, plan, met)?;
        Some((bound(SQLITE, attempt.statement), attempt.rows))
    };
    let mut plan = planned("project", json!({ "task_by_project": { "none": { "state": "x" } } }), "");
    for (met, missing, judged) in [(25, 1, 64), (22, 4, 64), (16, 10, 64), (15, 11, 128), (13, 13, 128)] {
        let (read, rows) = next(&plan, met).expect("the next rows");
        assert_eq!(rows, missing);
        let (order, all) = ("ORDER BY \"created_at\" DESC, \"id\" DESC", 100 + judged);
        let after = format!(" FROM \"project\" {order} LIMIT {judged} OFFSET 100) AS \"project\" WHERE ");
        // The page skips no rows any more. The first rows are skipped, so no EXISTS may be without a limit.
        let count = format!("(SELECT count(*) FROM (SELECT 1 FROM \"project\" {order} LIMIT {all}))");
        let end = format!(" LIMIT 1) LIMIT ?2) UNION ALL SELECT 0 WHERE {count} < {all} LIMIT ?2");
        assert!(read.contains(&after) && read.ends_with(&end), "{read}");
        assert_eq!((read.matches("EXISTS (").count(), read.matches(" LIMIT 1)").count()), (1, 1), "{read}");
    }
    for met in [0, 12, 26] {
        assert!(next(&plan, met).is_none(), "{met}");
    }
    // The rows that the page skips were among the first ones as well, if any row of the page was.
    plan.paging.offset = 30;
    assert!(next(&plan, 5).is_some_and(|(read, rows)| rows == 21 && read.contains(" LIMIT 64 OFFSET 100)")));
    assert!(next(&plan, 0).is_none());

    // To judge a row takes little time if it has one related row at most.
    let to_one = planned("task", json!({ "project": { "state": "x" } }), "");
    for (met, judged) in [(25, 64), (20, 256), (13, 512)] {
        let (read, _) = next(&to_one, met).expect("the next rows");
        assert!(read.contains(&format!(" LIMIT {judged} OFFSET 250) AS \"task\" WHERE ")), "{read}");
    }
    // The first rows are skipped inside the inner SELECT, so no EXISTS of a row policy may be without a limit there.
    let mut policed = planned("task", json!({ "project": { "state": "x" } }), "");
    let policy = planned("task", json!({ "tags": { "some": { "state": "y" } } }), "").selection.conditions;
    policed.selection.scope = Scope::Where(Arc::new(Condition::all(policy)));
    let (read, _) = next(&policed, 20).expect("the next rows");
    let inner = " LIMIT 1) ORDER BY \"created_at\" DESC, \"id\" DESC LIMIT 256 OFFSET 250) AS \"task\" WHERE EXISTS (";
    assert!(read.contains(" FROM \"task\" WHERE EXISTS (") && read.contains(inner), "{read}");
    assert_eq!((read.matches("EXISTS (").count(), read.matches(" LIMIT 1)").count()), (2, 2), "{read}");
    // The page ends before it is full if an index shows that there are no further rows.
    let narrowed = planned("project", json!({ "kind": 1, "task_by_project": { "some": { "state": "x" } } }), "");
    let (read, _) = next(&narrowed, 22).expect("the next rows");
    assert!(read.contains(" LIMIT 64 OFFSET 100) AS ") && read.ends_with(" LIMIT 164)) < 164 LIMIT ?3"), "{read}");
    assert!(next_of_list(Dialect::Postgres, &plan, 22).is_none());
}

#[test]
fn postgres_reads_a_page_among_its_first_rows() {
    let first = |dialect: Dialect, object: &str, condition: Value, sort: &str| {
        let attempt = list_of_first(dialect, &planned(object, condition, sort))?;
        Some((bound(dialect, attempt.statement), attempt.rows))
    };
    let some = json!({ "task_by_project": { "some": { "state": "x" } } });
    for (object, condition, sort, judged, tests) in [
        ("task", json!({ "project": { "state": "x" } }), "", 250, 1),
        ("task", json!({ "state": "x", "project": { "kind": { "neq": 1 } } }), "kind", 250, 1),
        ("task", json!({ "project.code": { "neq": "x" } }), "", 250, 0),
        ("task", json!({ "project": { "state": "x" }, "tags": { "none": { "kind": 1 } } }), "", 100, 2),
        ("task", json!({ "project": some }), "", 100, 2),
        ("project", some.clone(), "", 100, 1),
    ] {
        let (read, rows) = first(Dialect::Postgres, object, condition.clone(), sort).expect("first rows");
        assert_eq!(rows, 26);
        // The first rows are taken before any test, and no test can become a list of all related rows.
        assert!(read.contains(&format!(" FROM (SELECT * FROM \"{object}\" ORDER BY ")), "{read}");
        assert!(read.contains(&format!(" LIMIT {judged}) AS \"{object}\" WHERE ")), "{read}");
        assert_eq!((read.matches("EXISTS (").count(), read.matches(" OFFSET 0)").count()), (tests, tests), "{read}");
        assert!(read.ends_with(" DESC LIMIT 26 OFFSET 0") || sort == "kind", "{read}");
        assert!(!read.contains("generate_series"), "{read}");
        assert!(first(SQLITE, object, condition.clone(), sort).is_none());
        assert!(first_of_list(Dialect::Postgres, &planned(object, condition, sort)).is_none());
    }
    // An index leads to few rows, or no relation is followed, or the order has no index.
    for (condition, sort) in [
        (json!({ "project": { "kind": 1 } }), ""),
        (json!({ "project": { "code": "x" } }), ""),
        (json!({ "kind": 1, "project": { "state": "x" } }), ""),
        (json!({ "created_by": "x", "project": { "state": "x" } }), ""),
        (json!({ "tags": { "some": { "kind": 1, "state": "x" } } }), ""),
        (json!({ "state": "x" }), ""),
        (json!({ "project": { "state": "x" } }), "state"),
    ] {
        assert!(first(Dialect::Postgres, "task", condition.clone(), sort).is_none(), "{condition} {sort}");
    }
    // The page has to be among the judged rows, and its total is counted by another statement.
    let mut plan = planned("task", json!({ "project": { "state": "x" } }), "");
    plan.paging.offset = 224;
    assert!(list_of_first(Dialect::Postgres, &plan).is_some_and(|attempt| attempt.statement.sql.ends_with(" OFFSET 224")));
    plan.paging.offset = 225;
    assert!(list_of_first(Dialect::Postgres, &plan).is_none());
    (plan.paging.offset, plan.with_count) = (0, true);
    assert!(list_of_first(Dialect::Postgres, &plan).is_none());
}

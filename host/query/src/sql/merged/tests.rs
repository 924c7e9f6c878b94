use serde_json::{Value, json};

use super::{list_of_keys, part_of_keys};
use crate::Dialect;
use crate::access::Scope;
use crate::cursor::Part;
use crate::sql::related::tests::{bound, planned};

fn read(condition: Value, sort: &str) -> Option<String> {
    let attempt = list_of_keys(Dialect::Postgres, &planned("task", condition, sort))?;
    assert_eq!(attempt.rows, 1);
    Some(bound(Dialect::Postgres, attempt.statement))
}

#[test]
fn the_first_rows_of_each_key_are_sorted() {
    for (sort, order) in [("", "DESC"), ("created_at", "ASC")] {
        let text = read(json!({ "project": { "kind": 1 } }), sort).expect("a statement");
        let found = "\"kind\" = $1 AND svc_related_1.\"kind\" >= $2 AND svc_related_1.\"kind\" <= $3) LIMIT 33)";
        assert!(text.starts_with("WITH svc_found AS MATERIALIZED (SELECT /* 2.1 */ ") && text.contains(found), "{text}");
        let first =
            format!("\"project_id\" = svc_found.svc_key ORDER BY \"created_at\" {order}, \"id\" {order} LIMIT 32) AS \"task\"");
        assert!(text.contains(&first), "{text}");
        let page = format!(
            " WHERE (SELECT count(*) FROM svc_found) <= 32 ORDER BY \"created_at\" {order}, \"id\" {order} LIMIT $4 OFFSET $5"
        );
        assert!(text.ends_with(&page) && !text.contains("generate_series"), "{text}");
    }
    // Other tests of the rows are in each list. They make it longer, so there are fewer keys.
    let text = read(json!({ "state": "x", "project": { "kind": 1 } }), "").expect("a statement");
    assert!(text.contains(" = svc_found.svc_key AND \"state\" = $4 ORDER BY ") && text.contains(" LIMIT 17)"), "{text}");
}

#[test]
fn the_more_rows_a_page_needs_the_fewer_keys_it_may_have() {
    let mut plan = planned("task", json!({ "project": { "kind": 1 } }), "");
    for (limit, offset, first, keys) in [(1, 0, 2, 64), (25, 0, 32, 32), (25, 99, 128, 8), (100, 149, 256, 4)] {
        (plan.paging.limit, plan.paging.offset) = (limit, offset);
        let text = bound(Dialect::Postgres, list_of_keys(Dialect::Postgres, &plan).expect("a statement").statement);
        assert!(
            text.contains(&format!(" LIMIT {})", keys + 1)) && text.contains(&format!(" LIMIT {first}) AS \"task\"")),
            "{text}"
        );
    }
    plan.paging.offset = 150;
    assert!(list_of_keys(Dialect::Postgres, &plan).is_none());
    assert!(part_of_keys(Dialect::Postgres, &plan, &Part::default(), 100).is_some_and(|attempt| attempt.rows == 1));
    assert!(part_of_keys(Dialect::Postgres, &plan, &Part::default(), 101).is_none());
}

#[test]
fn a_total_counts_the_rows_of_each_key() {
    let mut plan = planned("task", json!({ "project": { "kind": 1 } }), "");
    plan.with_count = true;
    let text = bound(Dialect::Postgres, list_of_keys(Dialect::Postgres, &plan).expect("a statement").statement);
    assert!(text.contains("), svc_page AS MATERIALIZED (/* 1.1 */ SELECT "), "{text}");
    let counted = "(SELECT count(*) AS svc_rows FROM \"task\" WHERE \"project_id\" = svc_found.svc_key)";
    let total = "CASE WHEN (SELECT count(*) FROM svc_page) = $4 THEN (SELECT CAST(sum(svc_rows) AS BIGINT) FROM svc_found ";
    assert!(text.contains(counted) && text.contains(total), "{text}");
    // A page by cursor reads its total by another statement.
    let part = part_of_keys(Dialect::Postgres, &plan, &Part::default(), 26).expect("a statement");
    assert!(!part.statement.sql.contains("svc_page"));
    // If the rows of the keys are tested, they may be many.
    let mut tested = planned("task", json!({ "state": "x", "project": { "kind": 1 } }), "");
    assert!(list_of_keys(Dialect::Postgres, &tested).is_some());
    tested.with_count = true;
    assert!(list_of_keys(Dialect::Postgres, &tested).is_none());
}

#[test]
fn links_to_one_row_have_the_keys() {
    let id = "0190a6e0-0000-7000-8000-000000000001";
    let of = |object: &str, condition: Value| {
        let attempt = list_of_keys(Dialect::Postgres, &planned(object, condition, ""))?;
        Some(bound(Dialect::Postgres, attempt.statement))
    };
    let some = |test: Value| json!({ "task": { "tags": { "some": test } } });
    let text = of("step", some(json!({ "id": id }))).expect("a statement");
    let found =
        "(SELECT source_id AS svc_key FROM svc_link_2 WHERE target_id = $1 AND target_id >= $1 AND target_id <= $1 LIMIT 33)";
    assert!(text.starts_with(&format!("WITH svc_found AS MATERIALIZED {found} ")), "{text}");
    for condition in [
        some(json!({ "kind": 1 })),
        some(json!({ "id": id, "kind": 1 })),
        json!({ "task": { "tags": { "none": { "id": id } } } }),
        json!({ "task": { "tags": { "some": { "id": id } }, "state": "x" } }),
    ] {
        assert!(of("step", condition.clone()).is_none(), "{condition}");
    }
}

#[test]
fn other_ways_may_be_shorter() {
    for (condition, sort) in [
        // No index finds the keys, or it may find many for one value.
        (json!({ "project": { "state": "x" } }), ""),
        (json!({ "project": { "kind": { "gt": 1 } } }), ""),
        (json!({ "project": { "kind": null } }), ""),
        (json!({ "project": { "kind": 1, "state": "x" } }), ""),
        (json!({ "project": { "kind": { "neq": 1 } } }), ""),
        (json!({ "tags": { "some": { "kind": 1 } } }), ""),
        // The rows of a key are not in the order of the page.
        (json!({ "project": { "kind": 1 } }), "kind"),
        (json!({ "project": { "kind": 1 } }), "id"),
        // Another index leads to the rows, or another condition follows a relation.
        (json!({ "kind": 1, "project": { "kind": 1 } }), ""),
        (json!({ "created_by": "x", "project": { "kind": 1 } }), ""),
        (json!({ "kind": { "lt": 1 }, "project": { "kind": 1 } }), ""),
        (json!({ "created_at": { "lt": "2026-01-01T00:00:00Z" }, "project": { "kind": 1 } }), ""),
        (json!({ "project": { "kind": 1 }, "tags": { "some": { "state": "x" } } }), ""),
        // At most one related row meets the condition.
        (json!({ "project": { "code": "x" } }), ""),
    ] {
        assert!(read(condition.clone(), sort).is_none(), "{condition} {sort}");
    }
    let mut plan = planned("task", json!({ "project": { "kind": 1 } }), "");
    assert!(list_of_keys(Dialect::Sqlite, &plan).is_none());
    plan.selection.scope = Scope::Own("somebody".to_owned());
    assert!(list_of_keys(Dialect::Postgres, &plan).is_none());
    plan.selection.scope = Scope::All;
    plan.selection.search = Some("x".to_owned());
    assert!(list_of_keys(Dialect::Postgres, &plan).is_none());
}

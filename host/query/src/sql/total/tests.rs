use serde_json::json;

use super::count;
use crate::Dialect;
use crate::access::Scope;
use crate::plan::{ListPlan, Selection};
use crate::sql::list;
use crate::sql::related::tests::{bound, planned};

const DIALECTS: [Dialect; 2] = [Dialect::Sqlite, Dialect::Postgres];

/// The two parts of a total by the excluded rows: all rows, and those that are subtracted.
const BY_EXCLUDED: [&str; 2] =
    ["SELECT CAST((SELECT coalesce(sum(rows), 0) FROM svc_counts WHERE object_id = ", ") AS BIGINT) - (SELECT count(*) FROM \""];

/// Whether a statement counts the excluded rows.
fn is_by_excluded(text: &str) -> bool {
    BY_EXCLUDED.iter().all(|part| text.contains(part))
}

/// The totals on both engines.
fn totals(plan: &ListPlan) -> [String; 2] {
    DIALECTS.map(|dialect| bound(dialect, count(dialect, &plan.object, &plan.selection)))
}

#[test]
fn a_total_is_the_number_of_all_rows_without_the_excluded_ones() {
    let plan = planned("project", json!({ "task_by_project": { "none": { "state": "x" } } }), "");
    let [sqlite, postgres] = totals(&plan);
    let stored = "SELECT CAST((SELECT coalesce(sum(rows), 0) FROM svc_counts WHERE object_id = ";
    let listed = r#"SELECT svc_related_1."project_id" AS svc_key FROM "task" AS svc_related_1 WHERE svc_related_1."state" = ?1"#;
    assert_eq!(
        sqlite,
        format!(r#"{stored}?2) AS BIGINT) - (SELECT count(*) FROM "project" WHERE "project"."id" IN ({listed}))"#)
    );
    let exists = concat!(
        r#"EXISTS (SELECT /* 1.1 */ 1 FROM "task" AS svc_related_1 WHERE svc_related_1."project_id" = "project"."id" "#,
        r#"AND svc_related_1."state" = $1)"#,
    );
    let planned = "($2 OR (SELECT count(*) FROM generate_series(1, 1000000000000) LIMIT 0) IS NULL)";
    assert_eq!(
        postgres,
        format!(r#"/* 2.1 */ {stored}$3) AS BIGINT) - (SELECT count(*) FROM "project" WHERE {exists} AND {planned})"#)
    );
    // On Postgres, the total of a full page comes with it.
    let mut counted = plan;
    counted.with_count = true;
    let page = bound(Dialect::Postgres, list(Dialect::Postgres, &counted, None));
    assert!(page.contains(&format!(" THEN ({stored}")) && page.ends_with(") END AS svc_total FROM svc_page"), "{page}");
    assert!(page.contains(" WHERE NOT EXISTS (") && page.contains(r#"FROM "project" WHERE EXISTS ("#), "{page}");
}

#[test]
fn a_stored_total_comes_with_the_rows_of_a_page() {
    for dialect in DIALECTS {
        let page = |plan: &ListPlan| bound(dialect, list(dialect, plan, None));
        for sort in ["", "state"] {
            let mut plan = planned("task", json!({}), sort);
            assert!(!page(&plan).contains("svc_counts"), "{}", page(&plan));
            plan.with_count = true;
            let text = page(&plan);
            let stored = "CAST((SELECT coalesce(sum(rows), 0) FROM svc_counts WHERE object_id = ";
            assert_eq!((text.matches(stored).count(), text.matches(") AS BIGINT) AS svc_total FROM ").count()), (1, 1), "{text}");
        }
        // SQLite counts other rows by a statement of its own.
        let mut narrowed = planned("task", json!({ "kind": 1 }), "");
        narrowed.with_count = true;
        assert_eq!(page(&narrowed).contains("svc_total"), dialect == Dialect::Postgres, "{}", page(&narrowed));
    }
}

#[test]
fn excluded_rows_are_counted_if_something_leads_to_them() {
    for (object, condition, [sqlite, postgres]) in [
        (
            "project",
            json!({ "task_by_project": { "every": { "state": "x" } } }),
            [r#""project"."id" IN (SELECT svc_related_1."project_id""#, r#"EXISTS (SELECT /* 1.1 */ 1 FROM "task""#],
        ),
        (
            "task",
            json!({ "project": { "kind": { "neq": 1 } } }),
            [r#""task"."project_id" IN (SELECT svc_related_1."id""#, r#"EXISTS (SELECT /* 2.1 */ 1 FROM "project""#],
        ),
        (
            "task",
            json!({ "_not": { "project": { "state": "x" } } }),
            [r#""task"."project_id" IN (SELECT svc_related_1."id""#, r#"EXISTS (SELECT /* 2.1 */ 1 FROM "project""#],
        ),
        (
            "task",
            json!({ "project.code": { "neq": "x" } }),
            [
                r#""task"."project_id" = (SELECT svc_related_1."id""#,
                r#""task"."project_id" = (SELECT /* 2.1 */ svc_related_1."id""#,
            ],
        ),
        (
            "task",
            json!({ "tags": { "none": { "kind": 1 } } }),
            [r#""task"."id" IN (SELECT svc_related_1_link.source_id"#, "EXISTS (SELECT /* 3.1 */ 1 FROM svc_link_2 AS"],
        ),
        ("task", json!({ "kind": { "neq": 1 } }), [r#""kind" = ?1"#, r#""kind" = $1"#]),
        ("task", json!({ "kind": { "nin": [1, 2] } }), [r#""kind" IN (?1, ?2)"#, r#""kind" IN ($1, $2)"#]),
        ("task", json!({ "code": { "neq": "x" } }), [r#""code" = ?1"#, r#""code" = $1"#]),
    ] {
        let texts = totals(&planned(object, condition.clone(), ""));
        for (text, part) in texts.iter().zip([sqlite, postgres]) {
            assert!(is_by_excluded(text) && text.contains(part), "{condition}: {text}");
            assert!(!text.contains("NOT EXISTS") && !text.contains("NOT IN"), "{condition}: {text}");
        }
    }
}

#[test]
fn other_totals_count_the_rows_themselves() {
    for (object, condition) in [
        ("task", json!({ "project": { "kind": 1 } })),
        ("task", json!({ "project": { "state": "x" } })),
        ("project", json!({ "task_by_project": { "some": { "state": "x" } } })),
        ("task", json!({ "kind": 1 })),
        // Nothing leads to the excluded rows.
        ("task", json!({ "state": { "neq": "x" } })),
        ("task", json!({ "_not": { "kind": { "gt": 1 } } })),
        ("task", json!({ "kind": { "is_not_null": true } })),
        ("task", json!({ "_or": [{ "state": { "neq": "x" } }, { "project": { "state": "x" } }] })),
        // The excluded rows meet several conditions.
        ("task", json!({ "_not": { "state": "y", "project": { "state": "x" } } })),
        ("task", json!({ "_not": { "kind": 1, "project": { "kind": 1 } } })),
        // Something else narrows the rows.
        ("task", json!({ "state": "y", "project": { "kind": { "neq": 1 } } })),
        ("project", json!({ "task_by_project": { "none": { "state": "x" }, "some": { "state": "y" } } })),
        ("task", json!({ "_and": [{ "kind": { "neq": 1 } }, { "id": { "is_not_null": true } }] })),
    ] {
        for text in totals(&planned(object, condition.clone(), "")) {
            assert!(!is_by_excluded(&text) && text.contains("SELECT count(*) FROM \""), "{condition}: {text}");
        }
    }
    let narrowed = |change: fn(&mut Selection)| {
        let mut plan = planned("task", json!({ "kind": { "neq": 1 } }), "");
        change(&mut plan.selection);
        totals(&plan)
    };
    let own = narrowed(|selection| selection.scope = Scope::Own("somebody".to_owned()));
    let searched = narrowed(|selection| selection.search = Some("text".to_owned()));
    let nothing = narrowed(|selection| selection.scope = Scope::Nothing);
    for text in own.iter().chain(&searched).chain(&nothing) {
        assert!(!is_by_excluded(text), "{text}");
    }
    assert!(totals(&planned("task", json!({}), "")).iter().all(|text| !is_by_excluded(text)));
}

/// A to-one relation whose test no index finds still leads by its foreign key.
#[test]
fn the_foreign_keys_of_the_related_rows_lead_to_a_total() {
    for test in [json!({ "kind": 1 }), json!({ "state": "x" })] {
        let [sqlite, _] = totals(&planned("task", json!({ "project": test }), ""));
        assert!(sqlite.contains(r#" WHERE "task"."project_id" IN (SELECT svc_related_1."id" AS svc_key "#), "{sqlite}");
    }
}

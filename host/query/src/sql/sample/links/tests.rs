use std::sync::Arc;

use serde_json::{Value, json};

use super::{LinkSample, link_sample};
use crate::access::Scope;
use crate::condition::Condition;
use crate::plan::{ListPlan, RelatedBy};
use crate::sql::related::tests::{bound, planned};
use crate::sql::{count, list, sample};
use crate::{Dialect, Statement};

const SQLITE: Dialect = Dialect::Sqlite;

fn sample_of(plan: &ListPlan) -> Option<Statement> {
    link_sample(SQLITE, &plan.object, &plan.selection)
}

fn tags(condition: Value) -> Value {
    json!({ "tags": condition })
}

#[test]
fn a_sample_reads_a_bounded_number_of_links() {
    for (object, related, near, far) in [("task", "label", "source_id", "target_id"), ("label", "task", "target_id", "source_id")]
    {
        for quantifier in ["some", "none"] {
            let statement = sample_of(&planned(object, tags(json!({ quantifier: { "state": "x" } })), "")).expect("a sample");
            let text = bound(SQLITE, statement);
            let first = format!(" WHERE svc_link.{near} = svc_taken.\"id\" LIMIT 16)");
            assert_eq!(text.matches(&first).count(), 2, "{text}");
            for part in [
                format!(" CROSS JOIN \"{related}\" AS svc_of_link ON svc_of_link.\"id\" = svc_link.{far} "),
                format!(" CROSS JOIN \"{object}\" AS svc_taken ON svc_taken.svc_rowid BETWEEN svc_run.svc_begin AND "),
                format!(" CROSS JOIN \"{related}\" AS svc_taken_related ON svc_taken_related.svc_rowid BETWEEN "),
                " >= 2000 AND (SELECT sum(CASE WHEN svc_taken_related.\"state\" = ?".to_owned(),
            ] {
                assert_eq!(text.matches(&part).count(), 1, "{part}: {text}");
            }
            assert!(text.ends_with(" LIMIT 48)"), "{text}");
            // A scan may sort only while the disk has room.
            assert!(!text.contains("MATERIALIZED") && !text.contains("ORDER BY"), "{text}");
        }
    }
}

#[test]
fn a_sample_of_links_is_taken_where_only_it_can_tell_the_way() {
    for condition in [
        tags(json!({ "some": { "state": "x" } })),
        tags(json!({ "every": { "state": "x" } })),
        tags(json!({ "none": { "state": "x", "kind": { "gt": 1 } } })),
        tags(json!({ "some": {} })),
        tags(json!({ "none": {} })),
    ] {
        let plan = planned("task", condition.clone(), "");
        assert!(sample_of(&plan).is_some(), "{condition}");
        assert!(sample(SQLITE, &plan.object, &plan.selection).is_none(), "{condition}");
        assert!(link_sample(Dialect::Postgres, &plan.object, &plan.selection).is_none());
    }
    for (object, condition) in [
        // An index finds the related rows.
        ("task", tags(json!({ "some": { "kind": 1 } }))),
        ("task", tags(json!({ "none": { "code": "x" } }))),
        // Other tests narrow the rows, or there are several conditions.
        ("task", json!({ "state": "x", "tags": { "some": { "state": "x" } } })),
        ("task", tags(json!({ "some": { "state": "x" }, "none": { "state": "y" } }))),
        // The condition is not on links, or it follows further relations.
        ("task", json!({ "project": { "state": "x" } })),
        ("project", json!({ "task_by_project": { "some": { "state": "x" } } })),
        ("label", tags(json!({ "some": { "project": { "state": "x" } } }))),
    ] {
        assert!(sample_of(&planned(object, condition.clone(), "")).is_none(), "{object} {condition}");
    }
    let mut own = planned("task", tags(json!({ "some": { "state": "x" } })), "");
    own.selection.scope = Scope::Own("somebody".to_owned());
    assert!(sample_of(&own).is_none());
}

#[test]
fn few_links_are_listed_and_many_are_read_by_each_row() {
    use RelatedBy::{Link, List, Row};
    for (taken, links, met, reads, late, rows, related_rows, by) in [
        // Each row has two links, and half of the related rows meet the condition.
        (48, 96, 48, 72, 0, 1_000_000, 1_000, Link),
        (48, 96, 48, 72, 0, 100_000, 1_000, Link),
        // All keys are kept in memory.
        (48, 96, 48, 72, 0, 10_000, 1_000, List),
        // Few links meet the condition, or none does.
        (48, 96, 10, 90, 0, 1_000_000, 1_000, List),
        (48, 96, 0, 96, 0, 1_000_000, 1_000, List),
        // To read all related rows takes longer than to find one for each row.
        (48, 768, 700, 60, 0, 1_000, 1_000_000, Row),
        // One row may have to read very many links.
        (48, 768, 700, 60, 1, 1_000, 1_000_000, List),
        // The links alone decide.
        (48, 96, 96, 48, 0, 1_000_000, 0, Link),
        // The sample is too small, or no links were read.
        (6, 12, 6, 9, 0, 1_000_000, 1_000, List),
        (0, 0, 0, 0, 0, 1_000_000, 1_000, List),
    ] {
        let sample = LinkSample { taken, links, met, reads, late, rows, related_rows };
        assert_eq!(sample.related_by(), by, "{sample:?}");
    }
}

#[test]
fn each_link_looks_for_its_related_row_in_a_list() {
    let links = "EXISTS (SELECT 1 FROM svc_link_2 AS svc_related_1_link WHERE svc_related_1_link.source_id = \"task\".\"id\"";
    let listed = " AND +svc_related_1_link.target_id IN (SELECT svc_related_1.\"id\" FROM \"label\" AS svc_related_1 WHERE ";
    let total = |plan: &ListPlan| bound(SQLITE, count(SQLITE, &plan.object, &plan.selection));
    for (quantifier, not) in [("some", " WHERE EXISTS ("), ("none", " WHERE NOT EXISTS (")] {
        let mut plan = planned("task", tags(json!({ quantifier: { "state": "x" } })), "state");
        plan.selection.related_by = RelatedBy::Link;
        // A total counts the rows that have such a label, also those that `none` excludes.
        for (text, not) in [(total(&plan), " WHERE EXISTS ("), (bound(SQLITE, list(SQLITE, &plan, None)), not)] {
            let test = format!("{links}{listed}svc_related_1.\"state\" = ?1))");
            assert!(text.contains(&test) && text.contains(not) && !text.contains("WITH"), "{text}");
        }
        // A page in the order of an index is usually full after few rows if most rows meet the condition. So it makes a list only
        // if it is late, or if most rows do not meet the condition.
        let mut page = planned("task", tags(json!({ quantifier: { "state": "x" } })), "");
        page.selection.related_by = RelatedBy::Link;
        for (offset, is_listed) in [(0, quantifier == "none"), (4_974, quantifier == "none"), (4_975, true)] {
            page.paging.offset = offset;
            let text = bound(SQLITE, list(SQLITE, &page, None));
            // Beside the offset, no EXISTS may be without a limit.
            let end = if offset == 0 { ")" } else { " LIMIT 1)" };
            let test = format!("{links}{listed}svc_related_1.\"state\" = ?1){end}");
            assert_eq!((text.contains(&test), text.contains(" IN (SELECT")), (is_listed, is_listed), "{offset}: {text}");
            assert!(text.contains(not) && text.contains(end) && !text.contains("WITH"), "{text}");
        }
        // By row, no page makes a list.
        page.selection.related_by = RelatedBy::Row;
        let text = bound(SQLITE, list(SQLITE, &page, None));
        assert!(text.contains(not) && !text.contains(" IN (SELECT") && !text.contains("WITH"), "{text}");
    }
    // The row policy of the related rows decides which of them are in the list, even if the condition has no test.
    for (condition, tests) in
        [(json!({}), "svc_related_1.\"kind\" > ?1))"), (json!({ "state": "x" }), "svc_related_1.\"kind\" > ?1 AND ")]
    {
        let mut plan = planned("task", tags(json!({ "some": condition })), "");
        let [Condition::Related(related)] = plan.selection.conditions.as_mut_slice() else { panic!("no relation") };
        let policy = planned("label", json!({ "kind": { "gt": 1 } }), "").selection.conditions;
        related.scope = Scope::Where(Arc::new(Condition::all(policy)));
        plan.selection.related_by = RelatedBy::Link;
        assert!(sample_of(&plan).is_some());
        let text = total(&plan);
        assert!(text.contains(links) && text.contains(listed) && text.contains(tests), "{text}");
    }
    // Without a policy and a test, the links alone decide.
    let mut all = planned("task", tags(json!({ "some": {} })), "");
    all.selection.related_by = RelatedBy::Link;
    let text = total(&all);
    assert!(text.contains(&format!("{links})")) && !text.contains(" IN (SELECT"), "{text}");
}

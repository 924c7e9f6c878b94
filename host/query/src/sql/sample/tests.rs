use std::sync::Arc;

use serde_json::{Value, json};

use super::{Sample, sample};
use crate::access::Scope;
use crate::condition::Condition;
use crate::plan::{ListPlan, RelatedBy};
use crate::sql::related::tests::{bound, planned};
use crate::sql::{count, list};
use crate::{Dialect, Param, Statement};

const SQLITE: Dialect = Dialect::Sqlite;

fn sample_of(plan: &ListPlan) -> Option<Statement> {
    sample(SQLITE, &plan.object, &plan.selection)
}

fn tasks(condition: Value) -> Value {
    json!({ "task_by_project": condition })
}

#[test]
fn a_sample_judges_a_bounded_number_of_rows() {
    for quantifier in ["some", "none"] {
        let statement = sample_of(&planned("project", tasks(json!({ quantifier: { "state": "x" } })), "")).expect("a sample");
        let numbers: Vec<Param> =
            statement.params.iter().filter(|param| matches!(param, Param::BigInteger(_))).cloned().collect();
        assert_eq!(numbers, [2, 1].map(|id| Param::BigInteger(Some(id))), "the objects whose rows are counted");
        let text = bound(SQLITE, statement);
        assert!(text.contains("svc_taken.\"state\" = ?") && text.contains("svc_of_key.\"state\" = ?"), "{text}");
        assert!(text.contains("svc_of_key.\"project_id\" = svc_taken.\"project_id\" LIMIT 32)"), "{text}");
        for part in ["json_each('[0,1,2,3,4,5,6,7,8,9,10,11]')", "BETWEEN svc_run.svc_begin AND svc_run.svc_begin + 3"] {
            assert_eq!(text.matches(part).count(), 2, "{part}: {text}");
        }
        assert!(text.contains(" * 8 >= count(*) AND (SELECT coalesce(sum(rows), 0) FROM svc_counts"), "{text}");
        // A scan may sort only while the disk has room.
        assert!(!text.contains("MATERIALIZED") && !text.contains("ORDER BY"), "{text}");
    }
}

#[test]
fn a_sample_is_taken_where_only_it_can_tell_the_way() {
    for condition in [
        tasks(json!({ "some": { "state": "x" } })),
        tasks(json!({ "every": { "state": "x" } })),
        tasks(json!({ "none": { "state": "x", "kind": { "gt": 1 } } })),
        tasks(json!({ "some": { "_or": [{ "state": "x" }, { "kind": 1 }] } })),
        tasks(json!({ "some": {} })),
        tasks(json!({ "none": {} })),
    ] {
        let plan = planned("project", condition.clone(), "");
        assert!(sample_of(&plan).is_some(), "{condition}");
        assert!(sample(Dialect::Postgres, &plan.object, &plan.selection).is_none());
    }
    for (object, condition) in [
        // An index finds the related rows.
        ("project", tasks(json!({ "some": { "kind": 1 } }))),
        ("project", tasks(json!({ "none": { "kind": { "in": [1, 2] }, "state": "x" } }))),
        ("project", tasks(json!({ "some": { "_or": [{ "code": "x" }, { "kind": 1 }] } }))),
        ("project", tasks(json!({ "some": { "code": "x" } }))),
        ("project", tasks(json!({ "some": { "created_by": "x" } }))),
        // Other tests narrow the rows, or there are several conditions.
        ("project", json!({ "state": "x", "task_by_project": { "some": { "state": "x" } } })),
        ("project", tasks(json!({ "some": { "state": "x" }, "none": { "state": "y" } }))),
        ("project", json!({ "_or": [{ "state": "x" }, { "task_by_project": { "some": { "state": "x" } } }] })),
        // The condition is on one row, on links, or on further relations.
        ("task", json!({ "project": { "state": "x" } })),
        ("task", json!({ "tags": { "some": { "state": "x" } } })),
        ("project", tasks(json!({ "some": { "tags": { "some": { "state": "x" } } } }))),
        ("project", json!({ "state": "x" })),
    ] {
        assert!(sample_of(&planned(object, condition.clone(), "")).is_none(), "{object} {condition}");
    }
    // The statement contains the values several times.
    let values: Vec<String> = (0..1000).map(|value| value.to_string()).collect();
    let many = tasks(json!({ "some": { "state": { "nin": values }, "kind": { "gt": 1 } } }));
    assert!(sample_of(&planned("project", many, "")).is_none());
    let mut searched = planned("project", tasks(json!({ "some": { "state": "x" } })), "");
    searched.selection.search = Some("text".to_owned());
    assert!(sample_of(&searched).is_none());
}

#[test]
fn a_sample_counts_only_related_rows_that_the_caller_reads() {
    let sampled_within = |scope: Scope| {
        let mut plan = planned("project", tasks(json!({ "some": { "state": "x" } })), "");
        let [Condition::Related(related)] = plan.selection.conditions.as_mut_slice() else { panic!("no relation") };
        related.scope = scope;
        sample_of(&plan).map(|statement| bound(SQLITE, statement))
    };
    let policy = |condition: Value| Scope::Where(Arc::new(Condition::all(planned("task", condition, "").selection.conditions)));
    let text = sampled_within(policy(json!({ "kind": { "gt": 1 } }))).expect("a sample");
    for alias in ["svc_taken", "svc_of_key"] {
        assert!(text.contains(&format!("{alias}.\"kind\" > ?")) && text.contains(&format!("{alias}.\"state\" = ?")), "{text}");
    }
    // An index finds the rows of a policy, or the policy reads further rows.
    assert!(sampled_within(policy(json!({ "kind": 1 }))).is_none());
    assert!(sampled_within(policy(json!({ "project": { "state": "x" } }))).is_none());
    assert!(sampled_within(Scope::Own("somebody".to_owned())).is_none());
    assert!(sampled_within(Scope::Nothing).is_none());
    // The same for the rows of the list itself.
    let mut own = planned("project", tasks(json!({ "some": { "state": "x" } })), "");
    own.selection.scope = Scope::Own("somebody".to_owned());
    assert!(sample_of(&own).is_none());
}

#[test]
fn rows_are_judged_by_row_if_most_of_them_stop_early() {
    use RelatedBy::{List, Row};
    for (taken, met, late, rows, related_rows, by) in [
        // Half of the related rows meet the condition, and each row has ten or a thousand of them.
        (48, 24, 0, 1_000, 10_000, Row),
        (48, 24, 0, 1_000, 1_000_000, Row),
        // All of them do.
        (48, 48, 0, 1_000, 4_000, Row),
        // Few or none do, so each row would read all its related rows.
        (48, 5, 48, 1_000, 10_000, List),
        (48, 8, 32, 1_000, 10_000, List),
        (48, 0, 48, 1_000, 10_000, List),
        // Those that do belong to few rows, and the other rows have many related rows.
        (48, 10, 38, 1_000, 100_000, List),
        (48, 24, 24, 1_000, 100_000, List),
        // A list has more different keys than the memory holds. This only matters if many related rows meet the condition.
        (48, 24, 9, 100_000, 1_000_000, Row),
        (48, 8, 40, 100_000, 1_000_000, List),
        // There are far fewer related rows than rows.
        (48, 24, 0, 100_000, 10_000, List),
        // The sample is too small, or there are no related rows.
        (6, 6, 0, 1_000, 10_000, List),
        (0, 0, 0, 1_000, 0, List),
    ] {
        assert_eq!(
            Sample { taken, met, late, rows, related_rows }.related_by(),
            by,
            "{taken} {met} {late} {rows} {related_rows}"
        );
    }
}

#[test]
fn each_way_is_written_as_it_was_decided() {
    // A total counts the rows that have such a task, also those that `none` excludes.
    let listed = "\"project\".\"id\" IN (SELECT";
    for (quantifier, tests) in [("some", [listed; 2]), ("none", [listed, "\"project\".\"id\" NOT IN (SELECT"])] {
        for sort in ["", "state"] {
            let mut plan = planned("project", tasks(json!({ quantifier: { "state": "x" } })), sort);
            let written = |plan: &ListPlan| {
                [count(SQLITE, &plan.object, &plan.selection), list(SQLITE, plan, None)].map(|statement| bound(SQLITE, statement))
            };
            for (text, test) in written(&plan).iter().zip(tests) {
                assert!(text.contains(test), "{text}");
            }
            plan.selection.related_by = RelatedBy::Row;
            for text in written(&plan) {
                assert!(text.contains("EXISTS (SELECT 1 FROM \"task\"") && !text.contains(" IN (SELECT"), "{text}");
                assert!(!text.contains("WITH") && !text.contains("CASE"), "{text}");
            }
        }
    }
}

use std::sync::Arc;

use blockbase_schema::{Registry, StoredObject};
use serde_json::{Value, json};

use crate::access::{Action, Bounds, Clause, Decision, FieldList, Fields, Grant, GrantContext, Permissions, Shapes};
use crate::condition::Variables;
use crate::plan::ListPlan;
use crate::sql::related::tests::{bound, registry};
use crate::{Dialect, ListRequest, Reading, sql};

/// The statement of a list of `task` on Postgres, without the comment at its beginning. It binds as many values as it names.
fn written(parameters: &[(&str, &str)]) -> String {
    written_for(json!([{ "resource": "task", "actions": ["read"] }]), parameters)
}

/// The statement for a caller who has these grants.
fn written_for(grants: Value, parameters: &[(&str, &str)]) -> String {
    let fields = json!([{ "name": "title", "type": "text" }, { "name": "rank", "type": "integer" }]);
    let definition = serde_json::from_value(json!({ "name": "task", "fields": fields })).expect("a definition");
    let task = StoredObject { id: 1, revision: 1, keys: vec![1, 2], definition, since: Default::default() };
    let registry = Registry::new(1, vec![task], Vec::new()).expect("a registry");
    let permissions = Permissions::new(serde_json::from_value(grants).expect("grants"), None);
    let shapes = Shapes::default();
    let grant_context = GrantContext { registry: &registry, now: 0, shapes: &shapes };
    let whole = registry.object("task").expect("an object");
    let decision = permissions.decide("task", Action::Read).expect("a right");
    let access = permissions.decided_on(decision, &grant_context, whole, Action::Read);
    let request = ListRequest::from_parameters(parameters.iter().copied()).expect("a request");
    let reading = Reading {
        registry: &registry,
        decide: &|_| Ok(access.clone()),
        variables: &Variables::default,
        bounds: Bounds::of_request(),
    };
    let object = access.seen().map_or_else(|| Arc::clone(whole), |seen| Arc::clone(&seen.object));
    let plan = ListPlan::new(&object, &access, &request, &reading, Vec::new()).expect("a plan");
    let statement = sql::list(Dialect::Postgres, &plan, None);
    for number in 1..=statement.params.len() {
        assert!(statement.sql.contains(&format!("${number}")), "{number} of {}", statement.sql);
    }
    assert!(!statement.sql.contains(&format!("${}", statement.params.len() + 1)), "{}", statement.sql);
    statement.sql.replace("/* 1.1 */ ", "")
}

#[test]
fn a_page_far_from_the_first_row_is_read_by_ids() {
    let ids = r#" FROM "task" WHERE "id" = ANY(ARRAY(SELECT "id" FROM "task" ORDER BY "created_at" DESC, "id" DESC LIMIT"#;
    let far = written(&[("offset", "5000"), ("select", "id,rank")]);
    assert!(far.contains(ids), "{far}");
    assert!(far.ends_with(r#" OFFSET $3)) ORDER BY "created_at" DESC, "id" DESC"#), "{far}");
    assert!(far.starts_with(r#"SELECT "id", "rank", CAST((SELECT coalesce(sum(rows), 0) FROM svc_counts"#), "{far}");
    // The total is counted beside it.
    let filtered = written(&[("offset", "5000"), ("rank", "1")]);
    assert_eq!(filtered.matches("ARRAY(SELECT").count(), 1, "{filtered}");
    assert!(filtered.starts_with("WITH svc_page AS MATERIALIZED (SELECT "), "{filtered}");
    assert!(filtered.ends_with(" END AS svc_total FROM svc_page"), "{filtered}");
    let near = written(&[("offset", "4999")]);
    assert!(!near.contains("ARRAY("), "{near}");
}

#[test]
fn hidden_cells_are_never_read_by_ids() {
    // The caller reads `rank` only in some rows.
    let grants = json!([
        { "resource": "task", "actions": ["read"], "fields": { "read": ["#1:1"] } },
        { "resource": "task", "actions": ["read"], "where": { "#1:1": "a" } },
    ]);
    let far = written_for(grants, &[("offset", "5000")]);
    assert!(!far.contains("ARRAY(") && far.contains("CASE WHEN"), "{far}");
}

/// The statement of a list of `task`, for a caller who reads the codes of all tasks, and the other fields and the links only of
/// tasks with a certain label.
fn seen_by_labels(dialect: Dialect, parameters: &[(&str, &str)]) -> String {
    let registry = registry();
    let whole = registry.object("task").expect("an object");
    let labelled = Clause::new(r#"{"tags":{"some":{"kind":1}}}"#).numbered(&registry, whole).expect("a condition");
    let codes = Fields { read: Some(FieldList::Only(["code".to_owned()].into())), write: None };
    let codes = codes.numbered(&registry, whole).expect("a list");
    let reads = || Grant::new("task", vec![Action::Read], None);
    let grants = vec![Grant { fields: Some(codes), ..reads() }, Grant { rows: Some(labelled), ..reads() }];
    let shapes = Shapes::default();
    let decision = Permissions::new(grants, None).decide("task", Action::Read).expect("a right");
    let access = decision.on(&GrantContext { registry: &registry, now: 0, shapes: &shapes }, whole);
    let object = Arc::clone(&access.seen().expect("some fields").object);
    let every_label = Permissions::unrestricted().decide("label", Action::Read).and_then(Decision::plain).expect("a right");
    let reading = Reading {
        registry: &registry,
        decide: &|_| Ok(every_label.clone()),
        variables: &Variables::default,
        bounds: Bounds::of_request(),
    };
    let request = ListRequest::from_parameters(parameters.iter().copied()).expect("a request");
    let plan = ListPlan::new(&object, &access, &request, &reading, Vec::new()).expect("a plan");
    bound(dialect, sql::list(dialect, &plan, None))
}

#[test]
fn a_rule_about_links_tests_the_links_of_every_row() {
    // SQLite reads a sorted page by places, and then its rows. Postgres reads the page, and counts.
    for dialect in [Dialect::Sqlite, Dialect::Postgres] {
        for (condition, names_links) in [("{}", false), (r#"{"tags":{"none":{"kind":2}}}"#, true)] {
            let text = seen_by_labels(dialect, &[("sort", "code"), ("where", condition)]);
            let masked = r#" THEN "task"."id" END AS "svc_link_2_source""#;
            let rules: Vec<&str> = text.split_inclusive(masked).filter(|part| part.ends_with(masked)).collect();
            assert_eq!(rules.len(), 2, "{text}");
            for rule in rules {
                let (_, rule) = rule.rsplit_once("CASE WHEN ").expect("a rule");
                // The masked column is the source's own, so the rule inside of the source cannot name it.
                assert_eq!(rule.matches("svc_link_2_source").count(), 1, "{rule}: {text}");
                assert!(rule.contains("svc_link_2 AS ") && rule.contains(r#" = "task"."id""#), "{rule}: {text}");
            }
            // The caller's own condition sees only the links that the caller may read.
            assert_eq!(text.contains(r#""task"."svc_link_2_source""#), names_links, "{text}");
        }
    }
}

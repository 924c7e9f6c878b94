use std::sync::Arc;

use blockbase_schema::{Registry, StoredObject};
use serde_json::{Value, json};

use crate::access::{Action, Bounds, GrantContext, Permissions, Shapes};
use crate::condition::Variables;
use crate::plan::ListPlan;
use crate::{Dialect, ListRequest, Reading, sql};

/// The statement of a list of `task` on Postgres, without the comment at its beginning. It binds as many values as it names.
fn written(parameters: &[(&str, &str)]) -> String {
    written_for(json!([{ "resource": "task", "actions": ["read"] }]), parameters)
}

/// The statement for a caller who has these grants.
fn written_for(grants: Value, parameters: &[(&str, &str)]) -> String {
    let fields = json!([{ "name": "title", "type": "text" }, { "name": "rank", "type": "integer" }]);
    let definition = serde_json::from_value(json!({ "name": "task", "fields": fields })).expect("a definition");
    let task = StoredObject { id: 1, revision: 1, keys: vec![1, 2], definition };
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
    assert!(far.starts_with(r#"SELECT "id", "rank", (SELECT CAST(coalesce(sum(rows), 0) AS BIGINT) FROM svc_counts"#), "{far}");
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
        { "resource": "task", "actions": ["read"], "fields": { "read": ["title"] } },
        { "resource": "task", "actions": ["read"], "where": { "title": "a" } },
    ]);
    let far = written_for(grants, &[("offset", "5000")]);
    assert!(!far.contains("ARRAY(") && far.contains("CASE WHEN"), "{far}");
}

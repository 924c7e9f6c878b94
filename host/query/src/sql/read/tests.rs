use std::sync::Arc;

use blockbase_schema::{Registry, StoredObject};
use serde_json::json;

use crate::access::{Action, Bounds, Decision, Permissions};
use crate::condition::Variables;
use crate::plan::ListPlan;
use crate::{Dialect, ListRequest, Reading, sql};

/// The statement of a list of `task` on Postgres, without the comment at its beginning. It binds as many values as it names.
fn written(parameters: &[(&str, &str)]) -> String {
    let fields = json!([{ "name": "title", "type": "text" }, { "name": "rank", "type": "integer" }]);
    let definition = serde_json::from_value(json!({ "name": "task", "fields": fields })).expect("a definition");
    let task = StoredObject { id: 1, revision: 1, keys: vec![1, 2], definition };
    let registry = Registry::new(1, vec![task], Vec::new()).expect("a registry");
    let access = Permissions::unrestricted().decide("task", Action::Read).and_then(Decision::plain).expect("a right");
    let request = ListRequest::from_parameters(parameters.iter().copied()).expect("a request");
    let reading = Reading {
        registry: &registry,
        decide: &|_| Ok(access.clone()),
        variables: &Variables::default,
        bounds: Bounds::of_request(),
    };
    let object = Arc::clone(registry.object("task").expect("an object"));
    let plan = ListPlan::new(&object, &access, &request, &reading, Vec::new()).expect("a plan");
    let statement = sql::list(Dialect::Postgres, &plan);
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
fn a_search_is_in_its_statement_once() {
    for parameters in [vec![("search", "heron")], vec![("title[ilike]", "heron"), ("sort", "-rank")]] {
        let searched = written(&parameters);
        assert!(searched.starts_with(r#"WITH svc_found AS MATERIALIZED (SELECT "#), "{searched}");
        assert_eq!(searched.matches("strpos(").count(), 1, "{searched}");
        assert!(
            searched.contains(r#", (SELECT count(*) FROM svc_found) AS svc_total FROM "task" WHERE "id" = ANY(ARRAY("#),
            "{searched}"
        );
    }
    // The texts of all matching rows could be long, so they are not kept for the sort.
    let by_text = written(&[("search", "heron"), ("sort", "title")]);
    assert!(!by_text.contains("svc_found"), "{by_text}");
    // A term that the search index does not find is looked for in the order of the list.
    let short = written(&[("search", "he")]);
    assert!(!short.contains("svc_found"), "{short}");
    let uncounted = written(&[("search", "heron"), ("count", "none")]);
    assert!(!uncounted.contains("svc_found"), "{uncounted}");
}

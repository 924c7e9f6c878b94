//! The routes, by area. Each area has its handlers and its part of the OpenAPI document.

pub(crate) mod accounts;
pub(crate) mod auth;
pub(crate) mod blocks;
pub(crate) mod data;
pub(crate) mod document;
pub(crate) mod events;
pub(crate) mod me;
pub(crate) mod openapi;
pub(crate) mod schema;
pub(crate) mod service;
pub(crate) mod surfaces;
pub(crate) mod tasks;

use crate::routing::Routes;

/// All routes of a server except [`surfaces::pages`]. It has `/metrics` if telemetry is on.
pub(crate) fn all(has_metrics: bool) -> Routes {
    let areas = [
        data::routes(),
        schema::routes(),
        events::routes(),
        blocks::routes(),
        surfaces::routes(),
        openapi::routes(),
        accounts::routes(),
        tasks::routes(),
        service::routes(has_metrics),
        me::routes(),
        auth::routes(),
    ];
    areas.into_iter().fold(Routes::new(), Routes::merge)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use blockbase_app::schema::{Registry, Relationship, StoredObject};
    use blockbase_app::{ActionDeclaration, Visible};
    use serde_json::{Value, json};

    use super::*;

    /// Routes that the document leaves out: people open the pages, and scrapers know the format of the metrics.
    const OUTSIDE_THE_DOCUMENT: [&str; 5] = ["get /", "get /admin", "get /admin/", "get /admin/{*path}", "get /metrics"];

    fn documented() -> Value {
        let object = |id, name: &str| StoredObject {
            id,
            revision: 1,
            definition: serde_json::from_value(json!({ "name": name })).expect("a definition"),
            keys: Vec::new(),
            since: Default::default(),
        };
        let tags = json!({ "name": "tags", "kind": "many_to_many", "source": "task", "target": "tag" });
        let tags = Relationship { id: 1, definition: serde_json::from_value(tags).expect("a definition") };
        let registry = Registry::new(1, vec![object(1, "tag"), object(2, "task")], vec![tags]).expect("a registry");
        let visible = Visible::whole(Arc::new(registry), 1, vec![("tag".to_owned(), true), ("task".to_owned(), true)]);
        let action: ActionDeclaration = serde_json::from_value(json!({ "name": "complete" })).expect("an action");
        let service = document::Service { require_auth: false, cookie_name: "session", bulk_records_max: 100 };
        document::build_with_actions(&visible, &[("chores", &action)], &service)
    }

    #[test]
    fn every_route_has_its_document_and_every_document_its_route() {
        let document = documented();
        let paths = document["paths"].as_object().expect("paths").iter();
        let described: BTreeSet<String> = paths
            .filter(|(path, _)| !path.starts_with("/api/v1/data/tag"))
            .flat_map(|(path, item)| item.as_object().expect("operations").keys().map(move |method| format!("{method} {path}")))
            .collect();
        let mut answered = BTreeSet::new();
        for (method, path) in all(true).merge(surfaces::pages()).list() {
            let path = path
                .replace("/data/{object}", "/data/task")
                .replace("/links/{relation}", "/links/tags")
                .replace("/blocks/{block}/actions/{action}", "/blocks/chores/actions/complete");
            answered.insert(format!("{} {path}", method.as_str().to_lowercase()));
        }
        for route in OUTSIDE_THE_DOCUMENT {
            assert!(answered.remove(route), "{route} is not a route");
        }
        let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| one.difference(other).cloned().collect::<Vec<_>>();
        let (undescribed, unanswered) = (only(&answered, &described), only(&described, &answered));
        assert!(
            undescribed.is_empty() && unanswered.is_empty(),
            "routes without a document: {undescribed:?}; documents without a route: {unanswered:?}"
        );
        assert!(!all(false).list().iter().any(|(_, path)| *path == "/metrics"));
    }

    #[test]
    fn every_schema_that_something_refers_to_is_a_component() {
        fn check(value: &Value, document: &Value) {
            match value {
                Value::Object(members) => {
                    if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                        let pointer = reference.strip_prefix('#').expect("a reference into the document");
                        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
                    }
                    assert!(!members.contains_key("x-svc-components"), "components were left where they are used");
                    members.values().for_each(|member| check(member, document));
                }
                Value::Array(items) => items.iter().for_each(|item| check(item, document)),
                _ => {}
            }
        }
        let document = documented();
        check(&document, &document);
    }
}

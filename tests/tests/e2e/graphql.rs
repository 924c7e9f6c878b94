//! GraphQL through the real binary.

mod actions;
mod changes;
pub(crate) mod clients;
mod conditions;
mod connections;
pub(crate) mod graphiql;
mod permissions;
mod reads;
mod refused;
pub(crate) mod streams;
mod writes;

use blockbase_tests::{Admin, Answer, Server};
use serde_json::{Value, json};

pub(crate) const PATH: &str = "/api/v1/graphql";

/// Sends an operation.
pub(crate) async fn send(server: &Server, credential: Option<&str>, query: &str, variables: Value) -> Answer {
    server.call_as(credential, "POST", PATH, Some(json!({ "query": query, "variables": variables }))).await
}

/// The `data` of an operation that has no errors.
#[track_caller]
pub(crate) fn data<'a>(admin: &'a Admin<'_>, query: &'a str, variables: Value) -> impl Future<Output = Value> + use<'a> {
    let place = std::panic::Location::caller();
    async move {
        let answer = send(admin.server, Some(&admin.token), query, variables).await;
        let mut body = answer.json();
        assert_eq!(answer.status, 200, "{place}: {query}: {}", answer.text);
        assert!(body["errors"].is_null(), "{place}: {query}: {}", answer.text);
        body["data"].take()
    }
}

/// The error codes of an operation.
pub(crate) async fn codes(server: &Server, credential: Option<&str>, query: &str, variables: Value) -> Vec<String> {
    let answer = send(server, credential, query, variables).await;
    assert_ne!(answer.status, 500, "{query}: {}", answer.text);
    let body = answer.json();
    let errors = body["errors"].as_array().unwrap_or_else(|| panic!("{query}: {}", answer.text));
    assert!(errors.iter().all(|error| error["message"].as_str().is_some_and(|message| !message.is_empty())), "{body}");
    errors.iter().map(|error| error["extensions"]["code"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Defines projects, their tasks, tags of tasks, one passport per person, and a person for each task.
pub(crate) async fn define(admin: &Admin<'_>) {
    admin.define("project", json!([{ "name": "name", "type": "slug", "isUnique": true }])).await;
    admin.define("tag", json!([{ "name": "label", "type": "text" }])).await;
    admin.define("person", json!([{ "name": "name", "type": "text" }])).await;
    admin.define("passport", json!([{ "name": "number", "type": "text" }])).await;
    let fields = json!([
        { "name": "title", "type": "text", "required": true, "max": 200 },
        { "name": "done", "type": "boolean", "default": false },
        { "name": "priority", "type": "integer", "min": 0, "max": 9 },
        { "name": "price", "type": "decimal" },
        { "name": "big", "type": "big_integer" },
        { "name": "status", "type": "enum", "options": ["open", "closed"] },
        { "name": "shade", "type": "enum", "options": ["light blue", "red"] },
        { "name": "kinds", "type": "multi_enum", "options": ["a", "b"] },
        { "name": "due", "type": "datetime" },
        { "name": "extra", "type": "json" },
    ]);
    admin.define("task", fields).await;
    for relationship in [
        json!({ "name": "project", "kind": "many_to_one", "source": "task", "target": "project" }),
        json!({ "name": "tags", "kind": "many_to_many", "source": "task", "target": "tag" }),
        json!({ "name": "owned", "kind": "one_to_many", "source": "person", "target": "task" }),
        json!({ "name": "holder", "kind": "one_to_one", "source": "passport", "target": "person" }),
    ] {
        admin.relate(relationship).await;
    }
}

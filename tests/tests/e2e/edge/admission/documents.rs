//! JSON documents: where the server expects an object, it accepts nothing else. Errors repeat only a little of the request.

use blockbase_tests::{Answer, on_both_engines};
use serde_json::{Value, json};

/// The maximum number of characters in an error that quotes the request. This is enough for one or two excerpts and the sentence.
const MESSAGE_CHARS_MAX: usize = 700;

#[track_caller]
fn is_short(what: &str, answer: &Answer) {
    assert!((400..500).contains(&answer.status) || answer.text.contains("errors"), "{what}: {} {}", answer.status, answer.text);
    assert!(answer.text.chars().count() < 2 * MESSAGE_CHARS_MAX, "{what}: {} bytes", answer.text.len());
    if let Some(field) = answer.json()["field"].as_str() {
        assert!(field.chars().count() <= 101, "{what}: {field}");
    }
}

on_both_engines! {
    async fn errors_repeat_little_of_what_was_sent(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let long = "k".repeat(200_000);
        let named = |name: &str| json!({ name: 1 });
        for (method, path, body) in [
            ("POST", "/api/v1/data/task".to_owned(), named(&long)),
            ("POST", "/api/v1/data/task/bulk".to_owned(), json!({ "data": [named(&long)] })),
            ("POST", "/api/v1/data/task".to_owned(), json!({ "title": "t", "priority": long })),
            ("POST", "/api/v1/data/task".to_owned(), json!({ "title": "t", "done": long })),
            ("DELETE", "/api/v1/data/task/bulk".to_owned(), json!({ "ids": [long] })),
            ("POST", "/api/v1/roles".to_owned(), named(&long)),
            ("POST", "/api/v1/roles".to_owned(), json!({ "name": "r", "permissions": [{ "resource": long, "actions": [long] }] })),
            ("POST", "/api/v1/roles".to_owned(), json!({ "name": "r", "permissions": long })),
            ("POST", "/api/v1/objects".to_owned(), json!({ "name": long })),
            ("POST", "/api/v1/objects".to_owned(), named(&long)),
            ("PATCH", "/api/v1/objects/task".to_owned(), named(&long)),
            ("POST", "/api/v1/objects/task/fields".to_owned(), json!({ "name": "f", "type": long })),
            ("POST", "/api/v1/webhooks".to_owned(), json!({ "url": long, "topics": [long] })),
            ("POST", "/api/v1/webhooks".to_owned(), json!({ "url": "https://webhook.invalid/", "topics": [long] })),
            ("POST", "/api/v1/events/subscriptions".to_owned(), json!({ "event": "data.#", "consumer": "c", "handler": long })),
            ("POST", "/api/v1/tasks".to_owned(), json!({ "name": "n", "type": long, "schedule": long, "config": {} })),
            ("POST", "/api/v1/api-keys".to_owned(), json!({ "name": "k", "roleId": "admin", "expiresAt": long })),
            ("GET", format!("/api/v1/data/task?{}=1", &long[..5000]), Value::Null),
            ("GET", format!("/api/v1/data/task?sort={}", &long[..5000]), Value::Null),
            ("GET", format!("/api/v1/data/task?limit={}", &long[..5000]), Value::Null),
            ("GET", format!("/api/v1/data/task?title[{}]=1", &long[..5000]), Value::Null),
            ("GET", format!("/api/v1/data/{}", &long[..5000]), Value::Null),
            ("GET", format!("/api/v1/{}", &long[..5000]), Value::Null),
            ("PUT", format!("/api/v1/data/{}", &long[..5000]), Value::Null),
            ("GET", format!("/api/v1/users?{}=1", &long[..5000]), Value::Null),
            ("GET", format!("/api/v1/events/stream?topics={}..", &long[..5000]), Value::Null),
            ("POST", format!("/api/v1/blocks/x/actions/{}", &long[..5000]), json!({})),
            ("POST", "/api/v1/graphql".to_owned(), json!({ "query": "query ($a: Int) { svc_objects }", "variables": { "a": long } })),
            ("POST", "/api/v1/graphql".to_owned(), json!({ "query": format!("{{ {} }}", &long[..60_000]) })),
            ("POST", "/api/v1/graphql".to_owned(), json!({ "query": format!("{{ ! {} }}", &long[..60_000]) })),
            ("POST", "/api/v1/graphql".to_owned(), json!({ "query": "mutation ($i: JSON) { create_task(input: { title: $i }) { id } }", "variables": { "i": 1 } })),
        ] {
            let request = admin.request(method, &path);
            let answer = server.send(if body.is_null() { request } else { request.json(&body) }).await;
            is_short(&format!("{method} {}", &path[..path.len().min(60)]), &answer);
        }
        for arguments in [
            json!({ "object_name": "task", "data": named(&long) }),
            json!({ "object_name": long, "data": {} }),
            json!({ "object_name": "task", "data": {}, long.as_str(): 1 }),
            json!({ "object_name": "task", "data": long }),
        ] {
            let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "create_record", "arguments": arguments } });
            let request = admin.request("POST", "/api/v1/mcp?sessions=none").header("accept", "application/json, text/event-stream");
            let answer = server.send(request.json(&message)).await;
            assert!(answer.text.contains("isError") && answer.text.len() < 2 * MESSAGE_CHARS_MAX, "{} bytes", answer.text.len());
        }
    }

    async fn a_list_is_no_object_at_any_depth(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        for (method, path, body, place) in [
            ("POST", "/api/v1/objects", json!(["o"]), ""),
            ("POST", "/api/v1/objects", json!({ "name": "o", "fields": [["title", "text"]] }), "fields[0]"),
            ("POST", "/api/v1/objects", json!({ "name": "o", "constraints": [[["a"]]] }), "constraints"),
            ("PATCH", "/api/v1/objects/task", json!({ "constraints": [[["title"]]] }), "constraints"),
            ("POST", "/api/v1/objects/task/fields", json!(["f", "text"]), ""),
            ("POST", "/api/v1/relationships", json!(["r", "many_to_one", "task", "task"]), ""),
            ("POST", "/api/v1/roles", json!(["r"]), ""),
            ("POST", "/api/v1/roles", json!({ "name": "r", "permissions": [{ "resource": "task", "actions": ["read"] }, ["task", ["read"]]] }), "permissions[1]"),
            ("POST", "/api/v1/api-keys", json!(["k", "admin"]), ""),
            ("POST", "/api/v1/webhooks", json!([null, "https://webhook.invalid/", ["data.#"]]), ""),
            ("POST", "/api/v1/tasks", json!(["n", "block_action", "0 0 1 1 *", {}]), ""),
            ("POST", "/api/v1/events/subscriptions", json!(["data.#", "c", "log_event"]), ""),
            ("POST", "/api/v1/events/deliveries/retry", json!(["e", "c"]), ""),
            ("POST", "/api/v1/data/task/bulk", json!([[{ "title": "t" }]]), ""),
            ("POST", "/api/v1/data/task/bulk", json!({ "data": [["t"]] }), "[0]"),
            ("DELETE", "/api/v1/data/task/bulk", json!([[]]), ""),
            ("POST", "/api/v1/graphql", json!([]), ""),
        ] {
            let answer = server.send(admin.request(method, path).json(&body)).await;
            assert_eq!(answer.status, 400, "{method} {path} {body}: {}", answer.text);
            let message = answer.json()["message"].as_str().unwrap_or_default().to_owned();
            let names_it = place.is_empty() || message.contains(&format!("`{place}`"));
            assert!(names_it, "{method} {path} {body}: {message}");
        }
        let filters = json!({ "object_name": "task", "filters": [["title", "eq", "t"]] });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "query_data", "arguments": filters } });
        let request = admin.request("POST", "/api/v1/mcp?sessions=none").header("accept", "application/json, text/event-stream");
        let answer = server.send(request.json(&message)).await;
        assert!(answer.text.contains("isError\":true") && answer.text.contains("filters[0]"), "{}", answer.text);
        let positional = json!(["2.0", 1, "ping", {}]);
        let request = admin.request("POST", "/api/v1/mcp?sessions=none").header("accept", "application/json, text/event-stream");
        assert_eq!(server.send(request.header("mcp-protocol-version", "2025-06-18").json(&positional)).await.status, 400);
    }
}

//! The list of tools: the complete list, the list of each caller, and the list in the repository.

use blockbase_tests::{Engine, ServerBuilder, checkout, example_block, on_both_engines};
use serde_json::{Value, json};

use super::{Client, make_schema, user_with};

const READING: [&str; 5] = ["list_objects", "get_object", "query_data", "get_record", "aggregate_data"];

fn grants(resource: &str, actions: &[&str]) -> Value {
    json!([{ "resource": "data", "actions": ["read"] }, { "resource": resource, "actions": actions }])
}

on_both_engines! {
    async fn a_caller_is_shown_what_they_may_do(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        assert_eq!(admin.install("", example_block("echo").await).await.status, 201);
        let all = Client::of(&admin).tool_names().await;
        assert_eq!(all.len(), 15 + 6, "{all:?}");
        let told = &READING[..2];
        for (name, permissions, expected) in [
            ("nobody", json!([{ "resource": "data", "actions": ["read"] }]), vec![]),
            ("reader", grants("task", &["read"]), READING.to_vec()),
            ("maker", grants("task", &["create"]), [told, &["create_record", "bulk_create_records", "batch_records"]].concat()),
            ("changer", grants("task", &["update"]), [told, &["update_record", "bulk_update_records", "batch_records", "link_records", "unlink_records"]].concat()),
            ("remover", grants("task", &["delete"]), [told, &["delete_record", "bulk_delete_records", "batch_records"]].concat()),
            ("both", grants("task", &["create", "update"]), [told, &["create_record", "update_record", "upsert_record", "bulk_create_records", "bulk_update_records", "batch_records", "link_records", "unlink_records"]].concat()),
            ("designer", grants("objects", &["read"]), told.to_vec()),
            ("caller", grants("echo:calls", &["read"]), vec!["echo_echo"]),
            ("installer", grants("blocks", &["update"]), vec!["echo_spin", "echo_panic", "echo_hoard", "echo_remember", "echo_refuse"]),
        ] {
            let client = Client::of(&user_with(&admin, name, permissions).await);
            assert_eq!(client.tool_names().await, expected, "{name}");
        }
        // A tool's schema names only the objects that the caller may use it on.
        let mixed = json!([
            { "resource": "data", "actions": ["read"] },
            { "resource": "task", "actions": ["read"] },
            { "resource": "label", "actions": ["create"], "rowPolicy": "own" },
        ]);
        let mixed = Client::of(&user_with(&admin, "mixed", mixed).await);
        let tools = mixed.tools().await;
        let named = |tool: &str| {
            let tool = tools.iter().find(|known| known["name"] == tool).unwrap();
            tool["inputSchema"]["properties"]["object_name"]["description"].as_str().unwrap().to_owned()
        };
        assert_eq!(named("query_data"), "The object's name, one of: task.");
        assert_eq!(named("create_record"), "The object's name, one of: label.");
        assert_eq!(named("get_object"), "The object's name, one of: label, task.");
        let objects = mixed.call("list_objects", json!({})).await.document();
        assert_eq!(objects, json!({ "data": [{ "name": "label", "actions": ["create"] }, { "name": "task", "actions": ["read"] }] }));
        // The description of an object shows only relations to objects that the caller may read.
        let task = mixed.call("get_object", json!({ "object_name": "task" })).await.document();
        assert_eq!((&task["data"]["expandKeys"], &task["data"]["actions"]), (&json!([]), &json!(["read"])));
        mixed.call("get_object", json!({ "object_name": "person" })).await.expect_error("forbidden");
        mixed.call("get_object", json!({ "object_name": "nothing" })).await.expect_error("forbidden");
    }

    async fn schemas_are_schemas_and_answers_fit_them(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        assert_eq!(admin.install("", example_block("echo").await).await.status, 201);
        let client = Client::of(&admin);
        let id = admin.make("task", json!({ "title": "a", "code": "one" })).await;
        let label = admin.make("label", json!({ "name": "x" })).await;
        let tools = client.tools().await;
        let calls = [
            ("list_objects", json!({})),
            ("get_object", json!({ "object_name": "task" })),
            ("query_data", json!({ "object_name": "task", "expand": "labels", "filters": [{ "field": "title", "operator": "eq", "value": "a" }] })),
            ("query_data", json!({ "object_name": "task", "count": "none", "select": "title" })),
            ("get_record", json!({ "object_name": "task", "id": id })),
            ("aggregate_data", json!({ "object_name": "task", "fn": "max", "field": "count" })),
            ("create_record", json!({ "object_name": "task", "data": { "title": "b" } })),
            ("update_record", json!({ "object_name": "task", "id": id, "data": { "title": "c" } })),
            ("upsert_record", json!({ "object_name": "task", "data": { "title": "c", "code": "one" }, "on_conflict": ["code"] })),
            ("bulk_create_records", json!({ "object_name": "task", "data": [{ "title": "d" }] })),
            ("link_records", json!({ "object_name": "task", "id": id, "relation": "labels", "ids": [label] })),
            ("unlink_records", json!({ "object_name": "task", "id": id, "relation": "labels", "ids": [label] })),
            ("batch_records", json!({ "operations": [
                { "op": "create", "object": "task", "values": { "title": "e" } },
                { "op": "delete", "object": "task", "id": { "$ref": "0.id" } },
            ] })),
            ("bulk_delete_records", json!({ "object_name": "task", "ids": [id] })),
            ("delete_record", json!({ "object_name": "label", "id": label })),
            ("echo_echo", json!({ "a": 1 })),
        ];
        for tool in &tools {
            for schema in ["inputSchema", "outputSchema"] {
                assert!(jsonschema::draft202012::meta::is_valid(&tool[schema]), "{tool}");
                assert_eq!(tool[schema]["type"], "object", "{tool}");
            }
            let hints = &tool["annotations"];
            for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
                assert!(hints[hint].is_boolean(), "{tool}");
            }
            assert!(tool["title"].is_string() && tool["description"].as_str().is_some_and(|text| text.len() > 5), "{tool}");
        }
        for (name, arguments) in calls {
            let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
            assert!(jsonschema::is_valid(&tool["inputSchema"], &arguments), "{name} {arguments}");
            let document = client.call(name, arguments.clone()).await.document();
            assert!(jsonschema::is_valid(&tool["outputSchema"], &document), "{name} {document}");
        }
    }
}

/// The list on which clients depend. `UPDATE_SNAPSHOTS=1` writes the stored list again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_is_the_one_that_is_checked_in() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    make_schema(&admin).await;
    assert_eq!(admin.install("", example_block("tasks").await).await.status, 201);
    let listed = format!("{:#}\n", Value::Array(Client::of(&admin).tools().await));
    let file = checkout().join("tests/tests/e2e/mcp/tools.json");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&file, &listed).unwrap();
    }
    let known = std::fs::read_to_string(&file).unwrap();
    assert!(listed == known, "the list changed; is that meant? UPDATE_SNAPSHOTS=1 keeps it\n{listed}");
}

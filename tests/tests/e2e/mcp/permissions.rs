//! Permissions: the platform right, roles, own rows, and callers without a credential.

use blockbase_tests::{Answer, Engine, ServerBuilder, example_block, on_both_engines};
use serde_json::{Value, json};

use super::{BOTH, Client, PATH, initialization, make_schema, user_with};

#[track_caller]
fn expect_refusal(answer: &Answer, status: u16, code: &str) {
    let json = answer.json();
    assert_eq!((answer.status, &json["error"]["data"]["error"]), (status, &json!(code)), "{}", answer.text);
    assert_eq!(json["jsonrpc"], "2.0");
    assert_eq!(answer.headers.contains_key("www-authenticate"), status == 401);
}

on_both_engines! {
    async fn signed_in_callers_need_read_on_data(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        let everything = json!([{ "resource": "task", "actions": ["manage"] }, { "resource": "objects", "actions": ["manage"] }]);
        let user = user_with(&admin, "gated", everything).await;
        let client = Client::of(&user);
        for answer in [client.ask("initialize", initialization()).await, client.ask("tools/list", json!({})).await, server.send(client.request("GET")).await] {
            expect_refusal(&answer, 403, "forbidden");
        }
        let own_rows_alone = json!([{ "resource": "data", "actions": ["read"], "rowPolicy": "own" }]);
        admin.patch("/api/v1/roles/gated", json!({ "permissions": own_rows_alone })).await.data();
        expect_refusal(&client.ask("tools/list", json!({})).await, 403, "forbidden");
        admin.patch("/api/v1/roles/gated", json!({ "permissions": [{ "resource": "data", "actions": ["read"] }] })).await.data();
        // The right to use the platform does not include any object.
        assert_eq!(client.tool_names().await.len(), 0);
        client.call("query_data", json!({ "object_name": "task" })).await.expect_error("forbidden");
        // The role of a key decides whether the key is admitted. The roles of its user do not matter.
        let key = admin.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "gated" })).await.json()["key"].as_str().unwrap().to_owned();
        let request = server.request("POST", PATH).header("accept", BOTH).header("x-api-key", &key);
        let listed = server.send(request.json(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))).await;
        assert_eq!((listed.status, listed.json()["result"]["tools"].clone()), (200, json!([])), "{}", listed.text);
    }

    async fn own_rows_are_ones_own_here_too(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        let own = json!([
            { "resource": "data", "actions": ["read"] },
            { "resource": "task", "actions": ["manage"], "rowPolicy": "own" },
            { "resource": "label", "actions": ["read"] },
        ]);
        let ann = Client::of(&user_with(&admin, "ann", own).await);
        let theirs = admin.make("task", json!({ "title": "theirs", "code": "theirs" })).await;
        let label = admin.make("label", json!({ "name": "x" })).await;
        let mine = ann.call("create_record", json!({ "object_name": "task", "data": { "title": "mine" } })).await.document();
        let mine = mine["data"]["id"].as_str().unwrap();
        let listed = ann.call("query_data", json!({ "object_name": "task" })).await.document();
        assert_eq!((&listed["pagination"]["totalCount"], &listed["data"][0]["title"]), (&json!(1), &json!("mine")));
        assert_eq!(ann.call("query_data", json!({ "object_name": "task", "search": "theirs" })).await.document()["data"], json!([]));
        let counted = ann.call("aggregate_data", json!({ "object_name": "task", "fn": "count" })).await.document();
        assert_eq!(counted["data"]["value"], 1);
        for (tool, arguments) in [
            ("get_record", json!({ "id": theirs })),
            ("update_record", json!({ "id": theirs, "data": { "title": "x" } })),
            ("delete_record", json!({ "id": theirs })),
            ("link_records", json!({ "id": theirs, "relation": "labels", "ids": [label] })),
            ("unlink_records", json!({ "id": theirs, "relation": "labels", "ids": [label] })),
        ] {
            let mut arguments = arguments;
            arguments["object_name"] = json!("task");
            ann.call(tool, arguments).await.expect_error("not_found");
        }
        let upsert = json!({ "object_name": "task", "data": { "title": "x", "code": "theirs" }, "on_conflict": ["code"] });
        ann.call("upsert_record", upsert).await.expect_error("forbidden");
        let gone = ann.call("bulk_delete_records", json!({ "object_name": "task", "ids": [theirs, mine] })).await.document();
        assert_eq!(gone, json!({ "count": 1, "ids": [mine] }));
        assert_eq!(admin.get(&format!("/api/v1/data/task/{theirs}")).await.data()["title"], "theirs");
    }

    async fn a_missing_right_is_the_operations_own_error(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        assert_eq!(admin.install("", example_block("echo").await).await.status, 201);
        let reader = json!([{ "resource": "data", "actions": ["read"] }, { "resource": "task", "actions": ["read"] }]);
        let reader = user_with(&admin, "reader", reader).await;
        let client = Client::of(&reader);
        let id = admin.make("task", json!({ "title": "a" })).await;
        for (tool, arguments, method, path, body) in [
            ("create_record", json!({ "data": { "title": "x" } }), "POST", "task".to_owned(), json!({ "title": "x" })),
            ("update_record", json!({ "id": id, "data": {} }), "PATCH", format!("task/{id}"), json!({})),
            ("delete_record", json!({ "id": id }), "DELETE", format!("task/{id}"), Value::Null),
            ("bulk_delete_records", json!({ "ids": [id] }), "DELETE", "task/bulk".to_owned(), json!({ "ids": [id] })),
            ("query_data", json!({ "expand": "owner" }), "GET", "task?expand=owner".to_owned(), Value::Null),
        ] {
            let mut arguments = arguments;
            arguments["object_name"] = json!("task");
            let called = client.call(tool, arguments).await;
            let request = reader.request(method, &format!("/api/v1/data/{path}"));
            let rest = server.send(if body.is_null() { request } else { request.json(&body) }).await;
            rest.expect_error(403, "forbidden");
            assert_eq!(called.text, rest.text, "{tool}");
        }
        // A hidden tool gets the same answer as a tool that does not exist.
        let unknown = client.ask("tools/call", json!({ "name": "echo_nothing" })).await.text;
        let hidden = client.ask("tools/call", json!({ "name": "echo_echo" })).await.text;
        assert_eq!(hidden, unknown.replace("echo_nothing", "echo_echo"));
    }

    async fn without_a_credential_there_is_what_public_may(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        let nobody = Client::nobody(&server);
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialization() }).to_string();
        for (method, body) in [("POST", initialize.as_str()), ("POST", "{"), ("GET", ""), ("DELETE", "")] {
            let answer = server.send(nobody.request(method).header("content-type", "application/json").body(body.to_owned())).await;
            expect_refusal(&answer, 401, "unauthorized");
            assert!(answer.headers["www-authenticate"].to_str().unwrap().starts_with("Bearer "));
        }
        admin.make("task", json!({ "title": "a" })).await;
        admin.patch("/api/v1/roles/public", json!({ "permissions": [{ "resource": "task", "actions": ["read"] }] })).await.data();
        let nobody = nobody.begin().await;
        assert_eq!(nobody.tool_names().await, ["list_objects", "get_object", "query_data", "get_record", "aggregate_data"]);
        let listed = nobody.call("query_data", json!({ "object_name": "task" })).await;
        assert_eq!((listed.document()["data"][0]["title"].clone(), &listed.text), (json!("a"), &server.call("GET", "/api/v1/data/task", None).await.text));
        let task = json!({ "object_name": "task", "data": { "title": "b" } });
        for (tool, arguments) in [("create_record", task), ("query_data", json!({ "object_name": "person" })), ("get_object", json!({ "object_name": "person" }))] {
            let answer = nobody.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
            expect_refusal(&answer, 401, "unauthorized");
            assert_eq!(answer.json()["id"], 1);
        }
        for credential in ["svc_nothing", "no session"] {
            let client = Client { credential: Some(credential.to_owned()), ..nobody.clone() };
            expect_refusal(&client.ask("tools/list", json!({})).await, 401, "unauthorized");
        }
        // If `public` loses a right, callers without a credential lose it.
        admin.patch("/api/v1/roles/public", json!({ "permissions": [] })).await.data();
        expect_refusal(&nobody.ask("tools/list", json!({})).await, 401, "unauthorized");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_enforcement_everybody_has_every_tool() {
    let server = ServerBuilder::new(Engine::Sqlite).env("SVC_REQUIRE_AUTH", "false").start().await;
    let nobody = Client::nobody(&server).begin().await;
    assert_eq!(nobody.tool_names().await.len(), 15);
    let defined = server
        .call("POST", "/api/v1/objects", Some(json!({ "name": "note", "fields": [{ "name": "text", "type": "text" }] })))
        .await;
    assert_eq!(defined.status, 201);
    let made = nobody.call("create_record", json!({ "object_name": "note", "data": { "text": "x" } })).await.document();
    assert_eq!(made["data"]["created_by"], Value::Null);
}

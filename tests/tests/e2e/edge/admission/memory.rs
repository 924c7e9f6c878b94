//! The memory that a large record needs on its way into the server.

use blockbase_tests::{Admin, Server, ServerBuilder, on_both_engines};
use serde_json::json;

use super::{array, memory, reset_peak};

/// The number of bytes of a record's value. This is the largest value that leaves enough room for the rest of the body.
const VALUE_BYTES: usize = 10_480_000;
/// The maximum memory that a record of this size may need, in kilobytes.
const GROWTH_MAX: i64 = 100_000;

async fn send(admin: &Admin<'_>, path: &str, body: String) -> (u16, String) {
    let request = admin.request("POST", path).header("content-type", "application/json");
    let answer = admin.server.send(request.header("accept", "application/json, text/event-stream").body(body)).await;
    (answer.status, answer.text)
}

async fn grows_little(server: &Server, what: &str, request: impl Future<Output = (u16, String)>) {
    let before = reset_peak(server);
    let (status, text) = request.await;
    assert!((200..300).contains(&status), "{what}: {status} {}", &text[..text.len().min(300)]);
    let shown = &text[..text.len().min(300)];
    assert!(!shown.contains("\"errors\"") && !text.contains("\"isError\":true"), "{what}: {shown}");
    let grown = memory(server, "VmHWM") - before;
    assert!(grown < GROWTH_MAX, "{what} on {:?}: {grown} kB", server.engine());
}

/// A way into the server: its name, its path, and a function that makes the body for a value.
type Way = (&'static str, &'static str, fn(&str) -> String);

fn ways() -> [Way; 4] {
    fn graphql(value: &str) -> String {
        let query = "mutation ($value: JSON) { create_doc(input: { body: $value }) { id } }";
        format!("{{\"query\":{},\"variables\":{{\"value\":{value}}}}}", json!(query))
    }
    fn mcp(value: &str) -> String {
        let arguments = format!("{{\"object_name\":\"doc\",\"data\":[{{\"body\":{value}}}]}}");
        let params = format!("{{\"name\":\"bulk_create_records\",\"arguments\":{arguments}}}");
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{params}}}")
    }
    [
        ("REST", "/api/v1/data/doc", |value| format!("{{\"body\":{value}}}")),
        ("REST, bulk", "/api/v1/data/doc/bulk", |value| format!("{{\"data\":[{{\"body\":{value}}}]}}")),
        ("GraphQL", "/api/v1/graphql", graphql),
        ("MCP", "/api/v1/mcp?sessions=none", mcp),
    ]
}

on_both_engines! {
    #[ignore = "long: memory, alone"]
    async fn a_large_record_takes_a_few_times_its_size(engine: Engine) {
        let value = array(VALUE_BYTES);
        for (what, path, body) in ways() {
            // The test needs a new server, because an older one would already have the memory.
            let server = ServerBuilder::new(engine).start().await;
            let admin = server.admin().await;
            admin.define("doc", json!([{ "name": "body", "type": "json" }])).await;
            send(&admin, path, body("[1]")).await;
            grows_little(&server, what, send(&admin, path, body(&value))).await;
        }
    }
}

on_both_engines! {
    #[ignore = "long: memory, alone"]
    async fn what_would_become_a_large_tree_is_refused(server: Server) {
        let admin = server.admin().await;
        assert_eq!(admin.install("", blockbase_tests::example_block("echo").await).await.status, 201);
        let before = reset_peak(&server);
        let input = format!("{{\"text\":{}}}", array(VALUE_BYTES));
        let (status, text) = send(&admin, "/api/v1/blocks/echo/actions/echo", input).await;
        assert_eq!(status, 400, "{text}");
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"x":{}}}}}"#, array(VALUE_BYTES));
        let (status, text) = send(&admin, "/api/v1/mcp?sessions=none", message).await;
        assert_eq!(status, 400, "{text}");
        let grown = memory(&server, "VmHWM") - before;
        assert!(grown < GROWTH_MAX, "{grown} kB");
    }
}

/// The number of bytes of a text that a record may have by default.
const TEXT_BYTES: usize = 950_000;
/// The maximum memory in kilobytes: for a call that is refused because of its size, and for a call that changes as many bytes as
/// allowed.
const REFUSED_GROWTH_MAX: i64 = 150_000;
const TOUCHED_GROWTH_MAX: i64 = 350_000;

on_both_engines! {
    #[ignore = "long: memory, alone"]
    async fn what_is_too_large_to_be_touched_is_not_loaded(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        admin.define("folder", json!([])).await;
        admin.define("doc", json!([{ "name": "text", "type": "text" }, { "name": "size", "type": "integer" }])).await;
        admin.relate(json!({ "name": "folder", "kind": "many_to_one", "source": "doc", "target": "folder", "onDelete": "cascade" })).await;
        let folder = admin.make("folder", json!({})).await;
        let mut ids: Vec<String> = Vec::new();
        for _ in 0..30 {
            let records = vec![json!({ "text": "x".repeat(TEXT_BYTES), "folder_id": folder }); 10];
            let made = admin.post("/api/v1/data/doc/bulk", json!({ "data": records })).await;
            ids.extend(serde_json::from_value::<Vec<String>>(made.json()["ids"].clone()).unwrap());
        }
        // The test needs a new process, because an older one would already have the memory.
        let server = server.restart().await;
        let admin = server.with_token(admin_again(&server).await);
        let bulk = "/api/v1/data/doc/bulk";
        let calls = [
            ("DELETE", bulk.to_owned(), json!({ "ids": ids })),
            ("PATCH", bulk.to_owned(), json!({ "ids": ids, "values": { "size": 1 } })),
            ("DELETE", format!("/api/v1/data/folder/{folder}"), json!({})),
        ];
        for (method, path, body) in calls {
            let before = reset_peak(&server);
            server.send(admin.request(method, &path).json(&body)).await.expect_error(400, "answer_too_large");
            let grown = memory(&server, "VmHWM") - before;
            assert!(grown < REFUSED_GROWTH_MAX, "{method} {path} on {engine:?}: {grown} kB");
        }
        let before = reset_peak(&server);
        assert_eq!(admin.delete_with(bulk, json!({ "ids": ids[..30] })).await.json()["count"], 30);
        let grown = memory(&server, "VmHWM") - before;
        assert!(grown < TOUCHED_GROWTH_MAX, "{grown} kB on {engine:?}");
    }
}

/// A new session of the admin.
async fn admin_again(server: &Server) -> String {
    let known = json!({ "email": "admin@example.com", "password": "correct horse battery" });
    let answer = server.call("POST", "/api/auth/sign-in/email", Some(known)).await;
    answer.json()["token"].as_str().unwrap().to_owned()
}

//! Changes of the schema, of blocks or of rights: clients are notified if their list of tools changes.

use std::time::Duration;

use blockbase_tests::{Engine, ServerBuilder, example_block, on_both_engines};
use serde_json::json;

use super::{Client, Stream, make_schema, user_with};

on_both_engines! {
    async fn open_streams_are_told_of_each_change(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        let client = Client::of(&admin).begin().await;
        let reader = json!([{ "resource": "data", "actions": ["read"] }, { "resource": "task", "actions": ["read"] }]);
        let reader = Client::of(&user_with(&admin, "reader", reader).await).begin().await;
        let (mut stream, mut of_reader) = (client.listen().await, reader.listen().await);
        stream.stays_quiet(Duration::from_millis(1200)).await;

        admin.define("project", json!([{ "name": "name", "type": "text" }])).await;
        stream.list_changed().await;
        assert!(client.tools().await.iter().any(|tool| tool.to_string().contains("project")));
        assert_eq!(admin.install("", example_block("echo").await).await.status, 201);
        stream.list_changed().await;
        assert!(client.tool_names().await.contains(&"echo_echo".to_owned()));
        admin.patch("/api/v1/blocks/echo", json!({ "enabled": false })).await.data();
        stream.list_changed().await;
        assert!(!client.tool_names().await.contains(&"echo_echo".to_owned()));
        assert_eq!(admin.delete("/api/v1/objects/project").await.status, 204);
        stream.list_changed().await;

        // If the list stays the same, there is no notification.
        of_reader.stays_quiet(Duration::from_millis(500)).await;
        admin.patch("/api/v1/objects/task", json!({ "label": "A task" })).await.data();
        stream.stays_quiet(Duration::from_millis(1200)).await;

        // With other rights, the list differs.
        let more = json!([{ "resource": "data", "actions": ["read"] }, { "resource": "task", "actions": ["read", "create"] }]);
        admin.patch("/api/v1/roles/reader", json!({ "permissions": more })).await.data();
        of_reader.list_changed().await;
        assert!(reader.tool_names().await.contains(&"create_record".to_owned()));
    }

    async fn a_change_without_an_open_stream_is_told_to_the_next(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        let client = Client::of(&admin).begin().await;
        client.tools().await;
        drop(client.listen().await);
        admin.define("project", json!([])).await;
        client.listen().await.list_changed().await;
        // Until the client asks for the list, each new stream gets the notification too.
        client.listen().await.list_changed().await;
        client.tools().await;
        client.listen().await.stays_quiet(Duration::from_millis(1200)).await;
    }

    async fn subscriptions_without_a_session_are_told_too(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        let client = Client::of(&admin);
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "_meta": meta, "notifications": { "toolsListChanged": true } });
        let request = client.request("POST").header("mcp-protocol-version", "2026-07-28").header("mcp-method", "subscriptions/listen");
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params });
        let response = request.json(&body).send().await.unwrap();
        assert_eq!((response.status().as_u16(), &response.headers()["content-type"]), (200, &"text/event-stream".parse().unwrap()));
        let mut stream = Stream { response, read: String::new() };
        stream.until("notifications/subscriptions/acknowledged").await;
        admin.define("project", json!([])).await;
        stream.list_changed().await;
        assert_eq!(admin.post("/api/auth/sign-out", json!({})).await.status, 200);
        stream.ends().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_instance_tells_of_a_change() {
    let first = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = first.admin().await;
    make_schema(&admin).await;
    let second = first.builder().start().await;
    let there = second.with_token(admin.token.clone());
    let client = Client::of(&there).begin().await;
    let mut stream = client.listen().await;
    admin.define("project", json!([])).await;
    stream.list_changed().await;
    assert!(client.tools().await.iter().any(|tool| tool.to_string().contains("project")));
    assert_eq!(admin.install("", example_block("echo").await).await.status, 201);
    stream.list_changed().await;
    assert!(client.tool_names().await.contains(&"echo_echo".to_owned()));
    // A session belongs to one instance.
    let elsewhere = Client { server: &first, ..client.clone() };
    assert_eq!(elsewhere.ask("ping", json!({})).await.status, 404);
    assert_eq!(Client { session: None, ..elsewhere }.ask("ping", json!({})).await.status, 200);
}

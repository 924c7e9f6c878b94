//! Bodies: their limits, and requests that are refused before the body is read.

use blockbase_tests::on_both_engines;
use serde_json::json;

use super::{array, memory, reset_peak, user_with};

on_both_engines! {
    async fn administrative_bodies_are_small_and_those_of_records_are_not(server: Server) {
        let admin = server.admin().await;
        admin.define("doc", json!([{ "name": "body", "type": "json" }])).await;
        let large = "x".repeat(300 * 1024);
        for (method, path, body) in [
            ("POST", "/api/v1/roles", json!({ "name": "r", "description": large })),
            ("POST", "/api/v1/objects", json!({ "name": "o", "description": large })),
            ("PATCH", "/api/v1/objects/doc", json!({ "description": large })),
            ("POST", "/api/v1/objects/doc/fields", json!({ "name": "f", "type": "text", "label": large })),
            ("POST", "/api/v1/relationships", json!({ "name": large })),
            ("POST", "/api/v1/webhooks", json!({ "name": large, "url": "https://webhook.invalid/", "topics": ["data.#"] })),
            ("POST", "/api/v1/api-keys", json!({ "name": large, "roleId": "admin" })),
            ("POST", "/api/v1/tasks", json!({ "name": large })),
            ("POST", "/api/v1/events/subscriptions", json!({ "event": large })),
            ("POST", "/api/v1/admin/claim", json!({ "name": large, "newPassword": large })),
        ] {
            let refused = server.send(admin.request(method, path).json(&body)).await;
            assert_eq!(refused.expect_error(413, "payload_too_large")["error"], "payload_too_large", "{method} {path}");
        }
        for path in ["/api/auth/sign-up/email", "/api/auth/sign-in/email"] {
            let body = json!({ "name": large, "email": "ada@example.com", "password": "correct horse battery" });
            assert_eq!(server.call("POST", path, Some(body)).await.status, 413, "{path}");
        }
        admin.make("doc", json!({ "body": [large] })).await;
    }

    async fn whoever_may_not_costs_nothing(server: Server) {
        let admin = server.admin().await;
        admin.define("doc", json!([{ "name": "body", "type": "json" }])).await;
        let stranger = user_with(&admin, "stranger", json!([])).await;
        let body = array(9_600_000);
        let before = reset_peak(&server);
        for path in ["/api/v1/tasks", "/api/v1/data/doc", "/api/v1/data/doc/bulk", "/api/v1/blocks", "/api/v1/mcp", "/api/v1/admin/claim"] {
            for credential in [None, Some(&stranger.token)] {
                let mut request = server.request("POST", path).header("content-type", "application/json");
                request = request.header("accept", "application/json, text/event-stream").body(body.clone());
                if let Some(token) = credential {
                    request = request.bearer_auth(token);
                }
                let answer = server.send(request).await;
                // The claim needs only a session, and allows only a small body.
                let status = match (credential, path) {
                    (None, _) => 401,
                    (_, "/api/v1/admin/claim") => 413,
                    _ => 403,
                };
                assert_eq!(answer.status, status, "{path}: {}", answer.text);
            }
        }
        let grown = memory(&server, "VmHWM") - before;
        assert!(grown < 20_000, "{grown} kB");
    }

    async fn a_tool_and_an_action_demand_their_right_before_they_read_their_arguments(server: Server) {
        let admin = server.admin().await;
        admin.define("doc", json!([{ "name": "body", "type": "json" }])).await;
        let reader = json!([{ "resource": "data", "actions": ["read"] }, { "resource": "doc", "actions": ["read"] }]);
        let reader = user_with(&admin, "reader", reader).await;
        for (tool, arguments) in [
            ("create_record", json!({ "object_name": "doc", "data": 7 })),
            ("update_record", json!({ "object_name": "doc", "data": 7, "colour": 1 })),
            ("bulk_create_records", json!({ "object_name": "doc", "data": "x" })),
            ("delete_record", json!({ "object_name": "doc" })),
            ("upsert_record", json!({ "object_name": "doc" })),
        ] {
            let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
            let request = reader.request("POST", "/api/v1/mcp?sessions=none").header("accept", "application/json, text/event-stream");
            let text = server.send(request.json(&message)).await.text;
            assert!(text.contains("forbidden"), "{tool}: {text}");
        }
    }
}

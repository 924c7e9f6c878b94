//! Documents in the platform's own tables that cannot be read. If a decision depends on one of them, the caller needs every
//! right, or the operation fails. A response leaves the document out. The log reports each of them once.

use blockbase_tests::{Server, on_both_engines};
use serde_json::{Value, json};

use crate::accounts::roles::{key, role};
use crate::blocks::hostile::hand_made::HandMade;

/// Lines of the log about a damaged column of a table.
async fn logged(server: &Server, table: &str, column: &str) -> usize {
    let line = "a stored document cannot be read";
    let is_about = |text: &&str| text.contains(line) && text.contains(table) && text.contains(&format!("column=\"{column}\""));
    server.log_with(line).await.lines().filter(is_about).count()
}

/// A handwritten block with these keys in its manifest.
async fn block(name: &str, keys: Value) -> Vec<u8> {
    HandMade::default().packed_with(name, keys).await
}

on_both_engines! {
    async fn a_subscription_and_a_webhook_that_cannot_be_read_demand_every_right(server: Server) {
        let admin = server.admin().await;
        let grants = json!([
            { "resource": "webhooks", "actions": ["read", "delete"] },
            { "resource": "events", "actions": ["read", "delete"] },
            { "resource": "note", "actions": ["read"] },
            { "resource": "audit", "actions": ["create"] },
        ]);
        let role = role(&admin, "operator", grants).await;
        let (operator, _) = key(&admin, json!({ "name": "operator", "roleId": role })).await;
        let key = operator.token.clone();
        let token = admin.token.clone();
        admin.define("audit", json!([{ "name": "topic", "type": "text" }])).await;
        let subscriptions = "/api/v1/events/subscriptions";
        let config = json!({ "object": "audit", "map": { "topic": "event.topic" } });
        let body = json!({ "event": "data.note.#", "consumer": "audit", "handler": "persist_event", "config": config });
        assert_eq!(admin.post(subscriptions, body).await.status, 201);
        let hook = json!({ "url": "https://example.com/", "topics": ["data.note.#"] });
        let hook = admin.post("/api/v1/webhooks", hook).await.data()["id"].as_str().unwrap().to_owned();
        let mut server = server;
        server.kill();
        server.sql("UPDATE svc_subscriptions SET config = '{broken'").await;
        server.sql("UPDATE svc_webhooks SET topics = '[broken'").await;
        let server = server.restart().await;
        let admin = server.with_token(token);
        for _ in 0..3 {
            let listed = admin.get(subscriptions).await.data();
            assert_eq!((&listed[0]["consumer"], &listed[0]["config"]), (&json!("audit"), &json!({})));
            let listed = admin.get("/api/v1/webhooks").await.data();
            assert_eq!((&listed[0]["id"], &listed[0]["topics"]), (&json!(hook), &json!([])));
        }
        // The server cannot know whether they depend on the object, so it lists them.
        let dependents = admin.get("/api/v1/objects/audit/dependents").await.data();
        for kind in ["subscription", "webhook"] {
            let of_kind = dependents.as_array().unwrap().iter().find(|dependent| dependent["kind"] == kind).unwrap();
            assert_eq!(of_kind["detail"], "cannot be read in the database, so it may depend on this");
        }
        let (one, other) = (format!("{subscriptions}/audit"), format!("/api/v1/webhooks/{hook}"));
        let operator = server.with_token(key);
        for path in [&one, &other] {
            operator.delete(path).await.expect_error(403, "forbidden");
        }
        assert_eq!(admin.get(subscriptions).await.data().as_array().unwrap().len(), 1);
        assert_eq!(logged(&server, "svc_subscriptions", "config").await, 1, "{}", server.log());
        assert_eq!(logged(&server, "svc_webhooks", "topics").await, 1, "{}", server.log());

        // The same applies to a pattern that only a newer server can read.
        server.sql("UPDATE svc_webhooks SET topics = '[\"data..x\"]'").await;
        operator.delete(&other).await.expect_error(403, "forbidden");
        server.sql("UPDATE svc_webhooks SET topics = '[broken'").await;
        assert_eq!(admin.patch(&other, json!({ "enabled": false })).await.data()["enabled"], json!(false));

        // A caller with every right can delete them.
        for path in [&one, &other] {
            assert_eq!(admin.delete(path).await.status, 204, "{path}");
        }
    }

    async fn a_block_that_another_may_need_stays_while_nobody_can_read_what_it_needs(server: Server) {
        let admin = server.admin().await;
        let token = admin.token.clone();
        let next = block("first", json!({ "version": "0.2.0" })).await;
        assert_eq!(admin.install("", block("first", json!({})).await).await.status, 201);
        let second = block("second", json!({ "requires": { "handlers": ["first.go"] } })).await;
        assert_eq!(admin.install("", second).await.status, 201);
        let mut server = server;
        server.kill();
        server.sql("UPDATE svc_block_versions SET manifest = '{broken' WHERE block = 'second'").await;
        let server = server.restart().await;
        let admin = server.with_token(token);
        let listed = admin.get("/api/v1/blocks").await.data();
        assert_eq!(listed.as_array().unwrap().iter().map(|block| &block["name"]).collect::<Vec<_>>(), ["first"]);

        let refused = admin.install("?upgrade=true", next.clone()).await.expect_error(409, "conflict");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("`second`") && message.contains("Uninstall that block first"), "{message}");
        let inspect = admin.request("POST", "/api/v1/blocks/inspect").header("content-type", "application/wasm");
        let seen = server.send(inspect.body(next.clone())).await.data();
        assert_eq!(seen["problems"], json!([{ "error": "conflict", "message": message }]));
        admin.delete("/api/v1/blocks/first").await.expect_error(409, "conflict");
        // An installed block cannot need one that is not installed, so this install is allowed.
        assert_eq!(admin.install("", block("third", json!({})).await).await.status, 201);
        assert_eq!(logged(&server, "svc_block_versions", "manifest").await, 1, "{}", server.log());

        assert_eq!(admin.delete("/api/v1/blocks/second").await.status, 204);
        admin.delete("/api/v1/blocks/second").await.expect_error(404, "not_found");
        assert_eq!(admin.install("?upgrade=true", next).await.status, 200);
        assert_eq!(admin.delete("/api/v1/blocks/first").await.status, 204);
    }

    async fn a_block_whose_configuration_cannot_be_read_is_shown_and_does_not_run(server: Server) {
        let admin = server.admin().await;
        let token = admin.token.clone();
        let schema = json!({ "type": "object", "properties": { "cheer": { "type": "string", "default": "Well done!" } } });
        assert_eq!(admin.install("", block("one", json!({ "config": schema.clone() })).await).await.status, 201);
        let (path, action, hook) = ("/api/v1/blocks/one", "/api/v1/blocks/one/actions/go", "/api/v1/hooks/one/go");
        let set = json!({ "config": { "cheer": "Hooray!" } });
        assert_eq!(admin.patch(path, set.clone()).await.data()["config"], set["config"]);
        assert_eq!(admin.post(action, json!({})).await.status, 200);
        let mut server = server;
        server.kill();
        server.sql("UPDATE svc_blocks SET config = '{broken'").await;
        let server = server.restart().await;
        let admin = server.with_token(token);
        assert_eq!(admin.get(path).await.data()["config"], json!({}));
        assert_eq!(admin.get("/api/v1/blocks").await.data()[0]["config"], json!({}));
        admin.post(action, json!({})).await.expect_error(500, "internal");
        admin.post(hook, json!({})).await.expect_error(500, "internal");
        assert_eq!(logged(&server, "svc_blocks", "config").await, 1, "{}", server.log());
        // A new version would run with its default configuration.
        let next = block("one", json!({ "version": "0.2.0", "config": schema })).await;
        admin.install("?upgrade=true", next.clone()).await.expect_error(409, "conflict");

        assert_eq!(admin.patch(path, set.clone()).await.data()["config"], set["config"]);
        assert_eq!(admin.post(action, json!({})).await.status, 200);
        assert_eq!(admin.install("?upgrade=true", next).await.status, 200);
        assert_eq!(admin.get(path).await.data()["config"], set["config"]);
    }

    async fn a_task_that_cannot_be_read_demands_every_right(server: Server) {
        let admin = server.admin().await;
        let role = role(&admin, "operator", json!([{ "resource": "tasks", "actions": ["read", "delete"] }])).await;
        let (operator, _) = key(&admin, json!({ "name": "operator", "roleId": role })).await;
        assert_eq!(admin.install("", block("one", json!({})).await).await.status, 201);
        let config = json!({ "block": "one", "action": "go" });
        let task = json!({ "name": "hourly", "type": "block_action", "schedule": "0 * * * *", "config": config });
        let id = admin.post("/api/v1/tasks", task).await.data()["id"].as_str().unwrap().to_owned();
        server.sql("UPDATE svc_tasks SET config = '{broken' WHERE type = 'block_action'").await;
        let path = format!("/api/v1/tasks/{id}");
        assert_eq!(admin.get(&path).await.data()["config"], json!({}));
        operator.delete(&path).await.expect_error(403, "forbidden");
        assert_eq!(admin.delete(&path).await.status, 204);
    }
}

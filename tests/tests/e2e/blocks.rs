//! Blocks: they are installed at run time, run in a sandbox, and have exactly the rights that were granted.

pub(crate) mod ahead;
pub(crate) mod conditions;
pub(crate) mod hostile;
pub(crate) mod insight;
pub(crate) mod reuse;
pub(crate) mod shipped;
pub(crate) mod tasks;
pub(crate) mod versions;

use std::time::{Duration, Instant};

use blockbase_tests::{Admin, example_block, on_both_engines, pack};
use serde_json::{Value, json};

/// The manifest of `examples/tasks` with some keys replaced.
fn tasks_manifest(changes: Value) -> Value {
    let text = include_str!("../../../examples/tasks/block.json");
    let mut manifest: Value = serde_json::from_str(text).unwrap();
    for (key, value) in changes.as_object().unwrap() {
        manifest[key] = value.clone();
    }
    manifest
}

async fn call(who: &Admin<'_>, action: &str, input: Value) -> blockbase_tests::Answer {
    who.post(&format!("/api/v1/blocks/{action}"), input).await
}

on_both_engines! {
    async fn a_block_upserts_links_aggregates_and_expands(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("label", json!([
            { "name": "name", "type": "slug", "isUnique": true, "required": true },
            { "name": "uses", "type": "integer", "default": 0 },
        ])).await;
        admin.relate(json!({ "name": "labels", "kind": "many_to_many", "source": "task", "target": "label" })).await;
        let installed = admin.install("", example_block("labels").await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let task = admin.make("task", json!({ "title": "t" })).await;
        let names = |answer: &Value| -> Vec<String> {
            answer["task"]["labels"].as_array().unwrap().iter().map(|label| label["name"].as_str().unwrap().to_owned()).collect()
        };
        let added = call(&admin, "labels/actions/add", json!({ "task": task, "labels": ["home", "urgent"] })).await.data();
        assert_eq!((names(&added), &added["changed"], &added["uses"]), (vec!["urgent".to_owned(), "home".to_owned()], &json!(2), &json!(2)));
        let again = call(&admin, "labels/actions/add", json!({ "task": task, "labels": ["home"] })).await.data();
        assert_eq!((&again["changed"], &again["uses"]), (&json!(0), &json!(3)));
        let removed = call(&admin, "labels/actions/remove", json!({ "task": task, "labels": ["home"] })).await.data();
        assert_eq!((names(&removed), &removed["changed"]), (vec!["urgent".to_owned()], &json!(1)));
        assert_eq!(admin.get("/api/v1/data/label").await.json()["pagination"]["totalCount"], 2);
        let bad = call(&admin, "labels/actions/add", json!({ "task": task, "labels": ["Not A Slug"] })).await;
        assert_eq!(bad.status, 500, "{}", bad.text);
        let topics: Vec<String> = admin.outbox("task").await.into_iter().map(|(topic, _)| topic).collect();
        assert_eq!(topics, ["data.task.created", "data.task.linked", "data.task.unlinked"]);
    }

    async fn an_action_reads_and_writes_records_under_its_permissions(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let file = example_block("tasks").await;
        let dry = admin.install("?dryRun=true", file.clone()).await;
        assert_eq!((dry.status, &dry.json()["report"]["permissions"]["data"][0]["resource"]), (200, &json!("task")));
        assert_eq!(admin.get("/api/v1/blocks").await.data(), json!([]));

        let installed = admin.install("", file.clone()).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        assert_eq!(installed.data()["config"], json!({ "cheer": "Well done!" }));
        admin.install("", file).await.expect_error(409, "block_exists");

        let id = admin.post("/api/v1/data/task", json!({ "title": "a" })).await.data()["id"].clone();
        admin.post("/api/v1/data/task", json!({ "title": "b" })).await.data();
        let completed = call(&admin, "tasks/actions/complete", json!({ "id": id })).await;
        assert_eq!(completed.status, 200, "{}", completed.text);
        let completed = completed.data();
        assert_eq!((&completed["task"]["done"], &completed["open"], &completed["message"]), (&json!(true), &json!(1), &json!("Well done!")));
        let record = admin.get(&format!("/api/v1/data/task/{}", id.as_str().unwrap())).await.data();
        assert_eq!(record["updated_by"], admin.get("/api/v1/me").await.json()["userId"]);
        let events = server.sql("SELECT topic FROM svc_events ORDER BY seq").await.concat();
        assert_eq!(events.iter().filter(|topic| *topic == "data.task.updated").count(), 1);
        assert!(events.contains(&"block.installed".to_owned()));

        call(&admin, "tasks/actions/complete", json!({ "id": id })).await.expect_error(409, "conflict");
        let unknown = json!({ "id": "01a1fd35-a2b2-7324-8e3c-28e87a2e40f9" });
        call(&admin, "tasks/actions/complete", unknown).await.expect_error(404, "not_found");
        let failed = call(&admin, "tasks/actions/complete", json!({ "id": "x", "colour": 1 })).await.expect_error(400, "validation_failed");
        let paths: Vec<&str> = failed["issues"].as_array().unwrap().iter().map(|issue| issue["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["/id", ""]);
        call(&admin, "tasks/actions/nothing", json!({})).await.expect_error(404, "not_found");
        call(&admin, "nothing/actions/complete", json!({})).await.expect_error(404, "not_found");
        server.call("POST", "/api/v1/blocks/tasks/actions/complete", Some(json!({ "id": id }))).await.expect_error(401, "unauthorized");
        let other = server.with_token(server.sign_up("other").await);
        call(&other, "tasks/actions/complete", json!({ "id": id })).await.expect_error(403, "forbidden");

        // The lines are in the stored log soon after the call.
        let deadline = Instant::now() + blockbase_tests::WAIT_MAX;
        let lines = loop {
            let lines = admin.get("/api/v1/blocks/tasks/logs").await.data();
            if lines.as_array().unwrap().len() == 1 || Instant::now() > deadline {
                break lines;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!((&lines[0]["message"], &lines[0]["fields"]["task"]), (&json!("completed a task"), &id));
        server.log_with("completed a task").await;

        let configured = admin.patch("/api/v1/blocks/tasks", json!({ "config": { "cheer": "Hooray!" } })).await;
        assert_eq!(configured.data()["config"]["cheer"], "Hooray!");
        admin.patch("/api/v1/blocks/tasks", json!({ "config": { "cheer": 7 } })).await.expect_error(400, "validation_failed");
        admin.patch("/api/v1/blocks/tasks", json!({ "enabled": false })).await.data();
        call(&admin, "tasks/actions/complete", json!({ "id": id })).await.expect_error(404, "not_found");
        assert_eq!(admin.delete("/api/v1/blocks/tasks").await.status, 204);
        admin.get("/api/v1/blocks/tasks").await.expect_error(404, "not_found");
        admin.delete("/api/v1/blocks/tasks").await.expect_error(404, "not_found");
    }

    async fn a_block_gets_nothing_that_was_not_granted(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let file = example_block("tasks").await;
        let id = admin.post("/api/v1/data/task", json!({ "title": "a" })).await.data()["id"].clone();
        let permissions = |data: Value| json!({ "permissions": { "data": data } });
        for (name, data) in [
            ("none", json!([])),
            ("reads", json!([{ "resource": "task", "actions": ["read"] }])),
            ("elsewhere", json!([{ "resource": "note", "actions": ["manage"] }])),
        ] {
            let mut manifest = tasks_manifest(permissions(data));
            manifest["name"] = json!(name);
            let packed = pack(file.clone(), manifest).await.unwrap();
            assert_eq!(admin.install("", packed).await.status, 201);
            // The admin may do everything, but the block may not.
            call(&admin, &format!("{name}/actions/complete"), json!({ "id": id })).await.expect_error(403, "forbidden");
        }
        let record = admin.get(&format!("/api/v1/data/task/{}", id.as_str().unwrap())).await.data();
        assert_eq!(record["done"], false);

        // With `"as": "caller"`, the block's own permission is not enough.
        let as_caller = json!([{ "resource": "task", "actions": ["read", "update"], "as": "caller" }]);
        let mut manifest = tasks_manifest(permissions(as_caller));
        manifest["name"] = json!("borrows");
        manifest["actions"][0]["rbac"] = json!({ "resource": "borrows:use", "action": "read" });
        manifest["resources"] = json!([{ "name": "borrows:use", "actions": ["read"] }]);
        assert_eq!(admin.install("", pack(file, manifest).await.unwrap()).await.status, 201);
        let token = server.sign_up("ann").await;
        server.sql("INSERT INTO svc_roles VALUES ('r-use', 'use', NULL, '[{\"resource\":\"borrows:use\",\"actions\":[\"read\"]}]', 0, 0)").await;
        server.sql("INSERT INTO svc_user_roles SELECT id, 'r-use' FROM svc_users WHERE name = 'ann'").await;
        let ann = server.with_token(token);
        call(&ann, "borrows/actions/complete", json!({ "id": id })).await.expect_error(403, "forbidden");
        assert_eq!(call(&admin, "borrows/actions/complete", json!({ "id": id })).await.status, 200);
    }

    async fn files_that_are_no_blocks_are_refused_and_change_nothing(server: Server) {
        let admin = server.admin().await;
        let file = example_block("tasks").await;
        let module = b"\0asm\x01\0\0\0".to_vec();
        for (name, broken) in [
            ("text", b"(component)".to_vec()),
            ("nothing", Vec::new()),
            ("truncated", file[..file.len() / 2].to_vec()),
            ("a byte short", file[..file.len() - 1].to_vec()),
            ("a core module", module),
            ("without a manifest", b"\0asm\x0d\0\x01\0".to_vec()),
        ] {
            let error = admin.install("", broken).await.expect_error(400, "invalid_block");
            assert!(error["message"].as_str().unwrap().len() > 20, "{name}: {error}");
        }
        for (changes, code, part) in [
            (json!({ "requires": { "plugins": ["log", "config"] } }), "invalid_block", "`data`"),
            (json!({ "actions": [{ "name": "complete" }, { "name": "forget" }] }), "invalid_block", "`forget`"),
            (json!({ "hooks": [{ "name": "stripe" }] }), "invalid_block", "`stripe`"),
            (json!({ "requires": { "plugins": ["data", "log", "config", "payments"] } }), "missing_requirement", "`payments`"),
            (json!({ "requires": { "plugins": ["data", "log", "config"], "handlers": ["other.handler"] } }), "missing_requirement", "`other.handler`"),
        ] {
            let packed = pack(file.clone(), tasks_manifest(changes)).await.unwrap();
            let error = admin.install("", packed).await.expect_error(400, code);
            assert!(error["message"].as_str().unwrap().contains(part), "{error}");
        }
        for (changes, part) in [(json!({ "colour": 1 }), "colour"), (json!({ "version": "one" }), "version"), (json!({ "name": "A b" }), "A b")] {
            assert!(pack(file.clone(), tasks_manifest(changes)).await.unwrap_err().contains(part));
        }
        let request = admin.request("POST", "/api/v1/blocks").header("content-type", "application/json").body(file.clone());
        server.send(request).await.expect_error(415, "unsupported_media_type");
        let stranger = server.with_token(server.sign_up("stranger").await);
        stranger.install("", file.clone()).await.expect_error(403, "forbidden");
        assert_eq!(admin.get("/api/v1/blocks").await.data(), json!([]));
        assert_eq!(server.sql("SELECT name FROM svc_blocks").await.len(), 0);
        assert_eq!(admin.install("", file).await.status, 201);
    }

    async fn whatever_a_call_does_is_that_calls_error_alone(server: Server) {
        let admin = server.admin().await;
        assert_eq!(admin.install("", example_block("echo").await).await.status, 201);
        let input = json!({ "text": "Zoë", "number": 12345678901234567_u64, "list": [1, null] });
        assert_eq!(call(&admin, "echo/actions/echo", input.clone()).await.data(), input);
        let (spun, echoed) = tokio::join!(call(&admin, "echo/actions/spin", json!({})), call(&admin, "echo/actions/echo", json!({ "a": 1 })));
        spun.expect_error(504, "action_timeout");
        assert_eq!(echoed.data(), json!({ "a": 1 }));
        let trap = call(&admin, "echo/actions/panic", json!({})).await.expect_error(500, "action_failed");
        assert!(trap["message"].as_str().unwrap().starts_with("The block trapped"), "{trap}");
        let hoard = call(&admin, "echo/actions/hoard", json!({})).await.expect_error(500, "action_failed");
        assert!(hoard["message"].as_str().unwrap().contains("memory"), "{hoard}");
        for _ in 0..3 {
            // Each call has an instance of its own.
            assert_eq!(call(&admin, "echo/actions/remember", json!({})).await.data(), 1);
        }
        for (code, status, shown) in [
            ("not_found", 404, "not_found"),
            ("invalid_request", 400, "invalid_request"),
            ("forbidden", 403, "forbidden"),
            ("conflict", 409, "conflict"),
            ("unavailable", 503, "unavailable"),
            ("unauthorized", 500, "action_failed"),
            ("whatever", 500, "action_failed"),
        ] {
            let error = call(&admin, "echo/actions/refuse", json!({ "code": code })).await.expect_error(status, shown);
            assert_eq!(error["message"], "refused as asked");
        }
        // `echo` overrides the permission: it needs read on the block's own resource instead of update on `blocks`.
        let token = server.sign_up("ann").await;
        server.sql("INSERT INTO svc_roles VALUES ('r-echo', 'echo', NULL, '[{\"resource\":\"echo:calls\",\"actions\":[\"read\"]}]', 0, 0)").await;
        server.sql("INSERT INTO svc_user_roles SELECT id, 'r-echo' FROM svc_users WHERE name = 'ann'").await;
        let ann = server.with_token(token);
        assert_eq!(call(&ann, "echo/actions/echo", json!({})).await.status, 200);
        call(&ann, "echo/actions/remember", json!({})).await.expect_error(403, "forbidden");
        assert_eq!(server.call("GET", "/readyz", None).await.status, 200);
    }

    async fn installed_blocks_serve_after_a_restart(server: Server) {
        let admin = server.admin().await;
        assert_eq!(admin.install("", example_block("echo").await).await.status, 201);
        let token = admin.token.clone();
        let server = server.restart().await;
        let admin = server.with_token(token);
        assert_eq!(call(&admin, "echo/actions/echo", json!({ "a": 1 })).await.data(), json!({ "a": 1 }));

        // Compiled code that was tampered with is not loaded. The server compiles it again.
        let cache = server.directory().join("svc-data/blocks");
        for entry in std::fs::read_dir(cache).unwrap() {
            let file = entry.unwrap().path();
            let mut bytes = std::fs::read(&file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&file, bytes).unwrap();
        }
        let token = admin.token.clone();
        let server = server.restart().await;
        let admin = server.with_token(token);
        assert_eq!(call(&admin, "echo/actions/echo", json!({ "a": 2 })).await.data(), json!({ "a": 2 }));
    }

    async fn a_matching_event_leaves_a_delivery_for_each_subscription(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let subscriptions = json!([
            { "event": "data.task.*", "consumer": "tasks:all", "handler": "log_event" },
            { "event": "data.*.deleted", "consumer": "tasks:gone", "handler": "log_event" },
        ]);
        let packed = pack(example_block("tasks").await, tasks_manifest(json!({ "subscriptions": subscriptions }))).await.unwrap();
        assert_eq!(admin.install("", packed).await.status, 201);
        let id = admin.post("/api/v1/data/task", json!({ "title": "a" })).await.data()["id"].as_str().unwrap().to_owned();
        admin.post("/api/v1/data/task", json!({ "title": null })).await.expect_error(400, "not_null_violation");
        assert_eq!(admin.delete(&format!("/api/v1/data/task/{id}")).await.status, 204);
        let ledger = server
            .sql("SELECT e.topic, d.consumer, d.status FROM svc_deliveries d JOIN svc_events e ON e.seq = d.event_seq ORDER BY e.seq, d.consumer")
            .await;
        let mut ledger = ledger;
        // It does not matter whether these events have already been delivered.
        for row in &mut ledger {
            assert!(["pending", "delivered"].contains(&row.pop().unwrap().as_str()));
        }
        let row = |topic: &str, consumer: &str| vec![topic.to_owned(), consumer.to_owned()];
        assert_eq!(
            ledger,
            [row("data.task.created", "tasks:all"), row("data.task.deleted", "tasks:all"), row("data.task.deleted", "tasks:gone")]
        );
        assert_eq!(admin.delete("/api/v1/blocks/tasks").await.status, 204);
        let waiting = async || server.sql("SELECT consumer FROM svc_deliveries WHERE status <> 'delivered'").await.len();
        blockbase_tests::until("nothing waits", async || waiting().await == 0).await;
        assert_eq!(server.sql("SELECT consumer FROM svc_subscriptions").await.len(), 0);
    }
}

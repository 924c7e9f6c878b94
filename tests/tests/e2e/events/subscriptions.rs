//! Subscriptions over the API, and the built-in handlers.

use std::time::Duration;

use blockbase_tests::{Engine, Server, ServerBuilder, on_both_engines, until};
use serde_json::{Value, json};

use crate::events::webhooks::{ledger_until, quick};

const PATH: &str = "/api/v1/events/subscriptions";

/// Lines of a server's log that the handler `log_event` wrote for a group.
fn logged(server: &Server, consumer: &str) -> usize {
    let log = server.log();
    log.lines().filter(|line| line.contains(&format!("event.consumer=\"{consumer}\"")) && line.contains("event.payload")).count()
}

on_both_engines! {
    async fn persist_event_writes_every_token_once_and_emits_nothing(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let tokens = [
            ("event_id", "uuid", "event.id"), ("topic", "text", "event.topic"), ("at", "datetime", "event.occurredAt"), ("object", "text", "payload.object"),
            ("record_id", "uuid", "payload.id"), ("op", "text", "payload.op"), ("before", "json", "payload.before"), ("after", "json", "payload.after"),
            ("diff", "json", "payload.diff"), ("record", "json", "payload.record"), ("actor", "json", "payload.actor"), ("actor_id", "text", "payload.actorId"),
            ("after_text", "text", "payload.after"),
        ];
        let fields: Vec<Value> = tokens.iter().map(|(name, kind, _)| json!({ "name": name, "type": kind })).collect();
        admin.define("audit", json!(fields)).await;
        let map: serde_json::Map<String, Value> = tokens.iter().map(|(name, _, token)| ((*name).to_owned(), json!(token))).collect();
        let subscription = json!({ "event": "data.#", "consumer": "audit", "handler": "persist_event", "config": { "object": "audit", "map": map } });
        let made = admin.post(PATH, subscription.clone()).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let shown = json!({ "event": "data.#", "consumer": "audit", "handler": "persist_event", "config": subscription["config"], "perInstance": false, "source": null, "suspended": null });
        assert_eq!(made.json()["data"], shown);
        assert_eq!(admin.get(PATH).await.data(), json!([shown]));

        let created = admin.post("/api/v1/data/task", json!({ "title": "é" })).await.data();
        let path = format!("/api/v1/data/task/{}", created["id"].as_str().unwrap());
        let updated = admin.patch(&path, json!({ "title": "b" })).await.data();
        assert_eq!(admin.delete(&path).await.status, 204);
        until("three audit records", async || admin.get("/api/v1/data/audit").await.json()["pagination"]["totalCount"] == 3).await;
        let events = admin.get("/api/v1/events?topic=data.").await.data();
        assert_eq!(events.as_array().unwrap().len(), 3, "audit records left events");
        let user = admin.get("/api/v1/me").await.json()["userId"].clone();
        let actor = json!({ "userId": user, "apiKeyId": null, "via": "session" });
        for (event, record) in events.as_array().unwrap().iter().zip([&updated, &updated, &created]) {
            let found = admin.get(&format!("/api/v1/data/audit?event_id={}", event["id"].as_str().unwrap())).await.data();
            assert_eq!(found.as_array().unwrap().len(), 1);
            let row = &found[0];
            let payload = &event["payload"];
            for (column, expected) in [
                ("topic", &event["topic"]), ("at", &event["occurredAt"]), ("object", &json!("task")), ("record_id", &created["id"]), ("op", &payload["op"]),
                ("before", &payload["before"]), ("after", &payload["after"]), ("diff", &payload["diff"]), ("record", record), ("actor", &actor), ("actor_id", &user),
                ("created_by", &Value::Null),
            ] {
                assert_eq!(&row[column], expected, "{column} of {}", event["topic"]);
            }
            // A text column contains the document's JSON.
            let text: Value = row["after_text"].as_str().map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
            assert_eq!(text, payload["after"]);
        }
        // The records that it wrote are found, counted and searched like any other records.
        assert_eq!(admin.get("/api/v1/data/audit?search=data.task.created").await.json()["pagination"]["totalCount"], 1);
        assert_eq!(admin.delete(&format!("{PATH}/audit")).await.status, 204);
        admin.make("task", json!({ "title": "afterwards" })).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(admin.get("/api/v1/data/audit").await.json()["pagination"]["totalCount"], 3);
        admin.delete(&format!("{PATH}/audit")).await.expect_error(404, "not_found");
    }

    async fn what_cannot_be_persisted_fails_alone(engine: Engine) {
        let server = quick(engine).env("SVC_RETRY_BASE_MS", "200").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("audit", json!([{ "name": "title", "type": "json" }, { "name": "op", "type": "enum", "options": ["created"] }])).await;
        let config = json!({ "object": "audit", "map": { "op": "payload.op" } });
        assert_eq!(admin.post(PATH, json!({ "event": "data.task.#", "consumer": "audit", "handler": "persist_event", "config": config })).await.status, 201);
        // One batch has several events, and some of them do not fit the object.
        let id = admin.make("task", json!({ "title": "a" })).await;
        for number in 0..3 {
            admin.patch(&format!("/api/v1/data/task/{id}"), json!({ "title": format!("{number}") })).await.data();
            admin.make("task", json!({ "title": "b" })).await;
        }
        let entries = ledger_until(&admin, "consumer=audit&status=failed&dead=true", |entries| entries.len() == 3).await;
        for entry in &entries {
            assert_eq!((&entry["topic"], &entry["attempts"]), (&json!("data.task.updated"), &json!(5)));
            assert!(entry["error"].as_str().unwrap().contains("op"), "{entry}");
        }
        ledger_until(&admin, "consumer=audit&status=delivered", |entries| entries.len() == 4).await;
        assert_eq!(admin.get("/api/v1/data/audit").await.json()["pagination"]["totalCount"], 4);
        // If its object was deleted, every delivery fails and says why.
        assert_eq!(admin.delete("/api/v1/objects/audit").await.status, 204);
        admin.make("task", json!({ "title": "c" })).await;
        let entry = ledger_until(&admin, "consumer=audit", |entries| entries[0]["status"] == "failed").await.remove(0);
        assert!(entry["error"].as_str().unwrap().contains("audit"), "{entry}");
    }

    async fn bad_subscriptions_are_refused_and_change_nothing(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let with = |key: &str, value: Value| {
            let config = json!({ "object": "task", "map": { "title": "event.topic" } });
            let mut body = json!({ "event": "schema.#", "consumer": "group", "handler": "persist_event", "config": config });
            body[key] = value;
            body
        };
        let map = |object: &str, map: Value| with("config", json!({ "object": object, "map": map }));
        for (body, field) in [
            (with("event", json!("data..x")), "event"),
            (with("consumer", json!("")), "consumer"),
            (with("consumer", json!("Group")), "consumer"),
            (with("consumer", json!("webhook:x")), "consumer"),
            (with("consumer", json!("x".repeat(101))), "consumer"),
            (with("handler", json!("tasks.complete")), "handler"),
            (with("handler", json!("webhook")), "handler"),
            (with("handler", json!("log_event")), "config"),
            (with("perInstance", json!(true)), "perInstance"),
            (with("config", json!({})), "config"),
            (with("config", json!({ "object": "task" })), "config"),
            (map("task", json!({})), "config"),
            (map("task", json!({ "title": "payload.nothing" })), "config"),
            (map("task", json!({ "title": "event.topic", "nothing": "event.topic" })), "config"),
            (map("task", json!({ "title": "event.topic", "created_by": "payload.actorId" })), "config"),
            (map("task", json!({ "done": "event.topic" })), "config"),
            (map("nothing", json!({ "title": "event.topic" })), "config"),
        ] {
            let answer = admin.post(PATH, body.clone()).await;
            assert_eq!(answer.status, 400, "{body} {}", answer.text);
            assert_eq!(answer.expect_error(400, "invalid_value")["field"], field, "{body}");
        }
        for body in [json!({}), json!([]), with("unknown", json!(1)), with("config", json!("x")), with("perInstance", json!("x"))] {
            admin.post(PATH, body).await.expect_error(400, "invalid_request");
        }
        assert_eq!(admin.get(PATH).await.data(), json!([]));
        assert_eq!(admin.post(PATH, with("consumer", json!("group"))).await.status, 201);
        admin.post(PATH, with("consumer", json!("group"))).await.expect_error(409, "unique_violation");
    }

    async fn log_event_logs_what_matches(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        assert_eq!(admin.post(PATH, json!({ "event": "data.task.created", "consumer": "log", "handler": "log_event" })).await.status, 201);
        let id = admin.make("task", json!({ "title": "in the log" })).await;
        admin.patch(&format!("/api/v1/data/task/{id}"), json!({ "title": "not there" })).await.data();
        until("a line in the log", async || logged(&server, "log") == 1).await;
        assert!(server.log().contains("in the log") && !server.log().contains("not there"));
        ledger_until(&admin, "consumer=log", |entries| entries.len() == 1 && entries[0]["status"] == "delivered").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_gets_an_event_once_and_a_per_instance_subscription_on_each_instance() {
    let first = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = first.admin().await;
    admin.make_task_object().await;
    let second = first.builder().start().await;
    let third = first.builder().start().await;
    for (consumer, per_instance) in [("once", false), ("everywhere", true)] {
        let body = json!({ "event": "data.#", "consumer": consumer, "handler": "log_event", "perInstance": per_instance });
        assert_eq!(admin.post(PATH, body).await.status, 201);
    }
    // The other instances notice the subscription. An instance follows it as soon as it has logged a first event.
    let servers = [&first, &second, &third];
    until("every instance follows", async || {
        admin.make("task", json!({ "title": "first" })).await;
        servers.iter().all(|server| logged(server, "everywhere") > 0)
    })
    .await;
    // Only these events count. An instance misses the events from before it followed the subscription, but others may get them.
    for number in 0..40 {
        let server = [&first, &second, &third][number % 3];
        server.with_token(admin.token.clone()).make("task", json!({ "title": format!("counted {number}") })).await;
    }
    let counted = |server: &Server, consumer: &str| {
        let consumer = format!("event.consumer=\"{consumer}\"");
        server.log().lines().filter(|line| line.contains(&consumer) && line.contains("counted ")).count()
    };
    let has_all = |server: &&Server| counted(server, "everywhere") == 40;
    until("each instance has them all", async || servers.iter().all(has_all)).await;
    ledger_until(&admin, "consumer=once", |entries| entries.iter().all(|entry| entry["status"] == "delivered")).await;
    let once = || servers.iter().map(|server| counted(server, "once")).sum::<usize>();
    until("all are logged once", async || once() >= 40).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(once(), 40);
    assert!(servers.iter().all(has_all));
    assert_eq!(first.sql("SELECT count(*) FROM svc_deliveries WHERE consumer = 'everywhere'").await, [["0"]]);
    // After the deletion of the subscription, no instance logs its events.
    assert_eq!(admin.delete(&format!("{PATH}/everywhere")).await.status, 204);
    let everywhere = || servers.iter().map(|server| logged(server, "everywhere")).sum::<usize>();
    until("nobody follows any more", async || {
        let before = everywhere();
        admin.make("task", json!({ "title": "afterwards" })).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        everywhere() == before
    })
    .await;
}

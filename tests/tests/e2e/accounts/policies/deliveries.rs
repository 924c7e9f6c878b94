//! Deliveries under the conditions of grants: a webhook gets only events that its maker may read.

use blockbase_tests::{Engine, Receiver, on_both_engines, until};
use serde_json::{Value, json};

use super::events::recent;
use super::{World, define, path, world};
use crate::accounts::roles::{role, user};
use crate::events::webhooks::{ledger_until, make, quick};

on_both_engines! {
    async fn others_act_on_a_webhook_if_they_read_every_record(server: Server) {
        let World { admin, ann, ann_id, .. } = world(&server).await;
        let hooks = json!([{ "resource": "webhooks", "actions": ["manage"] }, { "resource": "events", "actions": ["manage"] }]);
        role(&admin, "hooks", hooks).await;
        assert_eq!(admin.post(&format!("/api/v1/users/{ann_id}/roles"), json!({ "roleId": "hooks" })).await.status, 200);
        let hook = json!({ "url": "https://hooks.example.com/", "topics": ["data.task.#"], "enabled": false });
        let (of_admin, _) = make(&admin, hook.clone()).await;
        let (of_ann, _) = make(&ann, hook).await;
        for (id, status) in [(&of_admin, 403), (&of_ann, 200)] {
            let webhook = format!("/api/v1/webhooks/{id}");
            assert_eq!(ann.post(&format!("{webhook}/rotate-secret"), Value::Null).await.status, status);
            assert_eq!(ann.patch(&webhook, json!({ "name": "x" })).await.status, status);
            assert_eq!(ann.delete(&webhook).await.status, if status == 200 { 204 } else { status });
        }
    }
}

on_both_engines! {
    async fn a_subscription_copies_only_what_its_maker_may_read(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        define(&admin).await;
        admin.define("copy", json!([{ "name": "record", "type": "json" }])).await;
        role(&admin, "keeper", json!([
            { "resource": "events", "actions": ["manage"] },
            { "resource": "copy", "actions": ["create"] },
            { "resource": "task", "actions": ["read"], "where": { "state": "open" }, "fields": { "read": ["title", "state"] } },
        ])).await;
        let (keeper, _) = user(&admin, "keeper", Some("keeper")).await;
        let config = json!({ "object": "copy", "map": { "record": "payload.after" } });
        let body = json!({ "event": "data.task.#", "consumer": "copies", "handler": "persist_event", "config": config });
        let made = keeper.post("/api/v1/events/subscriptions", body).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let seen = admin.make("task", json!({ "title": "seen", "points": 3 })).await;
        let hidden = admin.make("task", json!({ "title": "hidden", "state": "done" })).await;
        admin.patch(&path(&hidden), json!({ "title": "came", "state": "open", "points": 4 })).await.data();
        let is_settled = |entries: &[Value]| entries.len() == 3 && entries.iter().all(|entry| entry["status"] == "delivered");
        let entries = ledger_until(&admin, "consumer=copies", is_settled).await;
        let skipped: Vec<&Value> = entries.iter().filter(|entry| entry["skipped"] == true).collect();
        assert_eq!((skipped.len(), &skipped[0]["attempts"]), (1, &json!(0)), "{entries:#?}");
        let copies = admin.get("/api/v1/data/copy?sort=created_at").await.data();
        let mut copied: Vec<Value> = copies.as_array().unwrap().iter().map(|copy| copy["record"].clone()).collect();
        copied.sort_by_key(|record| record["title"] == "came");
        let record = |id: &str, title: &str| json!({ "id": id, "title": title, "state": "open" });
        assert_eq!(copied, [record(&seen, "seen"), record(&hidden, "came")]);
    }
}

on_both_engines! {
    async fn a_subscription_writes_only_for_a_maker_who_may_create_any_record(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        admin.define("copy", json!([{ "name": "topic", "type": "text" }])).await;
        role(&admin, "keeper", json!([])).await;
        let (keeper, _) = user(&admin, "keeper", Some("keeper")).await;
        let give = async |create: Value| {
            let events = json!({ "resource": "events", "actions": ["manage"] });
            let grants = json!([events, { "resource": "task", "actions": ["read"] }, create]);
            let given = admin.patch("/api/v1/roles/keeper", json!({ "permissions": grants })).await;
            assert_eq!(given.status, 200, "{}", given.text);
        };
        let config = json!({ "object": "copy", "map": { "topic": "event.topic" } });
        let body = json!({ "event": "data.task.#", "consumer": "copies", "handler": "persist_event", "config": config });
        for (member, limit) in [
            ("where", json!({ "topic": { "neq": "x" } })),
            ("check", json!({ "topic": { "neq": "x" } })),
            ("fields", json!({ "write": ["topic"] })),
            ("rowPolicy", json!("own")),
        ] {
            let mut create = json!({ "resource": "copy", "actions": ["create"] });
            create[member] = limit;
            give(create).await;
            let refused = keeper.post("/api/v1/events/subscriptions", body.clone()).await;
            assert_eq!(refused.status, 403, "{member}: {}", refused.text);
        }
        give(json!({ "resource": "copy", "actions": ["create"] })).await;
        let made = keeper.post("/api/v1/events/subscriptions", body).await;
        assert_eq!(made.status, 201, "{}", made.text);
    }
}

on_both_engines! {
    async fn each_instance_gets_what_the_maker_of_a_subscription_may_read(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        define(&admin).await;
        role(&admin, "keeper", json!([
            { "resource": "events", "actions": ["manage"] },
            { "resource": "task", "actions": ["read"], "where": { "state": "open" }, "fields": { "read": ["title", "state"] } },
        ])).await;
        let (keeper, _) = user(&admin, "keeper", Some("keeper")).await;
        let body = json!({ "event": "data.task.#", "consumer": "watch", "handler": "log_event", "perInstance": true });
        let made = keeper.post("/api/v1/events/subscriptions", body).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let logged = || -> Vec<String> {
            let is_logged = |line: &&str| line.contains("event.consumer=\"watch\"") && line.contains("event.payload");
            server.log().lines().filter(is_logged).map(str::to_owned).collect()
        };
        until("the instance follows", async || {
            admin.make("task", json!({ "title": "begin" })).await;
            !logged().is_empty()
        })
        .await;
        admin.make("task", json!({ "title": "shown", "points": 3 })).await;
        let moved = admin.make("task", json!({ "title": "hidden", "state": "done" })).await;
        admin.patch(&path(&moved), json!({ "title": "came", "state": "open", "points": 4 })).await.data();
        admin.make("task", json!({ "title": "finish" })).await;
        let count = |word: &str| logged().iter().filter(|line| line.contains(word)).count();
        until("the last event is logged", async || count("finish") == 1).await;
        assert_eq!(["shown", "came", "hidden", "points", "assignee"].map(count), [1, 1, 0, 0, 0], "{:#?}", logged());
    }
}

on_both_engines! {
    async fn the_ledger_shows_the_entries_of_the_events_that_are_shown(engine: Engine) {
        let server = quick(engine).start().await;
        let receiver = Receiver::start().await;
        let admin = server.admin().await;
        admin.define("task", json!([{ "name": "title", "type": "text" }, { "name": "open", "type": "boolean" }])).await;
        admin.define("label", json!([{ "name": "text", "type": "text" }])).await;
        admin.relate(json!({ "name": "labels", "kind": "many_to_many", "source": "task", "target": "label" })).await;
        let (webhook, _) = make(&admin, json!({ "url": receiver.url, "topics": ["data.task.#"] })).await;
        let (open, shut) = (admin.make("task", json!({ "open": true })).await, admin.make("task", json!({ "open": false })).await);
        let (plain, secret) = (admin.make("label", json!({ "text": "plain" })).await, admin.make("label", json!({ "text": "secret" })).await);
        let links = |task: &str| format!("{}/links/labels", path(task));
        for (task, label) in [(&open, &plain), (&open, &secret), (&shut, &secret), (&shut, &plain)] {
            assert_eq!(admin.post(&links(task), json!({ "ids": [label] })).await.status, 200);
        }
        assert_eq!(admin.delete_with(&links(&open), json!({ "ids": [secret] })).await.status, 200);
        let group = format!("consumer=webhook:{webhook}");
        let are_delivered =
            |entries: &[Value]| entries.len() == 7 && entries.iter().all(|entry| entry["status"] == "delivered");
        ledger_until(&admin, &group, are_delivered).await;

        let events = json!({ "resource": "events", "actions": ["read", "update"] });
        let of = |resource: &str, more: Value| {
            let mut grant = json!({ "resource": resource, "actions": ["read"] });
            grant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            grant
        };
        let not_secret = json!({ "where": { "text": { "neq": "secret" } } });
        let open_ones = json!({ "where": { "open": true } });
        let own = json!({ "rowPolicy": "own" });
        // For each reader, how many tasks and how many events of links they see.
        let readers = [
            ("all", vec![of("task", json!({})), of("label", json!({}))], 2, 5),
            ("some_labels", vec![of("task", json!({})), of("label", not_secret.clone())], 2, 2),
            ("own_labels", vec![of("task", json!({})), of("label", own.clone())], 2, 0),
            ("no_labels", vec![of("task", json!({}))], 2, 0),
            ("open_tasks", vec![of("task", open_ones.clone()), of("label", json!({}))], 1, 3),
            ("open_tasks_some_labels", vec![of("task", open_ones), of("label", not_secret)], 1, 1),
            ("own_tasks", vec![of("task", own), of("label", json!({}))], 0, 0),
            ("no_relation", vec![of("task", json!({ "fields": { "read": ["title"] } })), of("label", json!({}))], 2, 0),
        ];
        let ids = |entries: &Value, name: &str| -> Vec<String> {
            entries.as_array().unwrap().iter().map(|entry| entry[name].as_str().unwrap().to_owned()).collect()
        };
        let all = ids(&admin.get("/api/v1/events?object=task&limit=100").await.data(), "id");
        for (name, mut grants, tasks, links) in readers {
            grants.push(events.clone());
            role(&admin, name, json!(grants)).await;
            let (reader, _) = user(&admin, name, Some(name)).await;
            let shown = reader.get("/api/v1/events?object=task&limit=100").await.data();
            let of_links = shown.as_array().unwrap().iter().filter(|event| event["topic"] != "data.task.created").count();
            let shown = ids(&shown, "id");
            assert_eq!((shown.len() - of_links, of_links), (tasks, links), "{name}");
            let listed = reader.get(&format!("/api/v1/events/deliveries?{group}")).await.json();
            assert_eq!(ids(&listed["data"], "eventId"), shown, "{name}");
            assert_eq!(listed["pagination"]["totalCount"], shown.len(), "{name}");
            let second = reader.get(&format!("/api/v1/events/deliveries?{group}&pageSize=1&page=2")).await.json();
            assert_eq!(ids(&second["data"], "eventId"), shown.get(1).cloned().into_iter().collect::<Vec<_>>(), "{name}");
            assert_eq!(second["pagination"]["totalCount"], shown.len(), "{name}");
            let topic = reader.get(&format!("/api/v1/events/deliveries?{group}&topic=data.task.linked&status=delivered")).await.json();
            let linked = listed["data"].as_array().unwrap().iter().filter(|entry| entry["topic"] == "data.task.linked").count();
            assert_eq!(topic["pagination"]["totalCount"], linked, "{name}");
            let counts = reader.get(&format!("/api/v1/events/deliveries/counts?{group}")).await.data();
            let counted: u64 = counts.as_array().unwrap().iter().map(|counts| counts["delivered"].as_u64().unwrap()).sum();
            assert_eq!(counted, shown.len() as u64, "{name}");
            for id in &all {
                let entry = format!("/api/v1/events/deliveries/{id}/webhook:{webhook}");
                let is_shown = shown.contains(id);
                assert_eq!(reader.get(&entry).await.status, if is_shown { 200 } else { 404 }, "{name}, {id}");
                // Nothing is retried, because it was delivered. But a reader who sees no entry gets the same answer as without one.
                let retry = json!({ "eventId": id, "consumer": format!("webhook:{webhook}") });
                let refused = reader.post("/api/v1/events/deliveries/retry", retry).await;
                assert_eq!(refused.status == 404, !is_shown, "{name}, {id}: {}", refused.text);
                assert!([403, 404, 409].contains(&refused.status), "{name}, {id}: {}", refused.text);
            }
        }
    }
}

on_both_engines! {
    async fn the_targets_of_many_entries_are_looked_up_at_once(engine: Engine) {
        let server = quick(engine).env("SVC_LOG", "info,blockbase_store::sql=trace").start().await;
        let admin = server.admin().await;
        admin.define("task", json!([{ "name": "title", "type": "text" }])).await;
        admin.define("label", json!([{ "name": "text", "type": "text" }])).await;
        admin.relate(json!({ "name": "labels", "kind": "many_to_many", "source": "task", "target": "label" })).await;
        let events = json!({ "resource": "events", "actions": ["read"] });
        let mut readers = Vec::new();
        for (name, condition) in [
            ("reader", json!({ "text": { "neq": "secret" } })),
            ("moment", json!({ "text": { "neq": "secret" }, "created_at": { "lte": "$now" } })),
        ] {
            let labels = json!({ "resource": "label", "actions": ["read"], "where": condition });
            role(&admin, name, json!([events, { "resource": "task", "actions": ["read"] }, labels])).await;
            readers.push((name, user(&admin, name, Some(name)).await.0));
        }
        let subscription = json!({ "event": "data.task.linked", "consumer": "links", "handler": "log_event" });
        assert_eq!(admin.post("/api/v1/events/subscriptions", subscription).await.status, 201);
        let task = admin.make("task", json!({ "title": "a" })).await;
        for number in 0..20 {
            let text = if number % 5 == 0 { "secret" } else { "plain" };
            let label = admin.make("label", json!({ "text": text })).await;
            assert_eq!(admin.post(&format!("{}/links/labels", path(&task)), json!({ "ids": [label] })).await.status, 200);
        }
        let are_delivered =
            |entries: &[Value]| entries.len() == 20 && entries.iter().all(|entry| entry["status"] == "delivered");
        ledger_until(&admin, "consumer=links", are_delivered).await;
        // When the log has the request with the mark, it also has all statements before it.
        let reads = async |mark: &str| {
            server.send(admin.request("GET", "/api/v1/me").header("x-request-id", mark)).await;
            let is_read = |line: &&str| line.contains("a statement runs") && line.contains("label");
            server.log_with(mark).await.lines().filter(is_read).count()
        };
        for (name, reader) in readers {
            let before = reads(&format!("before-{name}")).await;
            let listed = reader.get("/api/v1/events/deliveries?consumer=links").await.json();
            assert_eq!(listed["pagination"]["totalCount"], 16, "{name}: {listed}");
            assert_eq!(reads(&format!("after-{name}")).await - before, 1, "{name}");
        }
    }
}

async fn a_webhook_gets_what_its_maker_may_read(engine: Engine) {
    let server = quick(engine).start().await;
    let receiver = Receiver::start().await;
    let World { admin, ann, ann_id, teams: [one, two], tasks: [a, b, c] } = world(&server).await;
    let hooks = json!([{ "resource": "webhooks", "actions": ["manage"] }, { "resource": "events", "actions": ["read"] }]);
    role(&admin, "hooks", hooks).await;
    assert_eq!(admin.post(&format!("/api/v1/users/{ann_id}/roles"), json!({ "roleId": "hooks" })).await.status, 200);
    let (webhook, _) = make(&ann, json!({ "url": receiver.url, "topics": ["data.task.#"] })).await;

    admin.patch(&path(&c), json!({ "title": "hidden" })).await.data();
    admin.patch(&path(&a), json!({ "team_id": two, "title": "left" })).await.data();
    admin.patch(&path(&c), json!({ "team_id": one })).await.data();
    admin.patch(&path(&b), json!({ "title": "seen" })).await.data();
    let group = format!("consumer=webhook:{webhook}");
    let entries =
        ledger_until(&admin, &group, |entries| entries.len() == 4 && entries.iter().all(|entry| entry["status"] == "delivered"))
            .await;
    // The ledger shows the entries of events that she may see. She sees no entry for the change of a task that she may not read.
    let own = ann.get(&format!("/api/v1/events/deliveries?{group}")).await.json();
    let ids = |entries: &[Value]| entries.iter().map(|entry| entry["eventId"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let shown = ids(own["data"].as_array().unwrap());
    let all: Vec<Value> = recent(&ann).await;
    assert!(shown.iter().all(|id| all.iter().any(|event| event["id"] == json!(id))), "{own}");
    assert_eq!((shown.len(), &own["pagination"]["totalCount"]), (3, &json!(3)), "{own}");
    for id in ids(&entries) {
        let status = ann.get(&format!("/api/v1/events/deliveries/{id}/webhook:{webhook}")).await.status;
        assert_eq!(status, if shown.contains(&id) { 200 } else { 404 }, "{id}");
    }
    let second = ann.get(&format!("/api/v1/events/deliveries?{group}&pageSize=2&page=2")).await.json();
    assert_eq!(ids(second["data"].as_array().unwrap()), shown[2..]);
    let skipped: Vec<&Value> = entries.iter().filter(|entry| entry["skipped"] == true).collect();
    assert_eq!((skipped.len(), &skipped[0]["attempts"]), (1, &json!(0)), "{entries:#?}");
    let mut titles: Vec<(Value, Value)> = receiver
        .received()
        .iter()
        .map(|received| {
            let payload = received.json()["payload"].clone();
            (payload["before"]["title"].clone(), payload["after"]["title"].clone())
        })
        .collect();
    titles.sort_by_key(|(before, after)| format!("{before}{after}"));
    let expected = [(json!("a"), Value::Null), (json!("b"), json!("seen")), (Value::Null, json!("hidden"))];
    assert_eq!(titles, expected);
}

#[tokio::test]
async fn a_webhook_gets_what_its_maker_may_read_on_sqlite() {
    a_webhook_gets_what_its_maker_may_read(Engine::Sqlite).await;
}

#[tokio::test]
async fn a_webhook_gets_what_its_maker_may_read_on_postgres() {
    a_webhook_gets_what_its_maker_may_read(Engine::Postgres).await;
}

//! Deliveries under the conditions of grants: a webhook gets only events that its maker may read.

use blockbase_tests::{Engine, Receiver, on_both_engines};
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

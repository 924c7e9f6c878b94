//! The seven consumers of events: streams, subscriptions of GraphQL, `GET /events`, the ledger, webhooks, stored subscriptions
//! and the handlers of blocks. Each of them is shown the same of an event.

use std::collections::BTreeMap;

use blockbase_tests::{Admin, Receiver, inspect, on_both_engines, pack, test_block};
use serde_json::{Value, json};

use super::events::recent;
use super::{define, of_my_teams, path};
use crate::accounts::roles::{role, user};
use crate::events::Stream;
use crate::events::webhooks::{ledger, ledger_until, make, quick};
use crate::promises::policy_grants::subscription::Subscription;

/// The consumer groups of the stored subscription and of the block.
const STORED: &str = "stored";
const OF_BLOCK: &str = "listener:first";
/// The members of a payload that the stored subscription keeps. It cannot keep those of links.
const KEPT: [&str; 6] = ["object", "id", "op", "before", "after", "diff"];

/// The payloads of the events that a consumer got, by the ids of the events.
type Payloads = BTreeMap<String, Value>;

/// How a consumer keeps a payload.
type Kept<'a> = &'a dyn Fn(&Value) -> Value;

/// Labels of tasks, and the objects in which the stored subscription and the block keep events.
async fn define_more(admin: &Admin<'_>) {
    define(admin).await;
    admin.define("label", json!([{ "name": "text", "type": "text" }])).await;
    admin.relate(json!({ "name": "labels", "kind": "many_to_many", "source": "task", "target": "label" })).await;
    let field = |name: &str, kind: &str| json!({ "name": name, "type": kind });
    let kept = KEPT.map(|name| field(name_of(name), if ["before", "after", "diff"].contains(&name) { "json" } else { "text" }));
    admin.define("stored", json!(kept.into_iter().chain([field("event", "text")]).collect::<Vec<_>>())).await;
    let heard = [field("event", "text"), field("tag", "text"), field("actor", "text"), field("payload", "json")];
    admin.define("heard", json!(heard)).await;
}

/// The field for a member of a payload.
fn name_of(member: &str) -> &str {
    if member == "id" { "record" } else { member }
}

/// Ann reads the tasks of her teams without their points, and labels that are not secret. She may have each kind of consumer.
async fn watcher<'a>(admin: &Admin<'a>) -> (Admin<'a>, String) {
    let tasks = json!({ "read": ["title", "state", "team_id", "labels"] });
    let mut grants = vec![
        json!({ "resource": "task", "actions": ["read"], "where": of_my_teams(), "fields": tasks }),
        json!({ "resource": "label", "actions": ["read"], "where": { "text": { "neq": "secret" } } }),
        json!({ "resource": "data", "actions": ["read"] }),
    ];
    for resource in ["events", "webhooks", "blocks"] {
        grants.push(json!({ "resource": resource, "actions": ["manage"] }));
    }
    for object in ["stored", "heard"] {
        grants.push(json!({ "resource": object, "actions": ["create"] }));
    }
    role(admin, "watcher", json!(grants)).await;
    user(admin, "ann", Some("watcher")).await
}

/// Makes the consumers to which events of tasks are delivered. Returns the group of the webhook.
async fn subscribe(ann: &Admin<'_>, url: &str) -> String {
    let (webhook, _) = make(ann, json!({ "url": url, "topics": ["data.task.#"] })).await;
    let kept = KEPT.map(|name| (name_of(name).to_owned(), json!(format!("payload.{name}"))));
    let map: serde_json::Map<String, Value> = kept.into_iter().chain([("event".to_owned(), json!("event.id"))]).collect();
    let config = json!({ "object": "stored", "map": map });
    let body = json!({ "event": "data.task.#", "consumer": STORED, "handler": "persist_event", "config": config });
    let made = ann.post("/api/v1/events/subscriptions", body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let file = test_block("listener").await;
    let mut manifest = inspect(file.clone()).await;
    let config = json!({ "tag": "first", "keeps": true });
    manifest["subscriptions"] = json!([{ "event": "data.task.#", "consumer": OF_BLOCK, "handler": "hear", "config": config }]);
    manifest["permissions"]["data"] = json!([{ "resource": "heard", "actions": ["create"] }]);
    let installed = ann.install("", pack(file, manifest).await.unwrap()).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    format!("webhook:{webhook}")
}

/// The ids and payloads of events.
fn of_events(events: &[Value]) -> Vec<(String, Value)> {
    events.iter().map(|event| (event["id"].as_str().unwrap().to_owned(), event["payload"].clone())).collect()
}

/// The payload as the stored subscription keeps it.
fn stored(payload: &Value) -> Value {
    KEPT.iter().map(|member| ((*member).to_owned(), payload[*member].clone())).collect()
}

/// The records in which a consumer kept events, each with the event's id.
async fn records(admin: &Admin<'_>, object: &str, payload: impl Fn(&Value) -> Value) -> Payloads {
    let kept = admin.get(&format!("/api/v1/data/{object}?limit=100")).await.data();
    kept.as_array().unwrap().iter().map(|row| (row["event"].as_str().unwrap().to_owned(), payload(row))).collect()
}

on_both_engines! {
    async fn all_seven_consumers_are_shown_the_same_of_each_event(engine: Engine) {
        let server = quick(engine).start().await;
        let receiver = Receiver::start().await;
        let admin = server.admin().await;
        define_more(&admin).await;
        let (ann, ann_id) = watcher(&admin).await;
        let one = admin.make("team", json!({ "name": "one" })).await;
        let two = admin.make("team", json!({ "name": "two" })).await;
        admin.make("member", json!({ "user_id": ann_id, "team_id": one })).await;
        let task = async |title: &str, team: &str| {
            admin.make("task", json!({ "title": title, "team_id": team, "assignee": "somebody", "points": 1 })).await
        };
        let (moving, other) = (task("moving", &one).await, task("other", &two).await);
        let mut labels = Vec::new();
        for text in ["plain", "secret", "secret"] {
            labels.push(admin.make("label", json!({ "text": text })).await);
        }
        let webhook = subscribe(&ann, &receiver.url).await;
        let start = admin.get("/api/v1/events?limit=1").await.data()[0]["id"].as_str().unwrap().to_owned();
        let mut stream = Stream::open(&ann, &format!("?topics=data.task.%23&since={start}")).await;
        let mut subscription = Subscription::open(&ann, &admin).await;

        let change = async |id: &str, values: Value| drop(admin.patch(&path(id), values).await.data());
        let links = async |method: &str, id: &str, labels: &[String]| {
            let body = json!({ "ids": labels });
            let changed = server.call_as(Some(&admin.token), method, &format!("{}/links/labels", path(id)), Some(body)).await;
            assert_eq!(changed.status, 200, "{}", changed.text);
        };
        let remove = async |id: &str| assert_eq!(admin.delete(&path(id)).await.status, 204);
        let made = task("made", &one).await;
        let never = task("never", &two).await;
        change(&moving, json!({ "title": "seen", "points": 2 })).await;
        change(&moving, json!({ "points": 3, "assignee": "nobody" })).await;
        change(&moving, json!({ "team_id": two, "title": "left", "points": 4 })).await;
        change(&moving, json!({ "title": "away" })).await;
        change(&moving, json!({ "team_id": one, "state": "done" })).await;
        change(&other, json!({ "title": "as hidden as before" })).await;
        links("POST", &moving, &labels[..2]).await;
        links("POST", &moving, &labels[2..]).await;
        links("POST", &other, &labels[..1]).await;
        links("DELETE", &moving, &labels[..2]).await;
        links("DELETE", &moving, &labels[2..]).await;
        links("DELETE", &other, &labels[..1]).await;
        remove(&made).await;
        remove(&never).await;
        let end = task("end", &one).await;

        let admin_id = admin.get("/api/v1/me").await.json()["userId"].clone();
        let actor = json!({ "userId": admin_id, "apiKeyId": null, "via": "session" });
        let image = |id: &str, title: &str, state: &str| json!({ "id": id, "title": title, "state": state, "team_id": one });
        let record = |op: &str, id: &str, [before, after, diff]: [Value; 3]| {
            json!({ "object": "task", "id": id, "op": op, "before": before, "after": after, "diff": diff, "actor": actor })
        };
        let of_links = |op: &str, targets: &[String]| {
            json!({
                "object": "task", "id": moving, "op": op, "relationship": "labels", "targetObject": "label", "targetIds": targets,
                "actor": actor,
            })
        };
        const NONE: Value = Value::Null;
        let retitled = json!({ "title": { "before": "moving", "after": "seen" } });
        let seen = || image(&moving, "seen", "open");
        // The events in their order, and what Ann is shown of each: the rows of her teams, without points and assignees.
        let table = [
            ("created", &made, Some(record("created", &made, [NONE, image(&made, "made", "open"), NONE]))),
            ("created", &never, None),
            // The hidden fields are cut from the images and from the difference.
            ("updated", &moving, Some(record("updated", &moving, [image(&moving, "moving", "open"), seen(), retitled]))),
            // An update of hidden fields alone has an empty difference.
            ("updated", &moving, Some(record("updated", &moving, [seen(), seen(), json!({})]))),
            // The row leaves her view, changes there, and enters her view again.
            ("updated", &moving, Some(record("updated", &moving, [seen(), NONE, NONE]))),
            ("updated", &moving, None),
            ("updated", &moving, Some(record("updated", &moving, [NONE, image(&moving, "away", "done"), NONE]))),
            ("updated", &other, None),
            // Events of links list the targets that she reads. Without one, or without read on the record, nothing is shown.
            ("linked", &moving, Some(of_links("linked", &labels[..1]))),
            ("linked", &moving, None),
            ("linked", &other, None),
            ("unlinked", &moving, Some(of_links("unlinked", &labels[..1]))),
            ("unlinked", &moving, None),
            ("unlinked", &other, None),
            ("deleted", &made, Some(record("deleted", &made, [image(&made, "made", "open"), NONE, NONE]))),
            ("deleted", &never, None),
            ("created", &end, Some(record("created", &end, [NONE, image(&end, "end", "open"), NONE]))),
        ];
        let mut streamed = Vec::new();
        for _ in table.iter().filter(|(.., payload)| payload.is_some()) {
            streamed.push(stream.event().await);
        }
        // The stream has shown the last event, so the lists have all of them.
        let all = recent(&admin).await;
        let new = &all[all.len() - table.len()..];
        for (event, (op, id, _)) in new.iter().zip(&table) {
            let is = (event["topic"].clone(), event["payload"]["id"].clone());
            assert_eq!(is, (json!(format!("data.task.{op}")), json!(id)), "{event}");
        }
        let ids: Vec<String> = of_events(new).into_iter().map(|(id, _)| id).collect();
        let payloads = table.iter().map(|(.., payload)| payload.as_ref());
        let expected: Vec<(&String, Option<&Value>)> = ids.iter().zip(payloads).collect();
        let shown_ids: Vec<&String> = expected.iter().filter(|(_, payload)| payload.is_some()).map(|(id, _)| *id).collect();

        // The consumers that have an order show the events in the order of the changes.
        let streamed = of_events(&streamed);
        let subscribed = of_events(&subscription.events(shown_ids.len()).await);
        let mut listed = of_events(&recent(&ann).await);
        listed.retain(|(id, _)| ids.contains(id));
        for (consumer, got) in [("a stream", &streamed), ("a subscription of GraphQL", &subscribed), ("GET /events", &listed)] {
            assert_eq!(got.iter().map(|(id, _)| id).collect::<Vec<_>>(), shown_ids, "{consumer}");
        }
        // The ledger shows the entries of the same events. What is not shown is settled without an attempt.
        for group in [webhook.as_str(), STORED, OF_BLOCK] {
            let query = format!("consumer={group}&pageSize=100");
            let is_delivered = |entry: &Value| entry["status"] == "delivered";
            let are_settled = |entries: &[Value]| entries.len() == table.len() && entries.iter().all(is_delivered);
            let entries = ledger_until(&admin, &query, are_settled).await;
            for entry in &entries {
                let is_shown = shown_ids.iter().any(|id| entry["eventId"] == json!(id));
                assert_eq!((&entry["skipped"], entry["attempts"] == 0), (&json!(!is_shown), !is_shown), "{entry}");
            }
            let mut of_ann: Vec<Value> = ledger(&ann, &query).await.iter().map(|entry| entry["eventId"].clone()).collect();
            of_ann.sort_by_key(|id| ids.iter().position(|known| *id == json!(known)));
            assert_eq!(json!(of_ann), json!(shown_ids), "the ledger of {group}");
        }
        let received = receiver.received().iter().map(|request| (request.id(), request.json()["payload"].clone())).collect();
        let heard = records(&admin, "heard", |row| row["payload"].clone()).await;
        let kept = |row: &Value| -> Value {
            KEPT.iter().map(|member| ((*member).to_owned(), row[name_of(member)].clone())).collect()
        };
        let in_records = records(&admin, "stored", kept).await;
        let whole = |payload: &Value| payload.clone();
        let consumers: [(&str, Payloads, Kept); 6] = [
            ("a stream", streamed.into_iter().collect(), &whole),
            ("a subscription of GraphQL", subscribed.into_iter().collect(), &whole),
            ("GET /events", listed.into_iter().collect(), &whole),
            ("a webhook", received, &whole),
            ("a block", heard, &whole),
            ("a stored subscription", in_records, &stored),
        ];
        for (consumer, got, as_kept) in &consumers {
            for (place, (id, payload)) in expected.iter().enumerate() {
                let (op, ..) = table[place];
                assert_eq!(got.get(*id), payload.map(as_kept).as_ref(), "{consumer}, event {place}: {op}");
            }
            assert_eq!(got.len(), shown_ids.len(), "{consumer}");
        }
    }
}

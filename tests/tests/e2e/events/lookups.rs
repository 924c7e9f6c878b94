//! Events by object and record, and the ledger by event, topic and time: lists, counts, and retries of thousands.

use std::time::{Duration, Instant};

use blockbase_tests::{Admin, Engine, Receiver, Reply, Server, WAIT_MAX, on_both_engines, until, within};
use serde_json::{Value, json};

use crate::events::webhooks::{ledger, ledger_until, make, quick};

async fn events(who: &Admin<'_>, query: &str) -> Vec<Value> {
    who.get(&format!("/api/v1/events?{query}")).await.data().as_array().unwrap().clone()
}

fn ids(list: &[Value]) -> Vec<&str> {
    list.iter().map(|event| event["id"].as_str().unwrap()).collect()
}

/// A key whose role has these permissions.
async fn key<'a>(admin: &Admin<'a>, name: &str, permissions: Value) -> Admin<'a> {
    assert_eq!(admin.post("/api/v1/roles", json!({ "name": name, "permissions": permissions })).await.status, 201);
    let made = admin.post("/api/v1/api-keys", json!({ "name": name, "roleId": name })).await;
    admin.server.with_token(made.json()["key"].as_str().unwrap().to_owned())
}

/// Inserts events into the outbox, with numbers from `first` on. `columns` is SQL for their columns. It may use the number `n`.
async fn insert_events(server: &Server, first: usize, count: usize, columns: &str) {
    let last = first + count - 1;
    let identity = if server.engine() == Engine::Postgres { "OVERRIDING SYSTEM VALUE" } else { "" };
    let sql = format!(
        "INSERT INTO svc_events (seq, id, topic, object, record_id, owner, payload, depth, occurred_at) {identity} \
         WITH RECURSIVE numbers (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers WHERE n < {last}) \
         SELECT n, {columns}, '{{}}', 0, 1700000000000 + n FROM numbers"
    );
    server.sql(&sql).await;
}

/// Inserts a group's ledger entries for events that were inserted.
async fn insert_deliveries(server: &Server, consumer: &str, first: usize, count: usize, state: &str) {
    let columns = "(event_seq, consumer, handler, status, dead, attempts, error, delivered_at)";
    let last = first + count - 1;
    let sql = format!(
        "INSERT INTO svc_deliveries {columns} SELECT seq, '{consumer}', 'log_event', {state} FROM svc_events WHERE seq BETWEEN {first} AND {last}"
    );
    server.sql(&sql).await;
}

const DEAD: &str = "'failed', TRUE, 5, 'no answer', NULL";
const DELIVERED: &str = "'delivered', FALSE, 1, NULL, 1700000000000";

/// The members of the payload of an event that made a task, which is not done.
const OPEN_TASK: &str = r#""before":null,"after":{"done":false},"diff":null"#;

/// Permissions with which only its payload decides whether the event of a task is shown.
fn reads_open_tasks() -> Value {
    json!([
        { "resource": "events", "actions": ["read"] },
        { "resource": "task", "actions": ["read"], "where": { "done": false } },
    ])
}

async fn subscribe(admin: &Admin<'_>, consumer: &str, event: &str) {
    let body = json!({ "event": event, "consumer": consumer, "handler": "log_event" });
    let made = admin.post("/api/v1/events/subscriptions", body).await;
    assert_eq!(made.status, 201, "{}", made.text);
}

async fn counts(who: &Admin<'_>, query: &str) -> Vec<Value> {
    who.get(&format!("/api/v1/events/deliveries/counts?{query}")).await.data().as_array().unwrap().clone()
}

/// The `pagination` of a list of the ledger.
async fn pagination(who: &Admin<'_>, query: &str) -> Value {
    who.get(&format!("/api/v1/events/deliveries?{query}")).await.json()["pagination"].take()
}

/// The query that goes on where the list of another query stopped.
fn onward(query: &str, pagination: &Value) -> String {
    assert_eq!(pagination["truncated"], true, "{query}: {pagination}");
    format!("{query}&before={}", pagination["before"].as_str().unwrap())
}

/// Whether a list of the ledger has a total, and says nothing about a stop.
fn is_whole(pagination: &Value) -> bool {
    pagination["totalCount"].is_number() && ["truncated", "before"].iter().all(|name| pagination.get(name).is_none())
}

/// Whether a response is a list of events that says nothing about a stop.
fn is_whole_list(list: &Value) -> bool {
    list["data"].is_array() && list.get("pagination").is_none()
}

async fn total(who: &Admin<'_>, query: &str) -> i64 {
    let answer = who.get(&format!("/api/v1/events/deliveries?{query}")).await;
    answer.json()["pagination"]["totalCount"].as_i64().unwrap_or_else(|| panic!("{}", answer.text))
}

on_both_engines! {
    async fn events_are_found_by_object_and_by_record(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("note", json!([{ "name": "title", "type": "text" }])).await;
        let first = admin.make("task", json!({ "title": "a" })).await;
        let second = admin.make("task", json!({ "title": "b" })).await;
        admin.make("note", json!({ "title": "n" })).await;
        for title in ["c", "d", "e"] {
            admin.patch(&format!("/api/v1/data/task/{first}"), json!({ "title": title })).await.data();
        }
        let of = |list: &[Value]| -> Vec<String> {
            list.iter().map(|event| format!("{} {}", event["payload"]["op"].as_str().unwrap(), event["payload"]["after"]["title"].as_str().unwrap())).collect()
        };
        assert_eq!(of(&events(&admin, "object=task").await), ["updated e", "updated d", "updated c", "created b", "created a"]);
        let changes = events(&admin, &format!("record={first}")).await;
        assert_eq!(of(&changes), ["updated e", "updated d", "updated c", "created a"]);
        assert_eq!(of(&events(&admin, &format!("record={}&limit=2", first.to_uppercase())).await), ["updated e", "updated d"]);
        assert_eq!(of(&events(&admin, &format!("record={first}&topic=data.*.created")).await), ["created a"]);
        assert_eq!(of(&events(&admin, &format!("record={second}&object=task")).await), ["created b"]);
        assert_eq!(events(&admin, &format!("record={second}&object=note")).await, Vec::<Value>::new());
        // Reads earlier events, page by page.
        let older = events(&admin, &format!("record={first}&before={}", changes[1]["id"].as_str().unwrap())).await;
        assert_eq!(of(&older), ["updated c", "created a"]);
        let all = events(&admin, "limit=500").await;
        let (mut seen, mut before) = (Vec::new(), String::new());
        loop {
            let page = events(&admin, &format!("limit=3&before={before}")).await;
            let Some(last) = page.last() else { break };
            before = last["id"].as_str().unwrap().to_uppercase();
            seen.extend(page);
        }
        assert_eq!(ids(&seen), ids(&all));
        for query in ["object=nothing", "record=none", "record=01a2027f-98d9-73a9-b111-9bb23759727a", "object=TASK", "object=%27%3B--"] {
            assert_eq!(events(&admin, query).await.len(), 0, "{query}");
        }
        for query in ["object=%00", "record=%00", "before=%00", "topic=%00", "object=a&since=x", "limit=0"] {
            admin.get(&format!("/api/v1/events?{query}")).await.expect_error(400, "invalid_request");
        }
        for query in ["before=nothing", "before=01a2027f-98d9-73a9-b111-9bb23759727a"] {
            let refused = admin.get(&format!("/api/v1/events?{query}")).await.expect_error(404, "not_found");
            let message = refused["message"].as_str().unwrap();
            assert!(message.ends_with(" Leave out `before` to begin with the newest one."), "{message}");
        }
        // Callers who may not see an event get 404.
        let weak = key(&admin, "notes", json!([
            { "resource": "events", "actions": ["read"] }, { "resource": "note", "actions": ["read"] },
        ])).await;
        let (hidden, unknown) = (changes[0]["id"].as_str().unwrap(), "01a2027f-98d9-73a9-b111-9bb23759727a");
        let refused = weak.get(&format!("/api/v1/events?before={hidden}")).await;
        refused.expect_error(404, "not_found");
        assert_eq!(refused.json(), weak.get(&format!("/api/v1/events?before={unknown}")).await.json());
        let seen = &events(&weak, "object=note").await[0];
        assert_eq!(events(&weak, &format!("object=note&before={}", seen["id"].as_str().unwrap())).await.len(), 0);

        // A single event is shown only to callers who may see it.
        let id = changes[0]["id"].as_str().unwrap();
        assert_eq!(admin.get(&format!("/api/v1/events/{id}")).await.data(), changes[0]);
        assert_eq!(admin.get(&format!("/api/v1/events/{}", id.to_uppercase())).await.data(), changes[0]);
        for none in ["nothing", "01a2027f-98d9-73a9-b111-9bb23759727a", "%20", "a.b"] {
            admin.get(&format!("/api/v1/events/{none}")).await.expect_error(404, "not_found");
        }
        admin.get("/api/v1/events/a%00").await.expect_error(400, "invalid_request");
        let reads = json!({ "resource": "events", "actions": ["read"] });
        let platform = key(&admin, "platform", json!([reads])).await;
        platform.get(&format!("/api/v1/events/{id}")).await.expect_error(404, "not_found");
        for query in [format!("record={first}"), "object=task".to_owned()] {
            assert_eq!(events(&platform, &query).await.len(), 0, "{query}");
        }
        let own = key(&admin, "own", json!([reads, { "resource": "task", "actions": ["read", "create"], "rowPolicy": "own" }])).await;
        // The key acts as the admin, who made the tasks.
        assert_eq!(events(&own, &format!("record={first}")).await.len(), 4);
        let member = server.with_token(server.sign_up("member").await);
        let user = member.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        assert_eq!(admin.post(&format!("/api/v1/users/{user}/roles"), json!({ "roleId": "own" })).await.status, 200);
        member.make("task", json!({ "title": "m" })).await;
        assert_eq!(of(&events(&member, "object=task").await), ["created m"]);
        assert_eq!(events(&member, &format!("record={first}")).await.len(), 0);
        member.get(&format!("/api/v1/events/{id}")).await.expect_error(404, "not_found");
        let blind = key(&admin, "blind", json!([{ "resource": "task", "actions": ["read"] }])).await;
        for path in [format!("/api/v1/events/{id}"), "/api/v1/events/deliveries/counts".to_owned()] {
            blind.get(&path).await.expect_error(403, "forbidden");
            server.call("GET", &path, None).await.expect_error(401, "unauthorized");
        }
    }

    async fn a_record_is_found_among_many_events(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let record = "01a2027f-98d9-73a9-b111-000000000007";
        // Adds events of other objects and records with many numbers. Every 20,000th event belongs to the record.
        let of_record = format!("CASE WHEN n % 20000 = 7 THEN '{record}' ELSE 'record-' || n END");
        let object = "CASE WHEN n % 20000 < 10 THEN 'task' ELSE 'busy' END";
        insert_events(&server, 1_000, 120_000, &format!("'event-' || n, 'data.x.updated', {object}, {of_record}, NULL")).await;
        let expected: Vec<String> = (0..=6).rev().map(|round| format!("event-{}", round * 20_000 + 7)).filter(|id| id != "event-7").collect();
        let found = events(&admin, &format!("record={record}")).await;
        let newest: Vec<&str> = expected.iter().map(String::as_str).collect();
        assert_eq!(ids(&found), newest);
        assert_eq!(ids(&events(&admin, &format!("record={record}&limit=2")).await), newest[..2]);
        assert_eq!(ids(&events(&admin, &format!("record={record}&before=event-60007")).await), newest[newest.len() - 2..]);
        // The object's events are found although many events of another object come before them.
        let found = events(&admin, "object=task&limit=500").await;
        assert_eq!(found.len(), 60);
        assert_eq!(ids(&found)[0], "event-120009");
        // Neither request reads the complete outbox.
        let begun = Instant::now();
        for _ in 0..10 {
            events(&admin, &format!("record={record}")).await;
            events(&admin, "object=task").await;
        }
        assert!(begun.elapsed() < within(Duration::from_secs(5)), "{:?}", begun.elapsed());
        // A search through all events stops after 100,000. The response says so, and another request goes on.
        insert_events(&server, 999, 1, "'event-999', 'data.rare.created', 'task', 'r', NULL").await;
        let query = "topic=data.rare.%23";
        let stopped = admin.get(&format!("/api/v1/events?{query}")).await.json();
        assert_eq!(stopped["data"], json!([]));
        let rest = admin.get(&format!("/api/v1/events?{}", onward(query, &stopped["pagination"]))).await.json();
        assert_eq!((rest["data"][0]["id"].as_str(), rest.get("pagination")), (Some("event-999"), None), "{rest}");
        // A list that is full or ends before the limit says nothing.
        for whole in ["topic=data.x.%23&limit=5", "object=task&limit=500", "record=none"] {
            let list = admin.get(&format!("/api/v1/events?{whole}")).await.json();
            assert!(is_whole_list(&list), "{whole}: {list}");
        }
        // A caller who reads nothing of an object does not learn whether it has many events.
        let platform = key(&admin, "platform", json!([{ "resource": "events", "actions": ["read"] }])).await;
        assert_eq!(platform.get("/api/v1/events?object=busy").await.json(), json!({ "data": [] }));
    }

    async fn a_list_of_events_stops_after_many_payloads_and_goes_on(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let reader = key(&admin, "reader", reads_open_tasks()).await;
        for (first, count) in [(1_000, 3), (2_000, 2_100)] {
            insert_events(&server, first, count, "'event-' || n, 'data.task.created', 'task', 'r' || n, NULL").await;
        }
        server.sql(&format!("UPDATE svc_events SET payload = '{{{OPEN_TASK}}}' WHERE seq BETWEEN 1000 AND 1002")).await;
        // The payloads of the newest events show nothing.
        let stopped = reader.get("/api/v1/events?object=task").await.json();
        assert_eq!(stopped["data"], json!([]));
        let next = onward("object=task", &stopped["pagination"]);
        let rest = reader.get(&format!("/api/v1/events?{next}")).await.json();
        assert_eq!(ids(rest["data"].as_array().unwrap()), ["event-1002", "event-1001", "event-1000"]);
        assert!(is_whole_list(&rest), "{rest}");
        let full = reader.get(&format!("/api/v1/events?{next}&limit=2")).await.json();
        assert_eq!((full["data"].as_array().unwrap().len(), full.get("pagination")), (2, None), "{full}");
        assert!(is_whole_list(&admin.get("/api/v1/events?object=task").await.json()));
    }
}

on_both_engines! {
    async fn the_ledger_is_filtered_and_counted(engine: Engine) {
        let server = quick(engine).env("SVC_RETRY_BASE_MS", "3600000").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("note", json!([{ "name": "title", "type": "text" }])).await;
        let (good, bad) = (Receiver::start().await, Receiver::start().await);
        bad.answer(|_, request| Reply::Status(if request.json()["payload"]["object"] == "task" { 500 } else { 200 }));
        let (good_id, _) = make(&admin, json!({ "url": good.url, "topics": ["data.#"] })).await;
        let (bad_id, _) = make(&admin, json!({ "url": bad.url, "topics": ["data.#"] })).await;
        for number in 0..3 {
            admin.make("task", json!({ "title": format!("{number}") })).await;
        }
        let note = admin.make("note", json!({ "title": "n" })).await;
        assert_eq!(admin.delete(&format!("/api/v1/data/note/{note}")).await.status, 204);
        ledger_until(&admin, "", |entries| entries.len() == 10 && entries.iter().all(|entry| entry["status"] != "pending")).await;
        let entries = ledger(&admin, "").await;
        let event = entries[0]["eventId"].as_str().unwrap();
        assert_eq!(total(&admin, &format!("eventId={event}")).await, 2);
        assert_eq!(total(&admin, &format!("eventId={}&consumer=webhook:{bad_id}", event.to_uppercase())).await, 1);
        assert_eq!(total(&admin, "eventId=nothing").await, 0);
        for (topic, expected) in [
            ("data.task.created", 6), ("data.*.created", 8), ("data.note.", 4), ("data.%23", 10), ("%23.deleted", 2), ("data", 10), ("data.*", 0), ("note", 0),
            ("data.task.created.", 0), ("DATA.%23", 0),
        ] {
            assert_eq!(total(&admin, &format!("topic={topic}")).await, expected, "{topic}");
        }
        let instants: Vec<&str> = entries.iter().map(|entry| entry["occurredAt"].as_str().unwrap()).collect();
        let (newest, oldest) = (instants[0], instants[9]);
        assert_eq!(total(&admin, &format!("since={oldest}")).await, 10);
        assert_eq!(total(&admin, &format!("until={oldest}")).await, 0);
        let at_newest = instants.iter().filter(|instant| **instant == newest).count() as i64;
        assert_eq!(total(&admin, &format!("since={newest}")).await, at_newest);
        assert_eq!(total(&admin, &format!("until={newest}")).await, 10 - at_newest);
        assert_eq!(total(&admin, &format!("since={oldest}&until={newest}&topic=data.task.&status=failed&dead=false")).await, 3);
        assert_eq!(total(&admin, "since=2000-01-01T00:00:00%2B02:00&until=2001-01-01T00:00:00").await, 0);
        assert_eq!(total(&admin, "until=9999-12-31T23:59:59Z").await, 10);
        for wrong in ["since=yesterday", "until=1", "until=2001-01-01", "since=2026-01-01T00:00:00+02:00", "topic=a.b*", "topic=..%23", "topic=%00", "eventId=%00", "colour=1", "status=lost"] {
            for path in ["deliveries", "deliveries/counts"] {
                admin.get(&format!("/api/v1/events/{path}?{wrong}")).await.expect_error(400, "invalid_request");
            }
        }
        admin.get("/api/v1/events/deliveries/counts?page=1").await.expect_error(400, "invalid_request");

        let mut expected = [
            json!({ "consumer": format!("webhook:{good_id}"), "pending": 0, "delivered": 5, "failed": 0, "dead": 0, "oldestPendingAt": null }),
            json!({ "consumer": format!("webhook:{bad_id}"), "pending": 0, "delivered": 2, "failed": 3, "dead": 0, "oldestPendingAt": null }),
        ];
        expected.sort_by_key(|group| group["consumer"].as_str().unwrap().to_owned());
        assert_eq!(counts(&admin, "").await, expected);
        let one = counts(&admin, &format!("consumer=webhook:{bad_id}&topic=data.task.%23")).await;
        assert_eq!((one.len(), &one[0]["failed"], &one[0]["delivered"]), (1, &json!(3), &json!(0)));
        assert_eq!(counts(&admin, &format!("eventId={event}")).await.iter().map(|group| group["delivered"].as_i64().unwrap()).sum::<i64>(), 2);
        assert_eq!(counts(&admin, "status=failed").await.len(), 1);
        assert_eq!(counts(&admin, "status=delivered").await.iter().map(|group| group["failed"].as_i64().unwrap()).sum::<i64>(), 0);
        assert_eq!(counts(&admin, "dead=true").await, Vec::<Value>::new());
        assert_eq!(counts(&admin, "consumer=nobody").await, Vec::<Value>::new());
        assert_eq!(counts(&admin, &format!("until={oldest}")).await, Vec::<Value>::new());
        // Entries that the caller may not see are not counted.
        let reads = json!({ "resource": "events", "actions": ["read"] });
        let notes = key(&admin, "notes", json!([reads, { "resource": "note", "actions": ["read"] }])).await;
        assert_eq!(total(&notes, "topic=data.%23").await, 4);
        let seen = counts(&notes, "").await;
        assert!(seen.len() == 2 && seen.iter().all(|group| group["delivered"] == 2 && group["failed"] == 0), "{seen:?}");

        // A group with waiting deliveries shows the time of the oldest one.
        assert_eq!(admin.patch(&format!("/api/v1/webhooks/{good_id}"), json!({ "enabled": false })).await.status, 200);
        insert_events(&server, 500_000, 20_000, "'late-' || n, 'data.task.created', 'task', NULL, NULL").await;
        insert_deliveries(&server, "webhook:old", 500_000, 15_000, DELIVERED).await;
        insert_deliveries(&server, "webhook:old", 515_000, 10, "'pending', FALSE, 0, NULL, NULL").await;
        let old = counts(&admin, "consumer=webhook:old").await;
        assert_eq!(old, [json!({
            "consumer": "webhook:old", "pending": 10, "delivered": 9_990, "failed": 0, "dead": 0,
            "oldestPendingAt": "2023-11-14T22:21:55.000Z",
        })]);
        // `until` moves the window to that time.
        let before = counts(&admin, "consumer=webhook:old&until=2023-11-14T22:21:50Z").await;
        assert_eq!((&before[0]["delivered"], &before[0]["pending"]), (&json!(10_000), &json!(0)));
        let between = counts(&admin, "consumer=webhook:old&since=2023-11-14T22:21:45Z&until=2023-11-14T22:21:50Z").await;
        assert_eq!(between[0]["delivered"], 5_000);
    }

    #[ignore = "long: a hundred thousand rows"]
    async fn dead_deliveries_are_tried_again_by_the_thousands(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        const MANY: usize = 100_000;
        insert_events(&server, 1_000, MANY, "'event-' || n, CASE WHEN n % 10 = 0 THEN 'data.note.created' ELSE 'data.task.created' END, 'task', 'record-' || n, NULL").await;
        subscribe(&admin, "many", "data.#").await;
        insert_deliveries(&server, "many", 1_000, MANY, DEAD).await;
        insert_deliveries(&server, "gone", 1_000, 5, DEAD).await;
        assert_eq!(counts(&admin, "consumer=many").await[0]["dead"], MANY);
        let retry = async |who: &Admin<'_>, body: Value| who.post("/api/v1/events/deliveries/retry", body).await;
        for wrong in [
            json!({}), json!({ "dead": false }), json!({ "dead": true, "eventId": "event-1000" }), json!({ "consumer": "many" }),
            json!({ "topic": "data.#" }), json!({ "dead": true, "since": "soon" }), json!({ "dead": true, "topic": "a*" }),
            json!({ "dead": true, "consumer": "a\u{0}" }), json!({ "dead": true, "colour": 1 }), json!({ "dead": "true" }), json!([]),
            json!({ "eventId": "event-1000", "consumer": "many", "dead": false }),
        ] {
            retry(&admin, wrong.clone()).await.expect_error(400, "invalid_request");
        }
        // Retries only the entries that match.
        let some = retry(&admin, json!({ "dead": true, "topic": "data.note.#", "until": "2023-11-14T22:13:30Z" })).await;
        assert_eq!((some.status, some.data()), (202, json!({ "count": 900 })));
        assert_eq!(retry(&admin, json!({ "dead": true, "consumer": "nobody" })).await.data(), json!({ "count": 0 }));
        assert_eq!(retry(&admin, json!({ "dead": true, "consumer": "gone" })).await.data(), json!({ "count": 0 }));
        let begun = Instant::now();
        let later = retry(&admin, json!({ "dead": true, "since": "2023-11-14T22:13:40Z" })).await;
        assert_eq!(later.data(), json!({ "count": 81_000 }));
        assert!(begun.elapsed() < within(Duration::from_secs(30)), "{:?}", begun.elapsed());
        let (one, two) = tokio::join!(retry(&admin, json!({ "dead": true })), retry(&admin, json!({ "dead": true, "consumer": "many" })));
        assert_eq!((one.status, two.status), (202, 202), "{} {}", one.text, two.text);
        let both = one.data()["count"].as_i64().unwrap() + two.data()["count"].as_i64().unwrap();
        assert_eq!(both, MANY as i64 - 900 - 81_000, "each once");
        // Meanwhile, writes succeeded, and the queue becomes empty as usual.
        admin.make("task", json!({ "title": "a" })).await;
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            let now = counts(&admin, "consumer=many").await;
            assert_eq!((&now[0]["dead"], &now[0]["failed"]), (&json!(0), &json!(0)), "{now:?}");
            if now[0]["delivered"].as_i64().unwrap() >= 2_000 {
                break;
            }
            assert!(Instant::now() < deadline, "{now:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(counts(&admin, "consumer=gone").await[0]["dead"], 5, "a group that is no more");
    }

    async fn a_bulk_retry_is_judged_as_a_single_one(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("note", json!([{ "name": "title", "type": "text" }])).await;
        let receiver = Receiver::start().await;
        receiver.answer(|_, _| Reply::Status(200));
        let (tasks, _) = make(&admin, json!({ "url": receiver.url, "topics": ["data.task.#"] })).await;
        let (notes, _) = make(&admin, json!({ "url": receiver.url, "topics": ["data.note.#"] })).await;
        let (disabled, _) = make(&admin, json!({ "url": receiver.url, "topics": ["data.task.#"], "enabled": false })).await;
        let [tasks, notes, disabled] = [tasks, notes, disabled].map(|id| format!("webhook:{id}"));
        let object = "CASE WHEN n % 2 = 0 THEN 'task' ELSE 'note' END";
        insert_events(&server, 1_000, 20, &format!("'event-' || n, 'data.' || {object} || '.created', {object}, 'r' || n, NULL")).await;
        for consumer in [&tasks, &notes, &disabled] {
            insert_deliveries(&server, consumer, 1_000, 20, DEAD).await;
        }
        let all = |consumer: &str| json!({ "dead": true, "consumer": consumer });
        let retry = async |who: &Admin<'_>, body: Value| who.post("/api/v1/events/deliveries/retry", body).await;
        server.call("POST", "/api/v1/events/deliveries/retry", Some(json!({ "dead": true }))).await.expect_error(401, "unauthorized");
        let read = json!({ "resource": "events", "actions": ["read"] });
        let update = json!({ "resource": "events", "actions": ["update"] });
        let of_tasks = json!({ "resource": "task", "actions": ["read"] });
        for (name, permissions) in [("reads", json!([read, of_tasks])), ("updates", json!([update, of_tasks]))] {
            let weak = key(&admin, name, permissions).await;
            retry(&weak, json!({ "dead": true })).await.expect_error(403, "forbidden");
        }
        // A caller who sees only tasks can retry the entries about tasks, but only for groups that have no other topics.
        let weak = key(&admin, "weak", json!([read, update, of_tasks])).await;
        retry(&weak, all(&notes)).await.expect_error(403, "forbidden");
        assert_eq!(retry(&weak, json!({ "dead": true })).await.data(), json!({ "count": 10 }));
        ledger_until(&admin, &format!("consumer={tasks}&status=delivered"), |entries| entries.len() == 10).await;
        assert_eq!(counts(&admin, &format!("consumer={tasks}&dead=true")).await[0]["dead"], 10);
        assert_eq!(counts(&admin, &format!("consumer={notes}")).await[0]["dead"], 20);
        let own = json!([read, update, { "resource": "task", "actions": ["read"], "rowPolicy": "own" }]);
        assert_eq!(retry(&key(&admin, "own", own).await, json!({ "dead": true })).await.data(), json!({ "count": 0 }));
        // If a request names a group that gets nothing now, the response says why. A request that does not name the group skips it.
        retry(&admin, all(&disabled)).await.expect_error(409, "conflict");
        assert_eq!(retry(&admin, json!({ "dead": true })).await.data(), json!({ "count": 30 }));
        assert_eq!(counts(&admin, &format!("consumer={disabled}")).await[0]["dead"], 20);
        // The topics of the group decide whether an entry is delivered, or settled without a delivery.
        until("nothing is dead or waits", async || {
            let now = counts(&admin, &format!("consumer={notes}")).await;
            now[0]["delivered"] == 20
        }).await;
        let skipped = ledger(&admin, &format!("consumer={notes}&topic=data.task.%23")).await;
        assert!(skipped.iter().all(|entry| entry["skipped"] == true), "{skipped:?}");
        // A retry of one entry works as before.
        let one = retry(&admin, json!({ "eventId": "event-1000", "consumer": tasks })).await;
        one.expect_error(409, "conflict");
    }

    async fn entries_that_need_a_look_at_a_payload_do_not_displace_others(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        subscribe(&admin, "many", "data.task.#").await;
        // Newer than the events of records are many events of links, whose payloads show no target.
        insert_events(&server, 1_000, 30, "'event-' || n, 'data.task.created', 'task', 'r' || n, NULL").await;
        let topic = "CASE WHEN n % 2 = 0 THEN 'data.task.linked' ELSE 'data.task.unlinked' END";
        insert_events(&server, 2_000, 700, &format!("'event-' || n, {topic}, 'task', 'r' || n, NULL")).await;
        insert_deliveries(&server, "many", 1_000, 30, DEAD).await;
        insert_deliveries(&server, "many", 2_000, 700, DEAD).await;
        let of_events = json!({ "resource": "events", "actions": ["read", "update"] });
        let all = json!([of_events, { "resource": "task", "actions": ["read"] }]);
        let own = json!([of_events, { "resource": "task", "actions": ["read"], "rowPolicy": "own" }]);
        let none = json!([of_events]);
        let (all, own, none) = (key(&admin, "all", all).await, key(&admin, "own", own).await, key(&admin, "none", none).await);
        for (who, expected) in [(&admin, 730), (&all, 30), (&own, 0), (&none, 0)] {
            assert_eq!(total(who, "consumer=many").await, expected);
            let dead: i64 = counts(who, "consumer=many").await.iter().map(|group| group["dead"].as_i64().unwrap()).sum();
            assert_eq!(dead, expected);
        }
        // The server looks at 500 of the 700 events of links, and says so. The next request looks at the others.
        let stopped = pagination(&all, "consumer=many&pageSize=10").await;
        let rest = pagination(&all, &onward("consumer=many", &stopped)).await;
        assert!(rest["totalCount"] == 30 && is_whole(&rest), "{rest}");
        for who in [&admin, &own, &none] {
            let whole = pagination(who, "consumer=many").await;
            assert!(is_whole(&whole), "{whole}");
        }
        // A list can also begin before an event that its reader sees.
        assert_eq!(total(&admin, "consumer=many&before=event-2000").await, 30);
        assert_eq!(total(&all, "consumer=many&before=EVENT-1005").await, 5);
        for (who, hidden) in [(&all, "event-2000"), (&admin, "nothing")] {
            who.get(&format!("/api/v1/events/deliveries?before={hidden}")).await.expect_error(404, "not_found");
        }
        admin.get("/api/v1/events/deliveries/counts?before=event-2000").await.expect_error(400, "invalid_request");
        let page = ledger(&all, "consumer=many&pageSize=10&page=3").await;
        let ids: Vec<&str> = page.iter().map(|entry| entry["eventId"].as_str().unwrap()).collect();
        assert_eq!((ids.len(), ids[0], ids[9]), (10, "event-1009", "event-1000"));
        assert_eq!(all.get("/api/v1/events/deliveries/event-2000/many").await.status, 404);
        assert_eq!(admin.get("/api/v1/events/deliveries/event-2000/many").await.status, 200);
        // A retry makes only the shown entries due.
        let retry = json!({ "dead": true, "consumer": "many" });
        let retried = all.post("/api/v1/events/deliveries/retry", retry).await;
        assert_eq!((retried.status, retried.data()), (202, json!({ "count": 30 })), "{}", retried.text);
        assert_eq!(counts(&admin, "consumer=many").await[0]["dead"], 700);
    }

    async fn payloads_decide_about_the_newest_events_of_the_outbox(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        subscribe(&admin, "many", "data.task.#").await;
        let reader = key(&admin, "reader", reads_open_tasks()).await;
        // The last event is the newest one. Only the second ones are among the newest 100,000 with it, even if some more follow.
        for (first, count) in [(1_000, 5), (2_000, 4), (101_500, 1)] {
            insert_events(&server, first, count, "'event-' || n, 'data.task.created', 'task', 'r' || n, NULL").await;
            insert_deliveries(&server, "many", first, count, DEAD).await;
        }
        server.sql(&format!("UPDATE svc_events SET payload = '{{{OPEN_TASK}}}' WHERE seq >= 1000 AND topic = 'data.task.created'")).await;
        for (who, expected) in [(&admin, 10), (&reader, 5)] {
            assert_eq!(total(who, "consumer=many").await, expected);
            assert_eq!(total(who, "consumer=many&topic=data.task.created&dead=true").await, expected);
            assert_eq!(counts(who, "consumer=many").await[0]["dead"], expected);
        }
        let shown = ledger(&reader, "consumer=many").await;
        let ids: Vec<&str> = shown.iter().map(|entry| entry["eventId"].as_str().unwrap()).collect();
        assert_eq!(ids, ["event-101500", "event-2003", "event-2002", "event-2001", "event-2000"]);
        // The list says that there are older events. The next one finds them.
        let rest = onward("consumer=many", &pagination(&reader, "consumer=many").await);
        let shown = ledger(&reader, &rest).await;
        assert_eq!((shown.len(), &shown[0]["eventId"], &shown[4]["eventId"]), (5, &json!("event-1004"), &json!("event-1000")));
        // Nothing is older: in the rest, in the period, or among the entries of one event.
        for whole in [rest.as_str(), "consumer=many&since=2023-11-14T22:13:22Z", "eventId=event-1000"] {
            let whole = pagination(&reader, whole).await;
            assert!(is_whole(&whole), "{whole}");
        }
        // Only the number of events decides whether there are older ones, and not whose entries they have.
        let nobody = pagination(&reader, &onward("consumer=nobody", &pagination(&reader, "consumer=nobody").await)).await;
        assert!(nobody["totalCount"] == 0 && is_whole(&nobody), "{nobody}");
        // The server looks at the newest events of a period, however old it is.
        let old = pagination(&reader, "consumer=many&until=2023-11-14T22:13:22Z").await;
        assert!(old["totalCount"] == 5 && is_whole(&old), "{old}");
        // One event is found however old it is.
        assert_eq!(total(&reader, "consumer=many&eventId=event-1000").await, 1);
        assert_eq!(reader.get("/api/v1/events/deliveries/event-1000/many").await.status, 200);
    }

    async fn payloads_that_decide_have_a_bounded_number_of_bytes(engine: Engine) {
        const EACH: usize = 3 * 1024 * 1024;
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        subscribe(&admin, "many", "data.task.#").await;
        let reader = key(&admin, "reader", reads_open_tasks()).await;
        insert_events(&server, 1_000, 12, "'event-' || n, 'data.task.created', 'task', 'r' || n, NULL").await;
        insert_deliveries(&server, "many", 1_000, 12, DEAD).await;
        // Ten such payloads have fewer than 32 MiB together, and eleven have more.
        let pad = match server.engine() {
            Engine::Sqlite => format!("hex(zeroblob({}))", EACH / 2),
            Engine::Postgres => format!("repeat('0', {EACH})"),
        };
        let payload = format!("'{{{OPEN_TASK},\"pad\":\"' || {pad} || '\"}}'");
        server.sql(&format!("UPDATE svc_events SET payload = {payload} WHERE seq BETWEEN 1000 AND 1011")).await;
        for (who, expected) in [(&admin, 12), (&reader, 10)] {
            assert_eq!(total(who, "consumer=many").await, expected);
        }
        let shown = ledger(&reader, "consumer=many").await;
        assert_eq!((&shown[0]["eventId"], &shown[9]["eventId"]), (&json!("event-1011"), &json!("event-1002")));
        let rest = onward("consumer=many", &pagination(&reader, "consumer=many").await);
        let shown = ledger(&reader, &rest).await;
        assert_eq!((shown.len(), &shown[0]["eventId"], &shown[1]["eventId"]), (2, &json!("event-1001"), &json!("event-1000")));
        assert!(is_whole(&pagination(&reader, &rest).await));
    }

    async fn nothing_is_tried_again_where_events_are_off(engine: Engine) {
        let server = quick(engine).env("SVC_EVENTS_ENABLED", "false").start().await;
        let admin = server.admin().await;
        admin.post("/api/v1/events/deliveries/retry", json!({ "dead": true })).await.expect_error(409, "conflict");
    }
}

on_both_engines! {
    async fn more_events_than_an_answer_holds_are_refused_and_none_is_left_out(engine: Engine) {
        const MOST: usize = 100_000;
        let server = quick(engine).env("SVC_MAX_ANSWER_BYTES", &MOST.to_string()).start().await;
        let admin = server.admin().await;
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        for letter in ["a", "b", "c", "d"] {
            admin.make("note", json!({ "text": letter.repeat(30_000) })).await;
        }
        let path = "/api/v1/events?object=note";
        let refused = admin.get(path).await.expect_error(400, "answer_too_large");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("`limit`") && message.contains("SVC_MAX_ANSWER_BYTES"), "{message}");
        let letter = |event: &Value| event["payload"]["after"]["text"].as_str().unwrap()[..1].to_owned();
        let newest = events(&admin, "object=note&limit=3").await;
        assert_eq!(newest.iter().map(letter).collect::<String>(), "dcb");
        let before = format!("object=note&before={}", newest[2]["id"].as_str().unwrap());
        assert_eq!(events(&admin, &before).await.iter().map(letter).collect::<String>(), "a");
        // A single event may be larger than a list.
        admin.make("note", json!({ "text": "e".repeat(MOST) })).await;
        let id = &server.sql("SELECT id FROM svc_events ORDER BY seq DESC LIMIT 1").await[0][0];
        admin.get(&format!("{path}&limit=1")).await.expect_error(400, "answer_too_large");
        assert_eq!(letter(&admin.get(&format!("/api/v1/events/{id}")).await.data()), "e");
    }
}

//! Deliveries: their order and independence, the ledger and the outbox. Also streams that begin in the past.

use std::time::{Duration, Instant};

use blockbase_tests::{Receiver, Reply, example_block, on_both_engines, pack, until, within};
use serde_json::{Value, json};

use crate::events::Stream;
use crate::events::webhooks::{ledger_until, make, quick};

/// Whether all deliveries have succeeded.
fn delivered(entries: &[Value]) -> bool {
    !entries.is_empty() && entries.iter().all(|entry| entry["status"] == "delivered")
}

on_both_engines! {
    async fn events_of_one_record_come_in_order_and_those_of_others_meanwhile(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        // The receiver takes some time for every event of the slow record.
        receiver.answer(|_, request| {
            let payload = &request.json()["payload"];
            let title = if payload["after"].is_null() { &payload["before"]["title"] } else { &payload["after"]["title"] };
            if title.as_str().unwrap().starts_with("slow") { Reply::After(Duration::from_millis(120)) } else { Reply::Status(200) }
        });
        make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
        let slow = admin.make("task", json!({ "title": "slow 0" })).await;
        for number in 1..10 {
            admin.patch(&format!("/api/v1/data/task/{slow}"), json!({ "title": format!("slow {number}") })).await.data();
        }
        assert_eq!(admin.delete(&format!("/api/v1/data/task/{slow}")).await.status, 204);
        for number in 0..20 {
            admin.make("task", json!({ "title": format!("quick {number}") })).await;
        }
        let received = receiver.wait_for(31).await;
        let titles: Vec<String> = received
            .iter()
            .filter(|request| request.json()["payload"]["id"] == slow)
            .map(|request| {
                let payload = &request.json()["payload"];
                format!("{} {}", payload["op"].as_str().unwrap(), payload["after"]["title"].as_str().unwrap_or("-"))
            })
            .collect();
        let mut expected = vec!["created slow 0".to_owned()];
        expected.extend((1..10).map(|number| format!("updated slow {number}")));
        expected.push("deleted -".to_owned());
        assert_eq!(titles, expected);
        let last_quick = received.iter().filter(|request| request.json()["payload"]["id"] != slow).map(|request| request.at).max();
        let last_slow = received.iter().filter(|request| request.json()["payload"]["id"] == slow).map(|request| request.at).max();
        assert!(last_quick < last_slow, "quick records waited for the slow one");
    }

    async fn a_later_event_of_a_record_goes_on_while_an_earlier_one_waits_for_its_retry(engine: Engine) {
        let server = quick(engine).env("SVC_RETRY_BASE_MS", "1500").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        receiver.answer(|number, _| Reply::Status(if number == 0 { 500 } else { 200 }));
        make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
        let id = admin.make("task", json!({ "title": "a" })).await;
        admin.patch(&format!("/api/v1/data/task/{id}"), json!({ "title": "b" })).await.data();
        let ops: Vec<Value> = receiver.wait_for(3).await.iter().map(|request| request.json()["payload"]["op"].clone()).collect();
        assert_eq!(ops, ["created", "updated", "created"]);
        let entries = ledger_until(&admin, "", delivered).await;
        assert_eq!((&entries[0]["attempts"], &entries[1]["attempts"]), (&json!(1), &json!(2)));
    }

    async fn a_slow_group_holds_no_other(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let (healthy, hanging) = (Receiver::start().await, Receiver::start().await);
        hanging.answer(|_, _| Reply::Hang);
        for _ in 0..5 {
            make(&admin, json!({ "url": hanging.url, "topics": ["data.#"] })).await;
        }
        make(&admin, json!({ "url": healthy.url, "topics": ["data.#"] })).await;
        let begun = Instant::now();
        for number in 0..30 {
            admin.make("task", json!({ "title": format!("{number}") })).await;
        }
        healthy.wait_for(30).await;
        assert!(begun.elapsed() < within(Duration::from_secs(10)), "{:?}", begun.elapsed());
    }

    async fn a_server_that_ends_finishes_what_is_under_way_and_begins_nothing(engine: Engine) {
        let server = quick(engine).env("SVC_WEBHOOK_TIMEOUT_MS", "5000").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
        // The receiver answers once, so from now on several calls run at the same time.
        admin.make("task", json!({ "title": "first" })).await;
        receiver.wait_for(1).await;
        receiver.answer(|_, _| Reply::After(Duration::from_millis(1500)));
        for number in 0..40 {
            admin.make("task", json!({ "title": format!("{number}") })).await;
        }
        receiver.wait_for(17).await;
        let (token, builder) = (admin.token.clone(), server.builder());
        server.signal("TERM");
        assert!(server.ended().await.success());
        let begun = receiver.count();
        assert!(begun < 41, "the drain began {begun} deliveries");
        receiver.answer(|_, _| Reply::Status(200));
        let server = builder.start().await;
        let admin = server.with_token(token);
        let entries = ledger_until(&admin, "pageSize=100", |entries| entries.len() == 41 && delivered(entries)).await;
        // Nothing was sent twice, because running calls were finished, and the other deliveries were released.
        assert!(entries.iter().all(|entry| entry["attempts"] == 1));
        assert_eq!(receiver.count(), 41);
    }

    async fn the_ledger_is_listed_by_pages_and_filters(engine: Engine) {
        let server = quick(engine).env("SVC_RETRY_BASE_MS", "3600000").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let (good, bad) = (Receiver::start().await, Receiver::start().await);
        bad.answer(|_, _| Reply::Status(500));
        let (good_id, _) = make(&admin, json!({ "url": good.url, "topics": ["data.#"] })).await;
        let (bad_id, _) = make(&admin, json!({ "url": bad.url, "topics": ["data.#"] })).await;
        for number in 0..5 {
            admin.make("task", json!({ "title": format!("{number}") })).await;
        }
        ledger_until(&admin, "status=failed", |entries| entries.len() == 5).await;
        ledger_until(&admin, "status=delivered", |entries| entries.len() == 5).await;
        let get = |query: &str| {
            let path = format!("/api/v1/events/deliveries?{query}");
            let admin = admin.clone();
            async move { admin.get(&path).await.json() }
        };
        let page = get("pageSize=3&page=2").await;
        assert_eq!(page["pagination"], json!({ "page": 2, "pageSize": 3, "totalCount": 10, "totalPages": 4, "hasNextPage": true, "hasPreviousPage": true }));
        assert_eq!(page["data"].as_array().unwrap().len(), 3);
        // The newest event comes first.
        let all = get("").await;
        let instants: Vec<&str> = all["data"].as_array().unwrap().iter().map(|entry| entry["occurredAt"].as_str().unwrap()).collect();
        assert!(instants.windows(2).all(|pair| pair[0] >= pair[1]), "{instants:?}");
        let count = |page: Value| page["pagination"]["totalCount"].as_i64().unwrap();
        assert_eq!(count(get(&format!("consumer=webhook:{good_id}")).await), 5);
        assert_eq!(count(get(&format!("consumer=webhook:{bad_id}&status=delivered")).await), 0);
        assert_eq!(count(get("dead=true").await), 0);
        assert_eq!(count(get("dead=false").await), 10);
        assert_eq!(count(get("status=pending").await), 0);
        assert_eq!(count(get("consumer=nobody").await), 0);
        for bad in ["status=lost", "dead=perhaps", "page=0", "limit=x", "unknown=1"] {
            assert_eq!(admin.get(&format!("/api/v1/events/deliveries?{bad}")).await.status, 400, "{bad}");
        }
    }

    async fn recent_events_are_listed_newest_first_and_only_to_whom_may_see_them(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("note", json!([{ "name": "title", "type": "text" }])).await;
        for number in 0..3 {
            admin.make("task", json!({ "title": format!("{number}") })).await;
            admin.make("note", json!({ "title": format!("{number}") })).await;
        }
        let topics = async |who: &blockbase_tests::Admin<'_>, query: &str| -> Vec<String> {
            let events = who.get(&format!("/api/v1/events{query}")).await.data();
            events.as_array().unwrap().iter().map(|event| event["topic"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(topics(&admin, "?topic=data.&limit=3").await, ["data.note.created", "data.task.created", "data.note.created"]);
        assert_eq!(topics(&admin, "?topic=data.task").await.len(), 3);
        assert_eq!(topics(&admin, "?topic=data.*.created").await.len(), 6);
        assert_eq!(topics(&admin, "?topic=schema.%23").await, ["schema.object.created", "schema.object.created"]);
        assert_eq!(topics(&admin, "?topic=nothing").await.len(), 0);
        let first = &admin.get("/api/v1/events?limit=1").await.data()[0];
        assert_eq!(first.as_object().unwrap().keys().cloned().collect::<Vec<_>>(), ["id", "topic", "payload", "occurredAt"]);
        for bad in ["limit=0", "limit=-1", "limit=x", "topic=data.*.x*", "since=x"] {
            assert_eq!(admin.get(&format!("/api/v1/events?{bad}")).await.status, 400, "{bad}");
        }
        assert_eq!(topics(&admin, "?limit=100000").await.len(), topics(&admin, "?limit=500").await.len());
        // To get the list, a caller needs read on `events`. To see the payloads of an object's records, they need read on that
        // object.
        let key = async |name: &str, permissions: Value| {
            assert_eq!(admin.post("/api/v1/roles", json!({ "name": name, "permissions": permissions })).await.status, 201);
            let key = admin.post("/api/v1/api-keys", json!({ "name": name, "roleId": name })).await.json()["key"].clone();
            server.with_token(key.as_str().unwrap().to_owned())
        };
        let events = json!({ "resource": "events", "actions": ["read"] });
        let platform = key("platform", json!([events])).await;
        assert!(topics(&platform, "").await.iter().all(|topic| !topic.starts_with("data.")));
        let tasks = key("tasks", json!([events, { "resource": "task", "actions": ["read"] }])).await;
        assert_eq!(topics(&tasks, "?topic=data.").await, ["data.task.created"; 3]);
        let blind = key("blind", json!([{ "resource": "task", "actions": ["read"] }])).await;
        blind.get("/api/v1/events").await.expect_error(403, "forbidden");
    }

    async fn a_stream_since_an_event_has_no_gap_and_no_double(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let records: Vec<Value> = (0..1000).map(|number| json!({ "title": format!("bulk {number}") })).collect();
        admin.post("/api/v1/data/task", json!({ "title": "first" })).await.data();
        for _ in 0..2 {
            assert_eq!(admin.post("/api/v1/data/task/bulk", json!({ "data": records })).await.status, 201);
        }
        let since = server.sql("SELECT id FROM svc_events WHERE topic = 'data.task.created' ORDER BY seq LIMIT 1").await[0][0].clone();
        // Writes continue while the stream reads past events.
        let (mut seen, writes) = (Vec::new(), async {
            for number in 0..200 {
                admin.post("/api/v1/data/task", json!({ "title": format!("live {number}") })).await.data();
            }
        });
        let read = async {
            let mut stream = Stream::open(&admin, &format!("?since={since}")).await;
            while seen.len() < 2200 {
                seen.push(stream.event().await["id"].as_str().unwrap().to_owned());
            }
        };
        tokio::join!(writes, read);
        let expected = server.sql("SELECT id FROM svc_events WHERE topic = 'data.task.created' ORDER BY seq").await;
        let expected: Vec<String> = expected.into_iter().map(|row| row[0].clone()).collect();
        assert_eq!(expected[0], since);
        assert_eq!(seen.len(), expected.len() - 1);
        assert!(seen == expected[1..], "other events, or in another order");
        admin.get("/api/v1/events/stream?since=00000000-0000-7000-8000-000000000000").await.expect_error(404, "not_found");
        let refused = admin.get("/api/v1/events/stream?since=nothing").await.expect_error(404, "not_found");
        let message = "The outbox no longer holds this event, or never did. Read the data again, and open a new stream without `since` \
            and `Last-Event-ID`.";
        assert_eq!(refused["message"], message);
    }

    async fn a_stream_since_an_event_goes_on_after_a_restart(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let mut stream = Stream::open(&admin, "").await;
        for number in 0..5 {
            admin.make("task", json!({ "title": format!("{number}") })).await;
        }
        let since = stream.event().await["id"].as_str().unwrap().to_owned();
        let token = admin.token.clone();
        let server = server.restart().await;
        let admin = server.with_token(token);
        let mut stream = Stream::open(&admin, &format!("?since={since}")).await;
        for number in 1..5 {
            assert_eq!(stream.event().await["payload"]["after"]["title"], format!("{number}"));
        }
        admin.make("task", json!({ "title": "live" })).await;
        assert_eq!(stream.event().await["payload"]["after"]["title"], "live");
    }

    async fn a_reader_that_takes_nothing_slows_no_other_and_is_cut_off(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let mut stuck = Stream::open(&admin, "").await;
        let mut quick_reader = Stream::open(&admin, "").await;
        // This is more than the buffers of a connection can hold, and far more than 1,024 events.
        let records: Vec<Value> = (0..500).map(|number| json!({ "title": format!("{number} {}", "x".repeat(150)) })).collect();
        for _ in 0..30 {
            assert_eq!(admin.post("/api/v1/data/task/bulk", json!({ "data": records })).await.status, 201);
            for _ in 0..500 {
                quick_reader.event().await;
            }
        }
        // The buffered events still arrive. Then the stream ends.
        let mut taken = 0;
        while stuck.frame().await.is_some() {
            taken += 1;
            assert!(taken < 15_000, "it was not cut off");
        }
    }

    async fn many_events_of_one_record_hold_no_other_record(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        receiver.answer(|_, request| {
            let title = request.json()["payload"]["after"]["title"].as_str().unwrap().to_owned();
            if title.starts_with("hot") { Reply::After(Duration::from_millis(100)) } else { Reply::Status(200) }
        });
        make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
        let hot = admin.make("task", json!({ "title": "hot" })).await;
        // This is more than a claim reads in its first window.
        for number in 0..250 {
            admin.patch(&format!("/api/v1/data/task/{hot}"), json!({ "title": format!("hot {number}") })).await.data();
        }
        admin.make("task", json!({ "title": "cold" })).await;
        let begun = Instant::now();
        while !receiver.received().iter().any(|request| request.json()["payload"]["after"]["title"] == "cold") {
            assert!(begun.elapsed() < within(Duration::from_secs(10)), "the other record waits for the hot one");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(receiver.count() < 200, "it came only when the hot record was through: {}", receiver.count());
    }

    async fn a_backlog_of_retries_is_worked_off_without_waiting_for_the_poll(engine: Engine) {
        let server = quick(engine).env("SVC_EVENTS_POLL_INTERVAL_MS", "60000").env("SVC_RETRY_BASE_MS", "1000").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        receiver.answer(|number, _| Reply::Status(if number < 400 { 500 } else { 200 }));
        make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
        let records: Vec<Value> = (0..400).map(|number| json!({ "title": format!("{number}") })).collect();
        assert_eq!(admin.post("/api/v1/data/task/bulk", json!({ "data": records })).await.status, 201);
        let begun = Instant::now();
        receiver.wait_for(800).await;
        assert!(begun.elapsed() < within(Duration::from_secs(40)), "{:?}", begun.elapsed());
        ledger_until(&admin, "status=delivered", |entries| !entries.is_empty()).await;
    }

    async fn a_burst_of_many_events_cuts_no_reader_off_that_keeps_up(engine: Engine) {
        let server = quick(engine).env("SVC_MAX_BULK", "1500").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let mut stream = Stream::open(&admin, "").await;
        let records: Vec<Value> = (0..1500).map(|number| json!({ "title": format!("{number}") })).collect();
        let write = async { assert_eq!(admin.post("/api/v1/data/task/bulk", json!({ "data": records })).await.status, 201) };
        let read = async {
            for number in 0..1500 {
                assert_eq!(stream.event().await["payload"]["after"]["title"], format!("{number}"));
            }
        };
        tokio::join!(write, read);
    }

    async fn the_handler_of_a_block_gets_its_events(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        let copy = json!([{ "name": "source", "type": "text", "isUnique": true }, { "name": "copy", "type": "json" }]);
        admin.define("note", json!([{ "name": "title", "type": "text" }])).await;
        let installed = admin.install("", example_block("mirror").await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        // If the handler fails, the delivery fails too, and is retried.
        let id = admin.make("note", json!({ "title": "a" })).await;
        let entry = ledger_until(&admin, "consumer=mirror:notes", |entries| entries[0]["status"] == "failed").await.remove(0);
        assert_eq!(entry["handler"], "mirror.mirror");
        assert!(entry["error"].as_str().unwrap().contains("copy"), "{entry}");
        admin.define("copy", copy).await;
        ledger_until(&admin, "consumer=mirror:notes", |entries| delivered(entries) || entries[0]["dead"] == true).await;
        admin.post("/api/v1/events/deliveries/retry", json!({ "eventId": entry["eventId"], "consumer": "mirror:notes" })).await;
        ledger_until(&admin, "consumer=mirror:notes", delivered).await;
        let copies = admin.get("/api/v1/data/copy").await.data();
        assert_eq!((&copies[0]["source"], &copies[0]["copy"]["title"], &copies[0]["created_by"]), (&json!(id), &json!("a"), &Value::Null));
        admin.patch(&format!("/api/v1/data/note/{id}"), json!({ "title": "b" })).await.data();
        ledger_until(&admin, "consumer=mirror:notes", |entries| entries.len() == 2 && delivered(entries)).await;
        assert_eq!(admin.get("/api/v1/data/copy").await.data()[0]["copy"]["title"], "b");
        // A disabled block gets no events, and it does not get them later either.
        admin.patch("/api/v1/blocks/mirror", json!({ "enabled": false })).await.data();
        let other = admin.make("note", json!({ "title": "unseen" })).await;
        admin.patch("/api/v1/blocks/mirror", json!({ "enabled": true })).await.data();
        assert_eq!(admin.delete(&format!("/api/v1/data/note/{id}")).await.status, 204);
        ledger_until(&admin, "consumer=mirror:notes", |entries| entries.len() == 3 && delivered(entries)).await;
        assert_eq!(admin.get("/api/v1/data/copy").await.json()["pagination"]["totalCount"], 0, "{other}");
    }

    async fn writes_that_cause_writes_end_at_the_depth_that_is_allowed(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        let fields = json!([{ "name": "source", "type": "text", "isUnique": true }, { "name": "copy", "type": "json" }]);
        admin.define("copy", fields).await;
        // Each copy is copied again.
        let manifest = json!({
            "name": "mirror", "version": "0.1.0", "requires": { "plugins": ["data"] },
            "subscriptions": [
                { "event": "data.copy.created", "consumer": "mirror:copies", "handler": "mirror", "config": { "into": "copy" } },
                { "event": "data.copy.created", "consumer": "mirror:log", "handler": "log_event" },
            ],
            "permissions": { "data": [{ "resource": "copy", "actions": ["read", "create", "update"] }] },
        });
        let packed = pack(example_block("mirror").await, manifest).await.unwrap();
        assert_eq!(admin.install("", packed).await.status, 201);
        admin.make("copy", json!({ "source": "x", "copy": {} })).await;
        let dead = ledger_until(&admin, "dead=true", |entries| entries.len() == 1).await.remove(0);
        assert_eq!((&dead["consumer"], &dead["error"], &dead["attempts"], &dead["status"]), (&json!("mirror:copies"), &json!("causation depth"), &json!(0), &json!("failed")));
        ledger_until(&admin, "consumer=mirror:log", |entries| entries.len() == 10 && delivered(entries)).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        // The first event comes from outside, and handlers cause eight more events. The ninth is stored, but no block gets it.
        assert_eq!(server.sql("SELECT depth FROM svc_events WHERE topic = 'data.copy.created' ORDER BY seq").await, (0..=9).map(|depth| vec![depth.to_string()]).collect::<Vec<_>>());
        assert_eq!(admin.get("/api/v1/data/copy").await.json()["pagination"]["totalCount"], 10);
    }

    async fn a_block_that_every_instance_runs_ends_at_the_depth_as_well(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        let fields = json!([{ "name": "source", "type": "text", "isUnique": true }, { "name": "copy", "type": "json" }]);
        admin.define("copy", fields).await;
        let manifest = json!({
            "name": "mirror", "version": "0.1.0", "requires": { "plugins": ["data"] },
            "subscriptions": [{ "event": "data.copy.created", "consumer": "mirror:copies", "handler": "mirror", "config": { "into": "copy" }, "perInstance": true }],
            "permissions": { "data": [{ "resource": "copy", "actions": ["read", "create", "update"] }] },
        });
        let packed = pack(example_block("mirror").await, manifest).await.unwrap();
        assert_eq!(admin.install("", packed).await.status, 201);
        // The instance follows the block's events from some time after the installation on. Earlier records have no copies.
        let mut made = 0;
        until("the instance follows the events", async || {
            made += 1;
            admin.make("copy", json!({ "source": format!("x{made}"), "copy": {} })).await;
            !server.sql("SELECT id FROM svc_events WHERE topic = 'data.copy.created' AND depth > 0").await.is_empty()
        })
        .await;
        let copies_of = async |id: &str| admin.get(&format!("/api/v1/data/copy?source={id}")).await.data();
        let mut id = admin.make("copy", json!({ "source": "last", "copy": {} })).await;
        for _ in 0..9 {
            until("the record is copied", async || copies_of(&id).await[0].is_object()).await;
            id = copies_of(&id).await[0]["id"].as_str().unwrap().to_owned();
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(copies_of(&id).await, json!([]));
        assert_eq!(server.sql("SELECT count(*) FROM svc_deliveries").await, [["0"]]);
    }

    async fn a_block_gets_its_webhooks_and_nothing_that_its_installer_may_not_read(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        let manifest = |more: Value| {
            let mut manifest = json!({ "name": "echo", "version": "0.1.0", "requires": { "plugins": ["log"] } });
            for (key, value) in more.as_object().unwrap() {
                manifest[key] = value.clone();
            }
            manifest
        };
        let audit = json!([{ "name": "audit", "url": receiver.url, "topics": ["data.task.#"], "headers": { "x-from": "block" } }]);
        let packed = pack(example_block("echo").await, manifest(json!({ "webhooks": audit }))).await.unwrap();
        let dry = admin.install("?dryRun=true", packed.clone()).await;
        assert_eq!(dry.json()["report"]["webhooks"], json!([{ "name": "audit", "url": receiver.url }]), "{}", dry.text);
        let installed = admin.install("", packed.clone()).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let report = installed.json()["report"]["webhooks"][0].clone();
        assert!(report["secret"].as_str().unwrap().starts_with("whsec_"), "{report}");
        let path = format!("/api/v1/webhooks/{}", report["id"].as_str().unwrap());
        let webhook = admin.get(&path).await.data();
        assert_eq!((&webhook["source"], &webhook["name"], &webhook["enabled"]), (&json!("block:echo"), &json!("audit"), &json!(true)));
        admin.make("task", json!({ "title": "a" })).await;
        assert_eq!(receiver.wait_for(1).await[0].header("x-from"), "block");
        // The webhook belongs to the block: it can be turned on and off, and is deleted with the block.
        admin.patch(&path, json!({ "url": "https://example.com" })).await.expect_error(409, "conflict");
        admin.delete(&path).await.expect_error(409, "conflict");
        admin.patch(&path, json!({ "enabled": false })).await.data();
        admin.patch(&path, json!({ "enabled": true })).await.data();
        admin.patch("/api/v1/blocks/echo", json!({ "enabled": false })).await.data();
        admin.make("task", json!({ "title": "while the block is disabled" })).await;
        admin.patch("/api/v1/blocks/echo", json!({ "enabled": true })).await.data();
        admin.make("task", json!({ "title": "b" })).await;
        assert_eq!(receiver.wait_for(2).await[1].json()["payload"]["after"]["title"], "b");
        assert_eq!(admin.delete("/api/v1/blocks/echo").await.status, 204);
        admin.get(&path).await.expect_error(404, "not_found");

        // Installers can only consent to rights that they have.
        assert_eq!(admin.post("/api/v1/roles", json!({ "name": "installer", "permissions": [{ "resource": "blocks", "actions": ["manage"] }] })).await.status, 201);
        let key = admin.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "installer" })).await.json()["key"].as_str().unwrap().to_owned();
        let installer = server.with_token(key);
        let persist = json!({ "object": "task", "map": { "title": "event.topic" } });
        for more in [
            json!({ "webhooks": audit }),
            json!({ "subscriptions": [{ "event": "data.task.#", "consumer": "echo:c", "handler": "log_event" }] }),
            json!({ "subscriptions": [{ "event": "#", "consumer": "echo:c", "handler": "log_event" }] }),
            json!({ "subscriptions": [{ "event": "data.task.#", "consumer": "echo:c", "handler": "persist_event", "config": persist }] }),
        ] {
            let packed = pack(example_block("echo").await, manifest(more)).await.unwrap();
            installer.install("", packed).await.expect_error(403, "forbidden");
        }
        let packed = pack(example_block("echo").await, manifest(json!({}))).await.unwrap();
        assert_eq!(installer.install("", packed).await.status, 201);
    }

    async fn with_events_off_nothing_is_sent_and_the_answers_say_so(engine: Engine) {
        let server = quick(engine).env("SVC_EVENTS_ENABLED", "false").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        let (id, _) = make(&admin, json!({ "url": receiver.url, "topics": ["#"] })).await;
        admin.make("task", json!({ "title": "a" })).await;
        admin.post(&format!("/api/v1/webhooks/{id}/test"), json!({})).await.expect_error(409, "conflict");
        admin.post("/api/v1/events/deliveries/retry", json!({ "eventId": "x", "consumer": "y" })).await.expect_error(409, "conflict");
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(receiver.count(), 0);
        assert_eq!(server.sql("SELECT count(*) FROM svc_events").await, [["0"]]);
        assert_eq!(server.sql("SELECT count(*) FROM svc_deliveries").await, [["0"]]);
        assert_eq!(admin.get("/api/v1/events").await.data(), json!([]));
    }
}

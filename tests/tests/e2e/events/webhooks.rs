//! Outbound webhooks: how they are made, signed, sent and retried.

use std::time::{Duration, Instant};

use blockbase_tests::{Admin, Engine, Receiver, Reply, ServerBuilder, WAIT_MAX, on_both_engines, until};
use serde_json::{Value, json};

/// A server that may call this machine, and that retries soon.
pub(crate) fn quick(engine: Engine) -> ServerBuilder {
    ServerBuilder::new(engine).env("SVC_ALLOW_PRIVATE_NETWORK", "true").env("SVC_RETRY_BASE_MS", "100")
}

/// The same, with leases of seven seconds, which is twice the timeout of a call plus five seconds.
pub(crate) fn short_leases(engine: Engine) -> ServerBuilder {
    quick(engine).env("SVC_WEBHOOK_TIMEOUT_MS", "1000")
}

/// Makes a webhook, and returns its id and secret.
pub(crate) async fn make(admin: &Admin<'_>, body: Value) -> (String, String) {
    let answer = admin.post("/api/v1/webhooks", body).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let json = answer.json();
    (json["data"]["id"].as_str().unwrap().to_owned(), json["secret"].as_str().unwrap().to_owned())
}

/// Changes a webhook's name. Then the server reads all webhooks from the database again.
async fn follow(admin: &Admin<'_>, id: &str) {
    let changed = admin.patch(&format!("/api/v1/webhooks/{id}"), json!({ "name": "changed in the database" })).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
}

/// The ledger entries of a group. Those of the newest events come first.
pub(crate) async fn ledger(admin: &Admin<'_>, query: &str) -> Vec<Value> {
    let answer = admin.get(&format!("/api/v1/events/deliveries?{query}")).await;
    answer.data().as_array().unwrap().clone()
}

/// Waits until the ledger's entries fulfill a condition.
pub(crate) async fn ledger_until(admin: &Admin<'_>, query: &str, is_wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        let entries = ledger(admin, query).await;
        if is_wanted(&entries) {
            return entries;
        }
        assert!(Instant::now() < deadline, "the ledger does not come to hold what it should: {entries:#?}");
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// The HMAC-SHA256 of a text in hexadecimal. Another program computes it.
pub(crate) fn hmac(key: &str, text: &[u8]) -> String {
    use std::io::Write;
    let mut openssl = std::process::Command::new("openssl")
        .args(["dgst", "-sha256", "-hmac", key])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    openssl.stdin.take().unwrap().write_all(text).unwrap();
    let output = String::from_utf8(openssl.wait_with_output().unwrap().stdout).unwrap();
    output.trim().rsplit(' ').next().unwrap().to_owned()
}

/// Checks `t=…,v1=…[,v1=…]` against the secrets, in order.
fn check_signature(header: &str, secrets: &[&str], body: &[u8]) {
    let mut parts = header.split(',');
    let instant = parts.next().unwrap().strip_prefix("t=").unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(now.abs_diff(instant.parse().unwrap()) < 60, "{header}");
    let signed = [instant.as_bytes(), b".", body].concat();
    let expected: Vec<String> = secrets.iter().map(|secret| format!("v1={}", hmac(secret, &signed))).collect();
    assert_eq!(parts.collect::<Vec<_>>(), expected);
}

on_both_engines! {
    async fn a_webhook_gets_what_it_subscribed_to_signed(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        let body = json!({
            "name": "audit", "url": receiver.url, "topics": ["data.task.created", "data.task.deleted"], "headers": { "X-Tenant": "acme", "Authorization": "Bearer t" },
        });
        let answer = admin.post("/api/v1/webhooks", body).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let made = answer.json();
        let keys: Vec<_> = made["data"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["id", "name", "url", "topics", "headers", "enabled", "source", "createdAt", "updatedAt", "suspended"]);
        let secret = made["secret"].as_str().unwrap();
        assert!(secret.starts_with("whsec_") && secret.len() > 40, "{secret}");

        let created = admin.post("/api/v1/data/task", json!({ "title": "é\u{2028}\"" })).await.data();
        let path = format!("/api/v1/data/task/{}", created["id"].as_str().unwrap());
        admin.patch(&path, json!({ "title": "b" })).await.data();
        assert_eq!(admin.delete(&path).await.status, 204);
        let received = receiver.wait_for(2).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(receiver.count(), 2, "an update was not subscribed to");
        let events = admin.get("/api/v1/events?topic=data.").await.data();
        for (request, event) in received.iter().zip([&events[2], &events[0]]) {
            assert_eq!(request.json(), *event);
            assert_eq!(request.header("content-type"), "application/json");
            assert_eq!(request.header("x-svc-event-id"), event["id"]);
            assert_eq!(request.header("x-svc-topic"), event["topic"]);
            assert_eq!((request.header("x-tenant"), request.header("authorization")), ("acme", "Bearer t"));
            check_signature(request.header("x-svc-signature"), &[secret], &request.body);
        }
        let id = made["data"]["id"].as_str().unwrap();
        let entries = ledger_until(&admin, &format!("consumer=webhook:{id}"), |entries| entries.iter().all(|entry| entry["status"] == "delivered")).await;
        assert_eq!(entries.len(), 2);
        let keys: Vec<_> = entries[0].as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["eventId", "topic", "consumer", "handler", "status", "attempts", "error", "nextAttemptAt", "deliveredAt", "occurredAt", "dead", "skipped"]);
        assert_eq!((&entries[0]["eventId"], &entries[0]["attempts"], &entries[0]["error"], &entries[0]["dead"]), (&events[0]["id"], &json!(1), &Value::Null, &json!(false)));
        assert!(entries[0]["deliveredAt"].is_string() && entries[0]["nextAttemptAt"].is_null());
        // The secret is shown once. The database does not contain it in plain text.
        assert!(!admin.get(&format!("/api/v1/webhooks/{id}")).await.text.contains("whsec_"));
        assert!(!admin.get("/api/v1/webhooks").await.text.contains("whsec_"));
        let stored = server.sql("SELECT secret, secret_key_id FROM svc_webhooks").await;
        assert!(!stored[0][0].contains(secret) && !stored[0][1].is_empty(), "{stored:?}");
        assert_eq!(server.sql("SELECT payload FROM svc_events WHERE payload LIKE '%whsec%'").await.len(), 0);
    }

    async fn a_failed_delivery_is_tried_again_until_it_is_dead_and_by_hand_after_that(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        receiver.answer(|_, _| Reply::Text(503, "not now\u{0}, please ".to_owned() + &"x".repeat(2000)));
        let (id, _) = make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
        let consumer = format!("webhook:{id}");
        admin.post("/api/v1/data/task", json!({ "title": "a" })).await.data();
        let requests = receiver.wait_for(5).await;
        let entry = ledger_until(&admin, "dead=true", |entries| entries.len() == 1).await.remove(0);
        assert_eq!((&entry["status"], &entry["attempts"], &entry["consumer"], &entry["handler"]), (&json!("failed"), &json!(5), &json!(consumer), &json!("webhook")));
        assert!(entry["nextAttemptAt"].is_null() && entry["deliveredAt"].is_null(), "{entry}");
        // The error has the status and the first 500 bytes of the response.
        let error = entry["error"].as_str().unwrap();
        assert!(error.starts_with("HTTP 503: not now") && error.ends_with("xxx") && error.len() <= "HTTP 503: ".len() + 502, "{error}");
        // The pauses double. Each request for the same event has a new signature.
        for (attempt, pair) in requests.windows(2).enumerate() {
            let pause = pair[1].at - pair[0].at;
            assert!(pause >= Duration::from_millis(100 << attempt), "attempt {attempt} after {pause:?}");
            assert_eq!(pair[0].body, pair[1].body);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(receiver.count(), 5, "a dead letter was sent again");

        receiver.answer(|_, _| Reply::Status(204));
        let again = admin.post("/api/v1/events/deliveries/retry", json!({ "eventId": entry["eventId"], "consumer": consumer })).await.data();
        assert_eq!((&again["status"], &again["attempts"], &again["dead"], &again["error"]), (&json!("pending"), &json!(0), &json!(false), &Value::Null));
        receiver.wait_for(6).await;
        let entry = ledger_until(&admin, &format!("consumer={consumer}"), |entries| entries[0]["status"] == "delivered").await.remove(0);
        assert_eq!((&entry["attempts"], &entry["error"]), (&json!(1), &Value::Null));
        let retry = |event: Value, consumer: &str| admin.post("/api/v1/events/deliveries/retry", json!({ "eventId": event, "consumer": consumer }));
        retry(entry["eventId"].clone(), &consumer).await.expect_error(409, "conflict");
        retry(entry["eventId"].clone(), "webhook:nobody").await.expect_error(404, "not_found");
        retry(json!("00000000-0000-7000-8000-000000000000"), &consumer).await.expect_error(404, "not_found");
        admin.post("/api/v1/events/deliveries/retry", json!({ "eventId": entry["eventId"] })).await.expect_error(400, "invalid_request");
    }

    async fn a_delivery_keeps_its_attempts_over_retries_by_hand(engine: Engine) {
        let server = quick(engine).env("SVC_EVENTS_RETENTION_DAYS", "1").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        // The fourth attempt is the first one after a retry by hand. It takes some time, and succeeds.
        receiver.answer(|number, request| match number {
            _ if request.json()["payload"]["after"]["title"] == "quick" => Reply::Status(200),
            0..23 => Reply::Text(500, format!("no {number}")),
            _ => Reply::After(Duration::from_millis(120)),
        });
        let (id, _) = make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
        let consumer = format!("webhook:{id}");
        let retry = |event: &Value| admin.post("/api/v1/events/deliveries/retry", json!({ "eventId": event, "consumer": consumer }));
        admin.post("/api/v1/data/task", json!({ "title": "a" })).await.data();
        let dead = ledger_until(&admin, "dead=true", |entries| entries.len() == 1).await.remove(0);
        let path = format!("/api/v1/events/deliveries/{}/{consumer}", dead["eventId"].as_str().unwrap());
        let numbers = |entry: &Value| -> Vec<i64> { entry["history"].as_array().unwrap().iter().map(|each| each["number"].as_i64().unwrap()).collect() };
        let first = admin.get(&path).await.data();
        assert_eq!(numbers(&first), [5, 4, 3, 2, 1]);
        for (attempt, number) in first["history"].as_array().unwrap().iter().zip((0..5).rev()) {
            let keys: Vec<_> = attempt.as_object().unwrap().keys().cloned().collect();
            assert_eq!(keys, ["number", "at", "status", "durationMs", "error"]);
            assert_eq!((&attempt["status"], &attempt["error"]), (&json!("failed"), &json!(format!("HTTP 500: no {number}"))));
            assert!(attempt["durationMs"].is_u64() && attempt["at"].as_str() >= first["occurredAt"].as_str(), "{attempt}");
        }
        // The other members equal those of the entry in the list.
        let mut listed = first.clone();
        listed.as_object_mut().unwrap().shift_remove("history");
        assert_eq!(listed, dead);

        // The delivery fails again and again. The oldest attempts are deleted, and retries by hand continue the numbers.
        for rounds in 2..=4 {
            let again = retry(&dead["eventId"]).await.data();
            assert_eq!((&again["attempts"], &again["error"]), (&json!(0), &Value::Null));
            receiver.wait_for(rounds * 5).await;
            ledger_until(&admin, "dead=true", |entries| entries.len() == 1).await;
        }
        assert_eq!(numbers(&admin.get(&path).await.data()), (1..=20).rev().collect::<Vec<_>>());
        // One call retries all dead entries. After it, three attempts fail, and one succeeds.
        assert_eq!(admin.post("/api/v1/events/deliveries/retry", json!({ "dead": true })).await.data()["count"], 1);
        ledger_until(&admin, "status=delivered", |entries| entries.len() == 1).await;
        let last = admin.get(&path).await.data();
        assert_eq!((numbers(&last), &last["attempts"]), ((5..=24).rev().collect(), &json!(4)));
        let newest = &last["history"][0];
        assert_eq!((&newest["status"], &newest["error"]), (&json!("delivered"), &Value::Null));
        assert!(newest["durationMs"].as_u64().unwrap() >= 100, "{newest}");
        assert_eq!(server.sql("SELECT number FROM svc_delivery_attempts").await.len(), 20);

        // If the first attempt succeeds, the server stores no attempts, but the history still shows one.
        admin.post("/api/v1/data/task", json!({ "title": "quick" })).await.data();
        let quick = ledger_until(&admin, "status=delivered", |entries| entries.len() == 2).await.remove(0);
        let of_quick = format!("/api/v1/events/deliveries/{}/{consumer}", quick["eventId"].as_str().unwrap());
        let history = json!([{ "number": 1, "at": quick["deliveredAt"], "status": "delivered", "durationMs": null, "error": null }]);
        assert_eq!(admin.get(&of_quick).await.data()["history"], history);
        assert_eq!(server.sql("SELECT number FROM svc_delivery_attempts").await.len(), 20);

        admin.get(&format!("{path}x")).await.expect_error(404, "not_found");
        admin.get("/api/v1/events/deliveries/nothing/webhook:nobody").await.expect_error(404, "not_found");
        // A key that may not read tasks does not see the entry.
        let role = json!({ "name": "events", "permissions": [{ "resource": "events", "actions": ["read"] }] });
        assert_eq!(admin.post("/api/v1/roles", role).await.status, 201);
        let key = admin.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "events" })).await.json()["key"].clone();
        server.with_token(key.as_str().unwrap().to_owned()).get(&path).await.expect_error(404, "not_found");

        // Retention deletes the attempts together with their event.
        server.sql("UPDATE svc_events SET occurred_at = 0").await;
        admin.post("/api/v1/tasks/event-retention/run", json!({})).await.data();
        ledger_until(&admin, "", |entries| entries.is_empty()).await;
        assert_eq!(server.sql("SELECT number FROM svc_delivery_attempts").await.len(), 0);
    }

    async fn the_attempts_of_a_webhook_that_is_deleted_go_with_its_deliveries(engine: Engine) {
        let server = quick(engine).env("SVC_RETRY_BASE_MS", "3600000").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        receiver.answer(|_, _| Reply::Status(500));
        let (id, _) = make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
        admin.post("/api/v1/data/task", json!({ "title": "a" })).await.data();
        ledger_until(&admin, "status=failed", |entries| entries.len() == 1).await;
        assert_eq!(server.sql("SELECT number FROM svc_delivery_attempts").await.len(), 1);
        assert_eq!(admin.delete(&format!("/api/v1/webhooks/{id}")).await.status, 204);
        let server = server.restart().await;
        until("the attempts are gone", async || server.sql("SELECT number FROM svc_delivery_attempts").await.is_empty()).await;
    }

    async fn a_retry_by_hand_comes_at_once_and_has_all_attempts(engine: Engine) {
        // The pause before the second attempt is long, so an earlier attempt can only be a retry by hand.
        let server = quick(engine).env("SVC_RETRY_BASE_MS", "3600000").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        receiver.answer(|_, _| Reply::Status(500));
        let (id, _) = make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
        admin.post("/api/v1/data/task", json!({ "title": "a" })).await.data();
        let entry = ledger_until(&admin, "status=failed", |entries| entries.len() == 1).await.remove(0);
        assert_eq!((&entry["attempts"], &entry["dead"]), (&json!(1), &json!(false)));
        assert!(entry["nextAttemptAt"].as_str() > entry["occurredAt"].as_str());
        for count in 2..5 {
            admin.post("/api/v1/events/deliveries/retry", json!({ "eventId": entry["eventId"], "consumer": format!("webhook:{id}") })).await.data();
            receiver.wait_for(count).await;
            ledger_until(&admin, "status=failed", |entries| entries.len() == 1 && entries[0]["attempts"] == 1).await;
        }
    }

    async fn a_webhook_is_changed_disabled_tested_and_deleted(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let (first, second) = (Receiver::start().await, Receiver::start().await);
        let (id, _) = make(&admin, json!({ "url": first.url, "topics": ["data.task.created"], "name": "n" })).await;
        let path = format!("/api/v1/webhooks/{id}");
        let changed = admin.patch(&path, json!({ "url": second.url, "topics": ["data.#"], "name": null, "headers": { "A": "b" } })).await.data();
        assert_eq!(changed, admin.get(&path).await.data());
        assert_eq!((&changed["url"], &changed["topics"], &changed["name"], &changed["headers"]), (&json!(second.url), &json!(["data.#"]), &Value::Null, &json!({ "A": "***" })));
        admin.post("/api/v1/data/task", json!({ "title": "a" })).await.data();
        assert_eq!(second.wait_for(1).await[0].header("a"), "b");
        assert_eq!(first.count(), 0);

        admin.patch(&path, json!({ "enabled": false })).await.data();
        admin.post("/api/v1/data/task", json!({ "title": "while disabled" })).await.data();
        admin.post(&format!("{path}/test"), json!({})).await.expect_error(409, "conflict");
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(second.count(), 1);
        admin.patch(&path, json!({ "enabled": true })).await.data();

        // A test delivery works like any delivery, and does not depend on the webhook's topics. Its actor is the caller.
        admin.patch(&path, json!({ "topics": ["data.nothing.#"] })).await.data();
        let answer = admin.post(&format!("{path}/test"), json!({})).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        let request = second.wait_for(2).await.remove(1);
        assert_eq!(request.header("x-svc-topic"), format!("webhook.test.{id}"));
        assert_eq!(request.json()["id"], answer.json()["data"]["eventId"]);
        assert_eq!(request.json()["payload"], json!({ "actor": { "userId": admin.get("/api/v1/me").await.json()["userId"], "apiKeyId": null, "via": "session" } }));
        ledger_until(&admin, "", |entries| entries[0]["topic"] == format!("webhook.test.{id}") && entries[0]["status"] == "delivered").await;

        assert_eq!(admin.delete(&path).await.status, 204);
        admin.get(&path).await.expect_error(404, "not_found");
        admin.delete(&path).await.expect_error(404, "not_found");
        admin.patch(&path, json!({ "enabled": true })).await.expect_error(404, "not_found");
        admin.post(&format!("{path}/test"), json!({})).await.expect_error(404, "not_found");
        admin.post(&format!("{path}/rotate-secret"), json!({})).await.expect_error(404, "not_found");
        admin.post("/api/v1/data/task", json!({ "title": "afterwards" })).await.data();
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(second.count(), 2);
    }

    async fn what_a_deleted_webhook_still_had_to_send_is_dropped(engine: Engine) {
        let server = quick(engine).env("SVC_RETRY_BASE_MS", "3600000").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        receiver.answer(|_, _| Reply::Status(500));
        let (id, _) = make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
        let records: Vec<_> = (0..900).map(|number| json!({ "title": format!("{number}") })).collect();
        assert_eq!(admin.post("/api/v1/data/task/bulk", json!({ "data": records })).await.status, 201);
        ledger_until(&admin, "status=failed", |entries| !entries.is_empty()).await;
        assert_eq!(admin.delete(&format!("/api/v1/webhooks/{id}")).await.status, 204);
        ledger_until(&admin, "", <[Value]>::is_empty).await;
        assert_eq!(server.sql("SELECT count(*) FROM svc_events WHERE topic = 'data.task.created'").await, [["900"]]);
    }

    async fn during_a_rotation_both_secrets_sign(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        let receiver = Receiver::start().await;
        let (id, old) = make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
        let answer = admin.post(&format!("/api/v1/webhooks/{id}/rotate-secret"), json!({})).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let new = answer.json()["secret"].as_str().unwrap().to_owned();
        assert!(new.starts_with("whsec_") && new != old);
        let test = || async {
            let count = receiver.count();
            assert_eq!(admin.post(&format!("/api/v1/webhooks/{id}/test"), json!({})).await.status, 202);
            receiver.wait_for(count + 1).await.remove(count)
        };
        let request = test().await;
        check_signature(request.header("x-svc-signature"), &[&new, &old], &request.body);
        // A day later, the server no longer signs with the old secret.
        let day = 24 * 3600 * 1000;
        let until = server.sql("SELECT previous_until FROM svc_webhooks").await[0][0].parse::<i64>().unwrap();
        let now = i64::try_from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis()).unwrap();
        assert!((now + day - 60_000..=now + day).contains(&until), "{until}");
        server.sql("UPDATE svc_webhooks SET previous_until = 1").await;
        follow(&admin, &id).await;
        let request = test().await;
        check_signature(request.header("x-svc-signature"), &[&new], &request.body);
    }

    async fn redirects_are_not_followed_and_slow_endpoints_are_cut_off(engine: Engine) {
        let (elsewhere, redirecting, hanging) = (Receiver::start().await, Receiver::start().await, Receiver::start().await);
        let target = elsewhere.url.clone();
        redirecting.answer(move |_, _| Reply::Redirect(target.clone()));
        hanging.answer(|_, _| Reply::Hang);
        // Only the endpoint that hangs has a short timeout. The others fail by themselves, on any machine.
        for (timeout_ms, endpoints) in [
            ("1000", &[(hanging.url.as_str(), "no answer within 1000 ms")][..]),
            ("50000", &[
                (&redirecting.url, "HTTP 302 (redirects are not followed)"),
                ("http://127.0.0.1:1/nobody-listens", "the call failed: "),
                ("http://no-such-host.invalid/x", "the call failed: "),
            ]),
        ] {
            let server = quick(engine).env("SVC_WEBHOOK_TIMEOUT_MS", timeout_ms).env("SVC_RETRY_BASE_MS", "3600000").start().await;
            let admin = server.admin().await;
            let mut ids = Vec::new();
            for (url, _) in endpoints {
                let (id, _) = make(&admin, json!({ "url": url, "topics": ["data.#"] })).await;
                assert_eq!(admin.post(&format!("/api/v1/webhooks/{id}/test"), json!({})).await.status, 202);
                ids.push(id);
            }
            for (id, (_, expected)) in ids.iter().zip(endpoints) {
                let entry = ledger_until(&admin, &format!("consumer=webhook:{id}"), |entries| entries[0]["status"] == "failed").await.remove(0);
                assert!(entry["error"].as_str().unwrap().starts_with(expected), "{entry}");
            }
        }
        assert_eq!(elsewhere.count(), 0);
    }

    async fn private_addresses_are_refused_when_saving_and_when_connecting(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_RETRY_BASE_MS", "3600000").start().await;
        let admin = server.admin().await;
        let receiver = Receiver::start().await;
        let port = receiver.url.rsplit(':').next().unwrap().to_owned();
        for host in ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "localhost", "LOCALHOST.", "a.localhost", "169.254.169.254", "10.0.0.1", "100.64.1.1", "[fd00::1]", "[64:ff9b::7f00:1]", "0.0.0.0"] {
            let answer = admin.post("/api/v1/webhooks", json!({ "url": format!("http://{host}:{port}"), "topics": ["data.#"] })).await;
            assert_eq!(answer.expect_error(400, "invalid_value")["field"], "url", "{host}");
        }
        // The address behind a name is known only after the name is resolved. A URL that was stored when it was allowed is
        // refused too.
        let (id, _) = make(&admin, json!({ "url": "http://example.com/", "topics": ["data.#"] })).await;
        for url in [format!("http://127.0.0.1:{port}"), format!("http://{}:{port}", own_name())] {
            server.sql(&format!("UPDATE svc_webhooks SET url = '{url}'")).await;
            follow(&admin, &id).await;
            let event = admin.post(&format!("/api/v1/webhooks/{id}/test"), json!({})).await.data();
            let is_failed = |entries: &[Value]| entries[0]["eventId"] == event["eventId"] && entries[0]["status"] == "failed";
            let entry = ledger_until(&admin, &format!("consumer=webhook:{id}"), is_failed).await.remove(0);
            assert!(entry["error"].as_str().unwrap().contains("is not an address of the public internet"), "{entry}");
        }
        assert_eq!(receiver.count(), 0);
    }
}

on_both_engines! {
    async fn bad_webhooks_are_refused_and_change_nothing(server: Server) {
        let admin = server.admin().await;
        let with = |key: &str, value: Value| {
            let mut body = json!({ "url": "https://example.com/hook", "topics": ["data.#"] });
            body[key] = value;
            body
        };
        let many: Vec<String> = (0..51).map(|number| format!("data.o{number}.#")).collect();
        let cases = [
            (with("url", json!("example.com")), "url"),
            (with("url", json!("ftp://example.com")), "url"),
            (with("url", json!(" https://example.com")), "url"),
            (with("url", json!("https://example.com/\t")), "url"),
            (with("url", json!("https://user:word@example.com")), "url"),
            (with("url", json!(format!("https://example.com/{}", "x".repeat(2048)))), "url"),
            (with("topics", json!([])), "topics"),
            (with("topics", json!(["data..x"])), "topics"),
            (with("topics", json!(many)), "topics"),
            (with("name", json!("")), "name"),
            (with("name", json!("x".repeat(201))), "name"),
            (with("headers", json!({ "x-svc-signature": "v" })), "headers"),
            (with("headers", json!({ "X-SVC-Anything": "v" })), "headers"),
            (with("headers", json!({ "Host": "v" })), "headers"),
            (with("headers", json!({ "content-length": "5" })), "headers"),
            (with("headers", json!({ "Transfer-Encoding": "chunked" })), "headers"),
            (with("headers", json!({ "a b": "v" })), "headers"),
            (with("headers", json!({ "": "v" })), "headers"),
            (with("headers", json!({ "a": "v\r\nb: c" })), "headers"),
            (with("headers", json!({ "a": 5 })), "headers"),
            (with("headers", json!({ "a": "1", "A": "2" })), "headers"),
            (with("headers", json!({ "a": "x".repeat(9000) })), "headers"),
        ];
        let (id, _) = make(&admin, with("enabled", json!(false))).await;
        let before = admin.get(&format!("/api/v1/webhooks/{id}")).await.data();
        for (body, field) in cases {
            assert_eq!(admin.post("/api/v1/webhooks", body.clone()).await.expect_error(400, "invalid_value")["field"], field, "{body}");
            let change = json!({ field: body[field] });
            assert_eq!(admin.patch(&format!("/api/v1/webhooks/{id}"), change).await.expect_error(400, "invalid_value")["field"], field, "{body}");
        }
        for body in [json!({ "topics": ["data.#"] }), json!({ "url": "https://example.com" }), with("secret", json!("whsec_x")), with("enabled", json!("yes")), with("topics", json!("data.#")), json!([])] {
            admin.post("/api/v1/webhooks", body).await.expect_error(400, "invalid_request");
        }
        assert_eq!(admin.get("/api/v1/webhooks").await.data(), json!([before]));
    }

    async fn nobody_sends_elsewhere_what_they_may_not_read(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let role = |name: &str, permissions: Value| {
            let admin = admin.clone();
            let name = name.to_owned();
            async move {
                let role = admin.post("/api/v1/roles", json!({ "name": name, "permissions": permissions })).await.data();
                let key = admin.post("/api/v1/api-keys", json!({ "name": name, "roleId": role["id"] })).await.json()["key"].clone();
                key.as_str().unwrap().to_owned()
            }
        };
        let hooks = json!({ "resource": "webhooks", "actions": ["manage"] });
        let bare = role("bare", json!([hooks])).await;
        let own = role("own", json!([hooks, { "resource": "task", "actions": ["read"], "rowPolicy": "own" }])).await;
        let task = role("task", json!([hooks, { "resource": "task", "actions": ["read"] }])).await;
        let events = role("events", json!([hooks, { "resource": "events", "actions": ["read"] }])).await;
        let all = role("all", json!([hooks, { "resource": "*", "actions": ["read"] }])).await;
        let make = |key: &str, topic: &str| {
            let body = json!({ "url": "https://example.com", "topics": [topic], "enabled": false });
            let (server, key) = (&server, key.to_owned());
            async move { server.call_as(Some(&key), "POST", "/api/v1/webhooks", Some(body)).await.status }
        };
        for (key, task_topic, platform, wide) in [(&bare, 403, 403, 403), (&own, 403, 403, 403), (&task, 201, 403, 403), (&events, 403, 201, 403), (&all, 201, 201, 201)] {
            assert_eq!(make(key, "data.task.#").await, task_topic);
            assert_eq!(make(key, "schema.#").await, platform);
            for topic in ["data.#", "#", "data.*.created", "*.task.created"] {
                assert_eq!(make(key, topic).await, wide, "{topic}");
            }
        }
        // A new address for an existing webhook needs the same rights.
        let (id, _) = self::make(&admin, json!({ "url": "https://example.com", "topics": ["data.#"], "enabled": false })).await;
        let path = format!("/api/v1/webhooks/{id}");
        let change = |key: &str, body: Value| {
            let (server, key, path) = (&server, key.to_owned(), path.clone());
            async move { server.call_as(Some(&key), "PATCH", &path, Some(body)).await.status }
        };
        assert_eq!(change(&task, json!({ "url": "https://example.org" })).await, 403);
        // Any other change of the webhook needs them too.
        assert_eq!(change(&task, json!({ "name": "x" })).await, 403);
        assert_eq!(change(&task, json!({ "topics": ["data.#"] })).await, 403);
        assert_eq!(change(&all, json!({ "url": "https://example.org" })).await, 200);
    }
}

/// A name of this machine that is not `localhost`, if it has one.
fn own_name() -> String {
    let name = std::fs::read_to_string("/etc/hostname").map(|name| name.trim().to_owned()).unwrap_or_default();
    let resolves =
        std::net::ToSocketAddrs::to_socket_addrs(&(name.as_str(), 80)).is_ok_and(|mut addresses| addresses.next().is_some());
    if resolves && !name.is_empty() { name } else { "ip6-localhost".to_owned() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_secret_that_cannot_be_opened_is_reported_and_rotated() {
    let server = quick(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    let receiver = Receiver::start().await;
    let (id, _) = make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
    // One value is damaged, as if somebody had made a mistake while repairing the database. The server caches webhooks, and reads
    // them when it starts.
    server.sql("UPDATE svc_webhooks SET secret = '00'").await;
    let token = admin.token.clone();
    let server = server.restart().await;
    let admin = server.with_token(token);
    assert_eq!(admin.post(&format!("/api/v1/webhooks/{id}/test"), json!({})).await.status, 202);
    let entry = ledger_until(&admin, "status=failed", |entries| entries.len() == 1).await.remove(0);
    assert!(entry["error"].as_str().unwrap().contains("rotate it"), "{entry}");
    let new = admin.post(&format!("/api/v1/webhooks/{id}/rotate-secret"), json!({})).await.json()["secret"].clone();
    let request = receiver.wait_for(1).await.remove(0);
    check_signature(request.header("x-svc-signature"), &[new.as_str().unwrap()], &request.body);
}

//! An instance that stops for longer than its leases, like a suspended machine.

use std::time::{Duration, Instant};

use blockbase_tests::{Engine, Receiver, Reply};
use serde_json::json;

use crate::events::webhooks::{ledger, ledger_until, make, quick};

/// How long a call may take. It is long enough for a busy machine, and short enough for a test.
const TIMEOUT_MS: u64 = 3000;
/// Twice the timeout of a call plus five seconds.
const LEASE: Duration = Duration::from_millis(2 * TIMEOUT_MS + 5000);
/// The log message if an outcome comes too late.
const TOO_LATE: &str = "deliveries took longer than their lease";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_suspended_instance_held_is_delivered_by_another_and_its_late_outcome_is_refused() {
    let holder = quick(Engine::Postgres)
        .env("SVC_WEBHOOK_TIMEOUT_MS", &TIMEOUT_MS.to_string())
        .env("SVC_EVENTS_POLL_INTERVAL_MS", "200")
        .start()
        .await;
    let admin = holder.admin().await;
    admin.make_task_object().await;
    let other = holder.builder().start().await;
    let there = other.with_token(admin.token.clone());
    let receiver = Receiver::start().await;
    receiver.answer(|number, _| if number == 0 { Reply::After(Duration::from_millis(700)) } else { Reply::Status(200) });
    let (id, _) = make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
    let query = format!("consumer=webhook:{id}");

    // The other instance is stopped, so the first one begins the delivery.
    other.signal("STOP");
    let began = Instant::now();
    let record = admin.make("task", json!({ "title": "created" })).await;
    let first = receiver.wait_for(1).await.remove(0);
    holder.signal("STOP");
    other.signal("CONT");
    // A later event of the record waits while the earlier one may still be under way.
    there.patch(&format!("/api/v1/data/task/{record}"), json!({ "title": "updated" })).await.data();
    let requests = receiver.wait_for(3).await;
    // The lease began after the event was written.
    assert!(requests[1].at - began >= LEASE, "somebody else delivers while the lease holds: {:?}", requests[1].at - began);
    assert_eq!(requests[1].body, first.body);
    assert_eq!(
        (requests[1].header("x-svc-topic"), requests[2].header("x-svc-topic")),
        ("data.task.created", "data.task.updated")
    );
    let is_settled =
        |entries: &[serde_json::Value]| entries.len() == 2 && entries.iter().all(|entry| entry["status"] == "delivered");
    let settled = ledger_until(&there, &query, is_settled).await;
    assert!(settled.iter().all(|entry| entry["attempts"] == 1), "{settled:?}");

    assert!(!holder.log().contains(TOO_LATE));
    holder.signal("CONT");
    for _ in 0..1000 {
        if holder.log().contains(TOO_LATE) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(holder.log().contains(TOO_LATE), "the holder has stored what it had no claim for, or says nothing");
    assert_eq!(ledger(&there, &query).await, settled, "the late outcome changed the ledger");
    assert!(!other.log().contains(TOO_LATE));
    // Now both instances work again.
    for who in [&admin, &there] {
        who.make("task", json!({ "title": "afterwards" })).await;
    }
    receiver.wait_for(5).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(receiver.count(), 5);
}

//! Endpoints that do not answer, and endpoints that disappear and come back.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use blockbase_tests::{Receiver, Reply, on_both_engines, within};
use serde_json::{Value, json};

use super::audit;
use super::seed::Seed;
use super::storm::{OnLoss, Storm};
use crate::events::webhooks::{ledger_until, make, quick};

/// The number of endpoints that never answer.
const HANGING: usize = 100;
/// The number of writes whose delivery to the healthy endpoint is measured.
const WRITES: usize = 120;
/// Time limits from the request to the arrival: for nearly all writes, and for every write.
const MOST_WITHIN: Duration = Duration::from_secs(1);
const ALL_WITHIN: Duration = Duration::from_secs(4);
/// How often the receiver goes away.
const FLAPS: u64 = 6;

on_both_engines! {
    async fn a_hundred_endpoints_that_hang_hold_up_no_other(engine: Engine) {
        let server = quick(engine).env("SVC_WEBHOOK_TIMEOUT_MS", "10000").env("SVC_RETRY_BASE_MS", "5000").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let (hanging, healthy) = (Receiver::start().await, Receiver::start().await);
        hanging.answer(|_, _| Reply::Hang);
        for number in 0..HANGING {
            make(&admin, json!({ "url": format!("{}/{number}", hanging.url), "topics": ["data.task.created"] })).await;
        }
        make(&admin, json!({ "url": healthy.url, "topics": ["data.task.created"] })).await;
        let mut written: HashMap<String, Instant> = HashMap::new();
        for number in 0..WRITES {
            let began = Instant::now();
            let id = admin.make("task", json!({ "title": format!("{number}") })).await;
            written.insert(id, began);
            tokio::time::sleep(Duration::from_millis(50).saturating_sub(began.elapsed())).await;
        }
        let mut took: Vec<Duration> = healthy
            .wait_for(WRITES)
            .await
            .iter()
            .map(|request| request.at - written[request.json()["payload"]["id"].as_str().unwrap()])
            .collect();
        took.sort();
        let most = took[WRITES * 99 / 100 - 1];
        eprintln!("{engine:?}: from the write to the arrival {:?} half of the time, {most:?} p99, {:?} at most, {} hang", took[WRITES / 2], took[WRITES - 1], hanging.count());
        assert!(most < within(MOST_WITHIN) && took[WRITES - 1] < within(ALL_WITHIN), "{took:?}");
        assert_eq!(healthy.count(), WRITES);
        assert!(hanging.count() >= HANGING);
    }

    async fn what_a_receiver_misses_that_comes_and_goes_reaches_it_in_the_end(engine: Engine) {
        let seed = Seed::new();
        let mut random = seed.rng(0);
        // The pauses are so long that the receiver is back before any delivery is given up.
        let server = quick(engine).env("SVC_RETRY_BASE_MS", "700").env("SVC_EVENTS_POLL_INTERVAL_MS", "500").start().await;
        let admin = server.admin().await;
        admin.define("thing", json!([{ "name": "note", "type": "text" }])).await;
        let mut receiver = Receiver::start().await;
        let (id, _) = make(&admin, json!({ "url": receiver.url, "topics": ["data.thing.#"] })).await;
        let storm = Arc::new(Storm::default());
        let writers = storm.begin((&server.base, &admin.token), &seed, 10, 3, OnLoss::End);
        for _ in 0..FLAPS {
            tokio::time::sleep(Duration::from_millis(random.u64(200..900))).await;
            receiver.go_away().await;
            tokio::time::sleep(Duration::from_millis(random.u64(200..1200))).await;
            receiver.come_back().await;
        }
        storm.end(writers).await;
        audit::settle(&server).await;
        let events = audit::events(&server).await;
        let received: HashSet<String> = receiver.received().iter().map(|request| request.id()).collect();
        assert!(events.iter().all(|event| received.contains(&event.id)), "an event has not arrived");
        let entries = server.sql(&format!("SELECT event_seq, attempts FROM svc_deliveries WHERE consumer = 'webhook:{id}'")).await;
        assert_eq!(entries.len(), events.len());
        // The events that arrived at the first attempt are in the order of their commits.
        let at_once: HashSet<String> = entries.into_iter().filter(|row| row[1] == "1").map(|mut row| row.swap_remove(0)).collect();
        let total = events.len();
        let (first_try, retried): (Vec<_>, Vec<_>) = events.into_iter().partition(|event| at_once.contains(&event.seq.to_string()));
        eprintln!("{engine:?}: {total} events, {} of them after a retry, {} requests", retried.len(), receiver.count());
        assert!(!retried.is_empty() && !first_try.is_empty());
        let skipped: HashSet<String> = retried.into_iter().map(|event| event.id).collect();
        audit::arrive_in_order(receiver.received().into_iter().filter(|request| !skipped.contains(&request.id())), &first_try);
    }

    async fn a_retry_is_begun_when_its_time_has_come(engine: Engine) {
        // The dispatcher polls so rarely that a retry would be too late if it waited for the next poll.
        let server = quick(engine).env("SVC_RETRY_BASE_MS", "100").env("SVC_EVENTS_POLL_INTERVAL_MS", "600000").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        receiver.answer(|number, _| Reply::Status(if number < 3 { 500 } else { 200 }));
        make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
        admin.make("task", json!({ "title": "a" })).await;
        let received = receiver.wait_for(4).await;
        let pauses: Vec<Duration> = received.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
        assert!(pauses.iter().all(|pause| *pause < within(Duration::from_secs(2))), "{pauses:?}");
        ledger_until(&admin, "", |entries: &[Value]| entries[0]["status"] == "delivered" && entries[0]["attempts"] == 4).await;
    }
}

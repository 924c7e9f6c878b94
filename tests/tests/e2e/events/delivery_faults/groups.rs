//! The consumer groups of these tests: two webhooks, of which one sometimes fails, and both built-in handlers.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use blockbase_tests::{Admin, Receiver, Reply};
use serde_json::json;

use super::seed::Seed;
use crate::events::webhooks::make;

/// The names of the groups, and the receivers of the webhooks.
pub(super) struct Groups {
    /// The receiver that never fails.
    pub(super) steady: Receiver,
    pub(super) steady_group: String,
    /// The receiver that sometimes fails or is slow, but at most twice for each event. So no delivery uses up its attempts.
    pub(super) flaky: Receiver,
    pub(super) flaky_group: String,
}

/// The group that writes each event into the object `trail`.
pub(super) const PERSIST: &str = "trail";
/// The group that logs each event.
pub(super) const LOG: &str = "log";
/// The maximum number of failures of one event at the flaky receiver.
const FAILURES_MAX: u32 = 2;

impl Groups {
    /// Makes the objects, and all consumers of the events of `thing`.
    pub(super) async fn make(admin: &Admin<'_>, seed: &Seed) -> Groups {
        admin.define("thing", json!([{ "name": "note", "type": "text" }])).await;
        admin.define("trail", json!([{ "name": "event_id", "type": "text" }, { "name": "about", "type": "text" }])).await;
        let (steady, flaky) = (Receiver::start().await, Receiver::start().await);
        let script = Mutex::new((seed.rng(1000), HashMap::<String, u32>::new()));
        flaky.answer(move |_, request| {
            let mut script = script.lock().unwrap();
            let (random, failures) = &mut *script;
            match random.u32(0..100) {
                0..8 => {
                    let failures = failures.entry(request.id()).or_default();
                    *failures += 1;
                    if *failures <= FAILURES_MAX { Reply::Status(500) } else { Reply::Status(200) }
                }
                8..11 => Reply::After(Duration::from_millis(random.u64(50..400))),
                _ => Reply::Status(200),
            }
        });
        let hook = async |receiver: &Receiver| {
            let (id, _) = make(admin, json!({ "url": receiver.url, "topics": ["data.thing.#"] })).await;
            format!("webhook:{id}")
        };
        let (steady_group, flaky_group) = (hook(&steady).await, hook(&flaky).await);
        let config = json!({ "object": "trail", "map": { "event_id": "event.id", "about": "payload.id" } });
        for (consumer, handler, config) in [(PERSIST, "persist_event", config), (LOG, "log_event", json!({}))] {
            let body = json!({ "event": "data.thing.#", "consumer": consumer, "handler": handler, "config": config });
            let answer = admin.post("/api/v1/events/subscriptions", body).await;
            assert_eq!(answer.status, 201, "{}", answer.text);
        }
        Groups { steady, steady_group, flaky, flaky_group }
    }

    /// The names of all groups.
    pub(super) fn names(&self) -> [&str; 4] {
        [&self.steady_group, &self.flaky_group, PERSIST, LOG]
    }
}

//! Checks the conditions that have to be true when everything has settled, regardless of earlier failures.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use blockbase_tests::{Received, Receiver, Server};
use serde_json::Value;

use super::groups::{Groups, PERSIST};
use super::storm::Storm;

/// The time limit until deliveries settle. It is longer than the longest lease.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(150);
/// The maximum number of deliveries of one group that can be under way: they are claimed and perhaps sent, but their outcome is
/// not stored.
const UNDER_WAY_MAX: usize = 64;
/// The longest time that a request can be on its way.
const ARRIVAL_SLACK: Duration = Duration::from_secs(2);

/// An event in the outbox.
pub(super) struct Event {
    pub(super) seq: i64,
    pub(super) id: String,
    pub(super) record: String,
    topic: String,
    payload: Value,
}

/// Waits until every delivery is delivered.
pub(super) async fn settle(server: &Server) {
    let deadline = Instant::now() + SETTLE_TIME_MAX;
    loop {
        let unsettled = server.sql("SELECT count(*) FROM svc_deliveries WHERE status <> 'delivered'").await;
        if unsettled[0][0] == "0" {
            return;
        }
        if Instant::now() > deadline {
            let rest = "SELECT consumer, status, attempts, claims, error, next_attempt_at, lease_until FROM svc_deliveries \
                        WHERE status <> 'delivered' ORDER BY event_seq LIMIT 20";
            panic!("{} deliveries do not settle: {:#?}", unsettled[0][0], server.sql(rest).await);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The events of `thing`. Those of one record are in the order of their commits.
pub(super) async fn events(server: &Server) -> Vec<Event> {
    let rows = server.sql("SELECT seq, id, record_id, topic, payload FROM svc_events WHERE object = 'thing' ORDER BY seq").await;
    let event = |row: Vec<String>| {
        let [seq, id, record, topic, payload] = row.try_into().unwrap();
        Event { seq: seq.parse().unwrap(), id, record, topic, payload: serde_json::from_str(&payload).unwrap() }
    };
    rows.into_iter().map(event).collect()
}

/// Checks every promise of settled deliveries. `faults` are the moments at which outcomes may have been lost. Returns how many
/// events arrived more than once.
pub(super) async fn check(server: &Server, groups: &Groups, storm: &Arc<Storm>, faults: &[Instant]) -> usize {
    let events = events(server).await;
    writes_have_their_events(storm, &events);
    rows_are_those_of_their_events(server, &events).await;
    ledger_is_complete(server, groups, &events).await;
    events_are_persisted_once(server, &events).await;
    let repeated = arrivals(&groups.steady, &events, Some(faults));
    // This receiver is sometimes late or answers with errors, even if nothing else fails.
    arrivals(&groups.flaky, &events, None);
    arrive_in_order(groups.steady.received(), &events);
    repeated
}

/// Each acknowledged write has exactly one event.
fn writes_have_their_events(storm: &Storm, events: &[Event]) {
    let acknowledged = storm.acknowledged.lock().unwrap();
    let mut found: HashMap<(&str, &str), usize> = HashMap::new();
    for event in events {
        let what = match event.topic.as_str() {
            "data.thing.updated" => event.payload["after"]["note"].as_str().unwrap(),
            topic => topic,
        };
        *found.entry((&event.record, what)).or_default() += 1;
    }
    let count_of = |record: &str, what: &str| found.get(&(record, what)).copied().unwrap_or(0);
    for id in &acknowledged.created {
        assert_eq!(count_of(id, "data.thing.created"), 1, "events of the creation of {id}");
    }
    for (id, note) in &acknowledged.updated {
        assert_eq!(count_of(id, note), 1, "events of the update of {id} to {note}");
    }
    for id in &acknowledged.deleted {
        assert_eq!(count_of(id, "data.thing.deleted"), 1, "events of the deletion of {id}");
    }
    assert!(found.values().all(|count| *count == 1), "a write has two events");
}

/// Each record that was created and not deleted exists.
async fn rows_are_those_of_their_events(server: &Server, events: &[Event]) {
    let created = events.iter().filter(|event| event.topic == "data.thing.created").count();
    let deleted = events.iter().filter(|event| event.topic == "data.thing.deleted").count();
    assert_eq!(server.sql("SELECT count(*) FROM thing").await, [[(created - deleted).to_string()]]);
}

/// Each group has one row for each event, and all are delivered.
async fn ledger_is_complete(server: &Server, groups: &Groups, events: &[Event]) {
    let rows = server.sql("SELECT consumer, event_seq, status FROM svc_deliveries").await;
    assert_eq!(rows.len(), events.len() * groups.names().len());
    let rows: HashSet<(&str, &str, &str)> = rows.iter().map(|row| (row[0].as_str(), row[1].as_str(), row[2].as_str())).collect();
    for group in groups.names() {
        for event in events {
            let seq = event.seq.to_string();
            assert!(rows.contains(&(group, seq.as_str(), "delivered")), "{group} and the event {seq}");
        }
    }
}

/// `persist_event` wrote each event once, even if the process was killed.
async fn events_are_persisted_once(server: &Server, events: &[Event]) {
    let rows = server.sql("SELECT event_id, about FROM trail").await;
    let mut persisted: HashMap<&str, usize> = HashMap::new();
    for row in &rows {
        *persisted.entry(&row[0]).or_default() += 1;
    }
    for event in events {
        assert_eq!(persisted.get(event.id.as_str()), Some(&1), "{PERSIST} of {}", event.id);
    }
    assert_eq!(rows.len(), events.len());
}

/// Each event has arrived. It may have arrived more than once only if a fault happened in between. Returns how many did so.
fn arrivals(receiver: &Receiver, events: &[Event], faults: Option<&[Instant]>) -> usize {
    let mut arrived: HashMap<String, Vec<Instant>> = HashMap::new();
    for request in receiver.received() {
        arrived.entry(request.id()).or_default().push(request.at);
    }
    for event in events {
        assert!(arrived.contains_key(&event.id), "{} {} has not arrived", event.topic, event.id);
    }
    assert_eq!(arrived.len(), events.len(), "something arrived that is no event");
    let Some(faults) = faults else { return 0 };
    let mut repeated = 0;
    for (id, moments) in &arrived {
        let (first, last) = (moments[0], moments[moments.len() - 1]);
        let between = faults.iter().filter(|fault| **fault + ARRIVAL_SLACK >= first && **fault <= last).count();
        assert!(moments.len() <= 1 + between, "{id} arrived {} times, with {between} faults between", moments.len());
        repeated += moments.len() - 1;
    }
    assert!(repeated <= faults.len() * UNDER_WAY_MAX, "{repeated} repeated in {} faults", faults.len());
    repeated
}

/// For each record, the first arrivals of its events are in the order of their commits.
pub(super) fn arrive_in_order(received: impl IntoIterator<Item = Received>, events: &[Event]) {
    let by_id: HashMap<&str, &Event> = events.iter().map(|event| (event.id.as_str(), event)).collect();
    let mut seen: HashSet<String> = HashSet::new();
    let mut last: HashMap<&str, &Event> = HashMap::new();
    for request in received {
        if !seen.insert(request.id()) {
            continue;
        }
        let event = by_id[request.id().as_str()];
        if let Some(before) = last.insert(&event.record, event) {
            let (before, after) = ((before.seq, &before.topic), (event.seq, &event.topic));
            assert!(before.0 < after.0, "{after:?} of {} arrived after {before:?}", event.record);
        }
    }
}

/// Prints the results. Writes without an acknowledgement were interrupted by a fault, and there are only few of them.
pub(super) fn tell(what: &str, storm: &Storm, events: usize, repeated: usize, faults: usize) {
    eprintln!(
        "{what}: {events} events, {} writes acknowledged, {} unknown, {} of them refused; {repeated} repeated in {faults} faults",
        storm.acknowledged.lock().unwrap().count(),
        storm.unknown.load(Ordering::Relaxed),
        storm.refused.load(Ordering::Relaxed),
    );
}

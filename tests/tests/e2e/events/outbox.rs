//! The outbox's size on disk: large events are compressed, and old ones are deleted beyond a limit.

use std::time::{Duration, Instant};

use blockbase_tests::{Receiver, Server, ServerBuilder, on_both_engines};
use serde_json::json;

use crate::events::Stream;
use crate::events::webhooks::{make, quick};

/// Hexadecimal digits without repetitions. In compressed form, each takes four bits.
fn noise(characters: usize) -> String {
    let mut random = fastrand::Rng::with_seed(7);
    (0..characters).map(|_| char::from_digit(random.u32(..16), 16).unwrap()).collect()
}

async fn number(server: &Server, sql: &str) -> i64 {
    server.sql(&format!("SELECT CAST(({sql}) AS BIGINT)")).await[0][0].parse().unwrap()
}

const STORED: &str = "SELECT coalesce(sum(octet_length(payload) + coalesce(octet_length(packed), 0) + 500), 0) FROM svc_events";

on_both_engines! {
    async fn small_changes_of_a_large_record_leave_little(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.define("big", json!([{ "name": "n", "type": "integer" }, { "name": "text", "type": "text" }])).await;
        let receiver = Receiver::start().await;
        make(&admin, json!({ "url": receiver.url, "topics": ["data.big.updated"] })).await;
        let text = noise(400_000);
        let id = admin.make("big", json!({ "n": 0, "text": text })).await;
        let mut live = Stream::open(&admin, "?topics=data.big.updated").await;
        let before = number(&server, STORED).await;
        let path = format!("/api/v1/data/big/{id}");
        for n in 1..=10 {
            assert_eq!(admin.patch(&path, json!({ "n": n })).await.status, 200);
        }
        // Each event contains the text twice, which makes 800 kB. Compressed, a text of 400 kB takes half of that.
        let grown = number(&server, STORED).await - before;
        assert!(grown < 10 * 250_000, "ten changes took {grown} bytes");

        // Every reader gets the complete event.
        let (image, last) = (|n: i64| json!({ "n": n, "text": text }), 10);
        let events = admin.get("/api/v1/events?topic=data.big.updated").await.data();
        assert_eq!(events.as_array().unwrap().len(), last);
        let created = admin.get("/api/v1/events?topic=data.big.created").await.data()[0]["id"].as_str().unwrap().to_owned();
        let mut again = Stream::open(&admin, &format!("?topics=data.big.updated&since={created}")).await;
        let sent = receiver.wait_for(last).await;
        for number in 0..last {
            let n = number as i64;
            let from_hook: serde_json::Value = serde_json::from_slice(&sent[number].body).unwrap();
            for event in [&live.event().await, &again.event().await, &from_hook, &events[last - 1 - number]] {
                let payload = &event["payload"];
                for (side, expected) in [("before", image(n)), ("after", image(n + 1))] {
                    let shown = json!({ "n": payload[side]["n"], "text": payload[side]["text"] });
                    assert!(shown == expected, "{side} of event {number} is another record");
                }
                assert_eq!(payload["diff"], json!({ "n": { "before": n, "after": n + 1 } }));
            }
        }
        // On Postgres, the server uses another statement to write several events at once.
        let many: Vec<_> = (0..3).map(|n| json!({ "n": n, "text": text })).collect();
        assert_eq!(admin.post("/api/v1/data/big/bulk", json!({ "data": many })).await.status, 201);
        let events = admin.get("/api/v1/events?topic=data.big.created&limit=3").await.data();
        for (event, n) in events.as_array().unwrap().iter().zip([2, 1, 0]) {
            assert!(event["payload"]["after"]["n"] == n && event["payload"]["after"]["text"] == text.as_str());
        }
        assert_eq!(number(&server, "SELECT count(*) FROM svc_events WHERE object = 'big' AND packed IS NULL").await, 0);
    }

    async fn beyond_its_size_the_outbox_loses_its_oldest_settled_events(engine: Engine) {
        const MOST: i64 = 200_000;
        let server = ServerBuilder::new(engine).env("SVC_EVENTS_MAX_BYTES", &MOST.to_string()).start().await;
        let admin = server.admin().await;
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        let records: Vec<_> = (0..100).map(|_| json!({ "text": noise(4000) })).collect();
        assert_eq!(admin.post("/api/v1/data/note/bulk", json!({ "data": records })).await.status, 201);
        let seqs = server.sql("SELECT seq FROM svc_events ORDER BY seq").await;
        // One of the first events is still waiting for its delivery.
        let waiting = &seqs[5][0];
        server
            .sql(&format!(
                "INSERT INTO svc_deliveries (event_seq, consumer, handler, status, dead, attempts) VALUES ({waiting}, 'c', 'h', 'pending', FALSE, 0)"
            ))
            .await;
        // New events are kept, so that every instance can read them.
        assert_eq!(server.sql("SELECT seq FROM svc_events ORDER BY seq").await.len(), seqs.len());
        server.sql("UPDATE svc_events SET occurred_at = occurred_at - 60000").await;
        let deadline = Instant::now() + Duration::from_secs(60);
        while number(&server, STORED).await > MOST {
            assert!(Instant::now() < deadline, "the outbox stays beyond its size");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let left = server.sql("SELECT seq FROM svc_events ORDER BY seq").await;
        assert_eq!(&left[0][0], waiting);
        assert_eq!(left.last(), seqs.last(), "the newest go last");
        assert!(left.len() > 20 && left.len() < 60, "{} are left", left.len());
        assert_eq!(left[1..], seqs[seqs.len() - (left.len() - 1)..], "a hole among those that are left");
        // The stored size is the actual size.
        assert_eq!(number(&server, "SELECT bytes FROM svc_outbox").await, number(&server, STORED).await);
        // The task counts all events again and ignores the stored count.
        server.sql("UPDATE svc_outbox SET bytes = 0").await;
        let run = admin.post("/api/v1/tasks/event-retention/run", json!({})).await.data();
        assert_eq!(run["status"], "succeeded", "{run}");
        let counted = number(&server, "SELECT bytes FROM svc_outbox").await;
        assert!(counted > MOST / 2 && counted <= MOST, "{counted} bytes are counted");
    }
}

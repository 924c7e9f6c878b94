//! Stored rows that are damaged: events that cannot be read, and deliveries that were claimed again and again.

use std::time::{Duration, Instant};

use blockbase_tests::{Engine, Server, on_both_engines};
use serde_json::{Value, json};

use super::audit;
use super::groups::{Groups, LOG, PERSIST};
use super::seed::Seed;
use crate::events::Stream;
use crate::events::webhooks::{ledger, short_leases};

/// The ledger's error for an event that cannot be read.
const UNDECODABLE: &str = "the stored event cannot be read";
/// A delivery is given up after this many claims without an outcome.
const CLAIMS_MAX: u32 = 7;
const GIVEN_UP: &str = "the server ended each time while this was delivered";

/// Makes every delivery pending again, as if none had begun.
async fn begin_anew(server: &Server) {
    let reset = "UPDATE svc_deliveries SET status = 'pending', attempts = 0, claims = 0, delivered_at = NULL, lease_token = NULL, lease_until = NULL";
    server.sql(reset).await;
    server.sql("DELETE FROM trail").await;
}

/// Waits until no delivery is pending or waits for a retry.
async fn nothing_due(server: &Server) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let due = "SELECT count(*) FROM svc_deliveries WHERE status <> 'delivered' AND NOT dead";
    while server.sql(due).await[0][0] != "0" {
        assert!(
            Instant::now() < deadline,
            "{:#?}",
            server
                .sql("SELECT consumer, status, attempts, error FROM svc_deliveries WHERE status <> 'delivered' AND NOT dead")
                .await
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

on_both_engines! {
    async fn an_event_that_cannot_be_read_is_dead_and_holds_up_no_other(engine: Engine) {
        let seed = Seed::new();
        let mut server = short_leases(engine).start().await;
        let admin = server.admin().await;
        let token = admin.token.clone();
        let groups = Groups::make(&admin, &seed).await;
        let record = admin.make("thing", json!({ "note": "0" })).await;
        for number in 1..40 {
            // Some events belong to one record. Its later events do not wait for events that cannot be read.
            match number % 2 {
                0 => drop(admin.make("thing", json!({ "note": number.to_string() })).await),
                _ => drop(admin.patch(&format!("/api/v1/data/thing/{record}"), json!({ "note": number.to_string() })).await.data()),
            }
        }
        audit::settle(&server).await;
        let events = audit::events(&server).await;
        assert_eq!(events.len(), 40);
        server.kill();
        let mut broken = vec!["'{broken'", "''", "'{\"a\":\"\\ud800\"'", "'nul'"];
        if engine == Engine::Sqlite {
            broken.extend(["x'ff00fe'", "CAST(x'7b22ff227d' AS TEXT)", "x'00'"]);
        }
        let (mut unreadable, mut readable) = (Vec::new(), Vec::new());
        for (place, event) in events.iter().enumerate() {
            match broken.get(place / 3).filter(|_| place % 3 == 0) {
                Some(payload) => {
                    server.sql(&format!("UPDATE svc_events SET payload = {payload} WHERE seq = {}", event.seq)).await;
                    unreadable.push(event.id.clone());
                }
                None => readable.push(event.id.clone()),
            }
        }
        begin_anew(&server).await;
        let arrived = groups.steady.count();
        server = server.restart().await;
        let admin = server.with_token(token);
        let mut stream = Stream::open(&admin, "").await;
        nothing_due(&server).await;

        for group in groups.names() {
            let dead = ledger(&admin, &format!("consumer={group}&dead=true&limit=100")).await;
            let mut ids: Vec<_> = dead.iter().map(|entry| entry["eventId"].as_str().unwrap()).collect();
            ids.sort_unstable();
            let mut wanted: Vec<_> = unreadable.iter().map(String::as_str).collect();
            wanted.sort_unstable();
            assert_eq!(ids, wanted, "{group}");
            assert!(dead.iter().all(|entry| entry["error"] == UNDECODABLE && entry["status"] == "failed" && entry["attempts"] == 1), "{dead:#?}");
            assert_eq!(ledger(&admin, &format!("consumer={group}&status=delivered&limit=100")).await.len(), readable.len());
        }
        let mut again: Vec<String> = groups.steady.received()[arrived..].iter().map(|request| request.id()).collect();
        again.sort_unstable();
        let mut wanted = readable.clone();
        wanted.sort_unstable();
        assert_eq!(again, wanted);
        let persisted = server.sql("SELECT event_id FROM trail ORDER BY event_id").await.concat();
        assert_eq!(persisted, wanted);

        // The list leaves these events out, and shows the others.
        let shown = admin.get("/api/v1/events?topic=data.thing.&limit=100").await.data();
        let shown: Vec<_> = shown.as_array().unwrap().iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect();
        assert!(readable.iter().all(|id| shown.contains(id)), "{shown:?}");
        assert!(!unreadable.iter().any(|id| shown.contains(id)), "{shown:?}");
        admin.make("thing", json!({ "note": "afterwards" })).await;
        assert_eq!(stream.event().await["payload"]["after"]["note"], "afterwards");
        nothing_due(&server).await;
        assert_eq!(ledger(&admin, &format!("consumer={}&status=delivered&limit=100", groups.steady_group)).await.len(), readable.len() + 1);
    }

    async fn a_delivery_that_was_claimed_again_and_again_without_an_outcome_is_given_up(engine: Engine) {
        let seed = Seed::new();
        let mut server = short_leases(engine).start().await;
        let admin = server.admin().await;
        let token = admin.token.clone();
        let groups = Groups::make(&admin, &seed).await;
        let record = admin.make("thing", json!({ "note": "first" })).await;
        admin.patch(&format!("/api/v1/data/thing/{record}"), json!({ "note": "second" })).await.data();
        admin.patch(&format!("/api/v1/data/thing/{record}"), json!({ "note": "third" })).await.data();
        audit::settle(&server).await;
        let events = audit::events(&server).await;
        server.kill();
        begin_anew(&server).await;
        for (event, claims) in [(&events[0], CLAIMS_MAX), (&events[1], CLAIMS_MAX - 1)] {
            server.sql(&format!("UPDATE svc_deliveries SET claims = {claims} WHERE event_seq = {}", event.seq)).await;
        }
        let arrived = groups.steady.count();
        server = server.restart().await;
        nothing_due(&server).await;
        let admin = server.with_token(token);
        for group in [&groups.steady_group, PERSIST, LOG] {
            let entries = ledger(&admin, &format!("consumer={group}")).await;
            let told: Vec<_> = entries.iter().map(|entry| (&entry["status"], &entry["dead"], &entry["error"])).collect();
            let delivered = (&json!("delivered"), &json!(false), &Value::Null);
            assert_eq!(told, [delivered, delivered, (&json!("failed"), &json!(true), &json!(GIVEN_UP))], "{group}");
        }
        server.log_with("deliveries were given up").await;
        assert_eq!(groups.steady.count(), arrived + 2);
        // A retry by hand starts from the beginning, with all claims available.
        for group in [&groups.steady_group, PERSIST] {
            admin.post("/api/v1/events/deliveries/retry", json!({ "eventId": events[0].id, "consumer": group })).await.data();
        }
        nothing_due(&server).await;
        assert_eq!(groups.steady.count(), arrived + 3);
        assert_eq!(groups.steady.received().last().unwrap().id(), events[0].id);
        assert_eq!(server.sql("SELECT count(*) FROM trail").await, [["3"]]);
    }
}

//! Postgres crashes and starts again, while writers write and webhooks are delivered.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use blockbase_tests::{Cluster, Engine, Server};

use super::audit;
use super::groups::Groups;
use super::seed::Seed;
use super::storm::{OnLoss, Storm};
use crate::events::Stream;
use crate::events::webhooks::short_leases;

const CRASHES: u64 = 4;

/// Waits until the server accepts writes again.
async fn recovered(server: &Server, token: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let body = serde_json::json!({ "note": "recovered" });
        let answer = server.call_as(Some(token), "POST", "/api/v1/data/other", Some(body)).await;
        if answer.status == 201 {
            return;
        }
        answer.expect_error(503, "unavailable");
        assert!(Instant::now() < deadline, "no write succeeds: {}", answer.text);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[ignore = "long: a database that crashes"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_postgres_crashes_writes_are_refused_and_all_recovers_by_itself() {
    let seed = Seed::new();
    let mut random = seed.rng(0);
    let mut cluster = tokio::task::spawn_blocking(Cluster::start).await.unwrap();
    let url = cluster.new_database("crashing").await;
    let server = short_leases(Engine::Postgres)
        .database(url)
        .env("SVC_RETRY_BASE_MS", "50")
        .env("SVC_EVENTS_POLL_INTERVAL_MS", "200")
        .start()
        .await;
    let admin = server.admin().await;
    let groups = Groups::make(&admin, &seed).await;
    admin.define("other", serde_json::json!([{ "name": "note", "type": "text" }])).await;
    let storm = Arc::new(Storm::default());
    let mut stream = Stream::open(&admin, "?topics=data.other.%23").await;
    let writers = storm.begin((&server.base, &admin.token), &seed, 10, 4, OnLoss::GoOn);
    let mut crashed = Vec::new();
    for _ in 0..CRASHES {
        tokio::time::sleep(Duration::from_millis(random.u64(300..1500))).await;
        crashed.push(Instant::now());
        let away = Duration::from_millis(random.u64(0..1500));
        cluster = tokio::task::spawn_blocking(move || {
            cluster.crash();
            std::thread::sleep(away);
            cluster.start_again();
            cluster
        })
        .await
        .unwrap();
        recovered(&server, &admin.token).await;
        // Outcomes can be lost until the last connection from before the crash is closed.
        crashed.push(Instant::now());
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    storm.end(writers).await;
    assert!(storm.refused.load(Ordering::Relaxed) > 0, "no write met a crash");
    audit::settle(&server).await;
    let repeated = audit::check(&server, &groups, &storm, &crashed).await;
    audit::tell("crashes of Postgres", &storm, audit::events(&server).await.len(), repeated, crashed.len());
    assert_eq!(server.call("GET", "/readyz", None).await.status, 200);
    // A stream from before the crashes continues, and shows the write after each recovery.
    for _ in 0..CRASHES {
        assert_eq!(stream.event().await["payload"]["after"]["note"], "recovered");
    }
    assert!(!server.log().contains("panicked"), "something panicked");
}

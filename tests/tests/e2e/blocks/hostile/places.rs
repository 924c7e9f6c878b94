//! Resources that all calls share: memory and slots. These tests run only on SQLite, because the blocks use no data.

use std::time::Duration;

use blockbase_tests::{Engine, ServerBuilder};
use futures_util::future::join_all;
use serde_json::json;

use super::{call, expect_limit, good, install, manifest, memory_comes_back, resident_kilobytes, staying_ready, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_calls_share_a_bounded_memory() {
    let server =
        ServerBuilder::new(Engine::Sqlite).env("SVC_BLOCK_MEMORY_MB", "64").env("SVC_BLOCK_MEMORY_TOTAL_MB", "128").start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({})).await;
    good(&admin).await;
    let before = resident_kilobytes(&server);
    // Each of the five calls stays within its own limit, but there is memory for only two of them.
    let fill = || call(&admin, "fill", json!({ "megabytes": 60, "ms": 1000 }));
    let (answers, ()) = staying_ready(&server, async {
        tokio::join!(join_all((0..5).map(|_| fill())), async {
            // Small calls still have memory.
            tokio::time::sleep(Duration::from_millis(300)).await;
            good(&admin).await;
        })
    })
    .await;
    let (succeeded, failed): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert!(!succeeded.is_empty() && failed.len() >= 3, "{} succeeded", succeeded.len());
    for answer in failed {
        expect_limit(answer, "all running calls together have as much memory as this server gives them");
    }
    // Memory of ended calls is available for the next ones.
    for _ in 0..3 {
        let (one, other) = tokio::join!(call(&admin, "fill", json!({ "megabytes": 60, "ms": 1 })), async { good(&admin).await });
        assert_eq!((one.data(), other), (json!(60 << 20), ()));
    }
    memory_comes_back(&server, before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_makes_one_call_after_the_other_does_not_lack_the_memory_of_its_earlier_calls() {
    // There is memory for one call, and for one call and three quarters.
    for total in ["64", "112"] {
        let server = ServerBuilder::new(Engine::Sqlite)
            .env("SVC_BLOCK_MEMORY_MB", "64")
            .env("SVC_BLOCK_MEMORY_TOTAL_MB", total)
            .start()
            .await;
        let admin = server.admin().await;
        install(&admin, "", json!({})).await;
        for megabytes in [60, 60, 24, 60, 48, 60, 24, 60] {
            let filled = call(&admin, "fill", json!({ "megabytes": megabytes, "ms": 0 })).await;
            assert_eq!(filled.status, 200, "{megabytes} of {total} MiB: {}", filled.text);
            assert_eq!(filled.data(), json!(megabytes << 20));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_block_does_not_take_every_place() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    // A well-behaved call waits for a slot, but not for long.
    let of_name = async |name: &str| {
        let mut changed = manifest(json!({ "name": name })).await;
        changed["actions"][0]["timeoutMs"] = json!(400);
        changed
    };
    for name in ["hostile", "neighbour", "third"] {
        install(&admin, "", of_name(name).await).await;
    }
    let path = |name: &str, action: &str| format!("/api/v1/blocks/{name}/actions/{action}");
    let good_of = async |name: &str| admin.post(&path(name, "good"), json!({})).await;
    // More calls than one block has slots for. Their callers wait until they disconnect.
    let naps = async |name: &str, count: usize| {
        let path = path(name, "nap");
        join_all((0..count).map(|_| admin.post(&path, json!({ "ms": 20_000 })))).await
    };
    let turned_away = async |name: &str| {
        let answer = good_of(name).await;
        if answer.status == 200 {
            return false;
        }
        let error = answer.expect_error(503, "unavailable");
        assert_eq!(
            error["message"],
            "As many block calls run as this server allows, or as it allows one caller. Try again later."
        );
        true
    };
    staying_ready(&server, async {
        tokio::select! {
            _ = naps("hostile", 110) => unreachable!("nobody has slept yet"),
            () = async {
                until("the block has no place left", async || turned_away("hostile").await).await;
                assert_eq!(good_of("neighbour").await.status, 200);
                tokio::select! {
                    _ = naps("neighbour", 40) => unreachable!("nobody has slept yet"),
                    () = until("nobody has a place left", async || turned_away("third").await) => {}
                }
                // When their callers disconnect, the slots become free.
                until("the neighbour has places again", async || !turned_away("third").await).await;
                assert!(turned_away("hostile").await);
            } => {}
        }
        until("there are places again", async || !turned_away("hostile").await).await;
    })
    .await;
    good(&admin).await;
}

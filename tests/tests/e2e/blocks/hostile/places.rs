//! Resources that all calls share: memory and slots. These tests run only on SQLite, because the blocks use no data.

use std::time::Duration;

use blockbase_tests::{Engine, ServerBuilder};
use futures_util::future::join_all;
use serde_json::json;

use super::hand_made::HandMade;
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

/// A block whose action makes its memory 8 MiB large. It answers 0 if a value of the component's own data is there, and if the
/// first bytes of all pages above 1 MiB are zeros, and otherwise a larger number. Then it writes to all of them.
fn writing() -> HandMade {
    let fields = r#"(data (i32.const 512) "\00\00\00\00\48\02\00\00\01\00\00\00") (data (i32.const 584) "0")
        (data (i32.const 1572800) "\07\00\00\00")"#;
    let call = "(local $at i32) (local $found i32)
        (drop (memory.grow (i32.const 96)))
        (local.set $found (i32.ne (i32.load (i32.const 1572800)) (i32.const 7)))
        (i32.store (i32.const 1572800) (i32.const 1))
        (local.set $at (i32.const 1048576))
        (loop $again
          (local.set $found (i32.or (local.get $found) (i32.load (local.get $at))))
          (i32.store (local.get $at) (i32.const 2))
          (local.set $at (i32.add (local.get $at) (i32.const 4096)))
          (br_if $again (i32.lt_u (local.get $at) (i32.const 8388608))))
        (i32.store8 (i32.const 584) (i32.add (i32.const 48) (local.get $found)))
        (i32.const 512)";
    HandMade { fields: fields.to_owned(), call, ..HandMade::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_sees_what_another_one_wrote_however_much_memory_stays_resident() {
    let file = writing().packed("writes").await;
    // Nothing stays in its place, less than the component has at its start, a part of what a call adds, and all of it.
    for kilobytes in ["0", "64", "4096", "16384"] {
        let server = ServerBuilder::new(Engine::Sqlite).env("SVC_BLOCK_RESIDENT_KB", kilobytes).start().await;
        let admin = server.admin().await;
        let installed = admin.install("", file.clone()).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let read = || admin.post("/api/v1/blocks/writes/actions/go", json!({}));
        for _ in 0..5 {
            assert_eq!(read().await.data(), json!(0), "{kilobytes} KiB");
        }
        for answer in join_all((0..8).map(|_| read())).await {
            assert_eq!(answer.data(), json!(0), "{kilobytes} KiB");
        }
    }
}

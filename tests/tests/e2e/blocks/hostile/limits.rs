//! The limits of one call: if a call exceeds one, it fails and names the limit.
//!
//! These tests run only on SQLite, because the blocks use no data. The test of the log, which is stored, runs on both engines.

use std::time::Duration;

use blockbase_tests::{Engine, ServerBuilder, example_block, on_both_engines, test_block};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::hand_made::HandMade;
use super::{call, expect_limit, good, install, memory_comes_back, resident_kilobytes, staying_ready, until};

const MEGABYTE: usize = 1024 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_counted_over_all_memories_and_comes_back() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({})).await;
    // Three further memories. All four grow in turns until one of them cannot grow.
    let memories = HandMade {
        fields: "(memory $second 1) (memory $third 1) (memory $fourth 1)".to_owned(),
        call: "(loop $again
                 (br_if $again (i32.and (i32.and
                   (i32.ge_s (memory.grow $second (i32.const 64)) (i32.const 0))
                   (i32.ge_s (memory.grow $third (i32.const 64)) (i32.const 0)))
                   (i32.ge_s (memory.grow $fourth (i32.const 64)) (i32.const 0)))))
               ;; That there is no more is no reason to end: the call has failed all the same.
               (i32.const 256)",
        ..HandMade::default()
    };
    let installed = admin.install("", memories.packed("memories").await).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    good(&admin).await;
    let before = resident_kilobytes(&server);
    staying_ready(&server, async {
        let bombs = join_all((0..4).map(|_| call(&admin, "hoard", json!({})))).await;
        let many = admin.post("/api/v1/blocks/memories/actions/go", json!({})).await;
        for answer in bombs.iter().chain([&many]) {
            expect_limit(answer, "more memory than one call may have");
        }
        good(&admin).await;
    })
    .await;
    memory_comes_back(&server, before).await;
    good(&admin).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_is_too_large_from_the_start_is_refused() {
    let server = ServerBuilder::new(Engine::Sqlite).env("SVC_BLOCK_MEMORY_MB", "16").start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({})).await;
    let of = |fields: &str| HandMade { fields: fields.to_owned(), ..HandMade::default() };
    for (name, block) in [
        ("one-memory", of("(memory $large 1024)")),
        ("two-memories", of("(memory $second 200) (memory $third 200)")),
        ("many-memories", of(&"(memory 1)".repeat(4))),
        ("one-table", of("(table $large 1000000 funcref)")),
        ("two-tables", of("(table $a 60000 funcref) (table $b 60000 funcref)")),
        ("many-tables", of(&"(table 1 funcref)".repeat(40))),
    ] {
        let refused = admin.install("", block.packed(name).await).await.expect_error(400, "invalid_block");
        let message = refused["message"].as_str().unwrap();
        assert!(
            ["does not fit the limits", "limit of the call"].iter().any(|words| message.contains(words)),
            "{name}: {message}"
        );
    }
    good(&admin).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_handles_and_host_calls_are_counted() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({})).await;
    let grows = HandMade {
        fields: "(table $table 1 funcref)".to_owned(),
        call: "(drop (table.grow $table (ref.null func) (i32.const 90000)))
               (drop (table.grow $table (ref.null func) (i32.const 90000)))
               (i32.const 256)",
        ..HandMade::default()
    };
    let installed = admin.install("", grows.packed("tables").await).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    staying_ready(&server, async {
        expect_limit(&admin.post("/api/v1/blocks/tables/actions/go", json!({})).await, "larger tables than one call may have");
        for wasi in [false, true] {
            let answer = call(&admin, "flood", json!({ "calls": 1_000_000, "wasi": wasi })).await;
            expect_limit(&answer, "more than 10000 host calls");
            assert_eq!(call(&admin, "flood", json!({ "calls": 9000, "wasi": wasi })).await.data(), 9000);
        }
        expect_limit(&call(&admin, "hold", json!({ "handles": 5000 })).await, "more than 1000 handles");
        assert_eq!(call(&admin, "hold", json!({ "handles": 400 })).await.data(), 400);
    })
    .await;
    good(&admin).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_call_hands_over_is_bounded_both_ways() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({})).await;
    good(&admin).await;
    let before = resident_kilobytes(&server);
    staying_ready(&server, async {
        for (bytes, words) in
            [(4 * MEGABYTE, "larger than 4194304 bytes"), (20 * MEGABYTE, "handed the host more than 16777216 bytes")]
        {
            expect_limit(&call(&admin, "result", json!({ "bytes": bytes })).await, words);
        }
        let most = call(&admin, "result", json!({ "bytes": 4 * MEGABYTE - 2 })).await.data();
        assert_eq!(most.as_str().map(str::len), Some(4 * MEGABYTE - 2));
        let failed = call(&admin, "result", json!({ "bytes": MEGABYTE, "fails": true })).await.expect_error(409, "conflict");
        let message = failed["message"].as_str().unwrap();
        assert!(message.len() < 5000 && message.ends_with("xx…"), "{} bytes", message.len());
        expect_limit(&call(&admin, "argue", json!({ "bytes": 64 * MEGABYTE })).await, "handed the host more than 16777216 bytes");
        call(&admin, "argue", json!({ "bytes": 8 * MEGABYTE })).await.expect_error(403, "forbidden");
    })
    .await;
    memory_comes_back(&server, before).await;
    good(&admin).await;
}

on_both_engines! {
    async fn a_log_is_bounded_and_steers_no_terminal(server: Server) {
        let admin = server.admin().await;
        install(&admin, "", json!({})).await;
        let line = |text: &str, repeat: usize, lines: usize, stdout: bool| {
            json!({ "level": "warn", "text": text, "repeat": repeat, "lines": lines, "stdout": stdout })
        };
        for stdout in [false, true] {
            let flood = staying_ready(&server, call(&admin, "log", line("x", 8000, 1000, stdout))).await;
            expect_limit(&flood, "logged more than 1048576 bytes");
            expect_limit(&call(&admin, "log", line("x", 8193, 1, stdout)).await, "a line of more than 8192 bytes");
            // Empty lines count too.
            let empty = call(&admin, "log", line("", 1, 100_000, stdout)).await;
            expect_limit(&empty, "host calls");
        }
        // If a block writes lines faster than the server can store them, the server drops some. Soon afterwards it stores lines
        // again.
        until("lines are kept again", async || {
            assert_eq!(call(&admin, "log", line("kept again", 1, 1, false)).await.data(), 1);
            tokio::time::sleep(Duration::from_millis(200)).await;
            admin.get("/api/v1/blocks/hostile/logs?limit=1").await.data()[0]["message"] == "kept again"
        })
        .await;
        // Clearing the screen, a title, a color, a line that overwrites the previous one, text that runs backwards.
        let escapes = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{1b}[31m\rroot\u{9b}1m\u{8}\u{202e}evil\u{2066}";
        for stdout in [false, true] {
            assert_eq!(call(&admin, "log", line(&format!("{escapes} {stdout}"), 1, 1, stdout)).await.data(), 1);
        }
        assert_eq!(call(&admin, "log", json!({ "level": "\u{1b}[2J", "text": "of no level", "lines": 1 })).await.data(), 1);
        let shown = async || admin.get("/api/v1/blocks/hostile/logs?limit=3").await.data();
        until("all is stored", async || shown().await[0]["message"] == "of no level").await;
        let lines = shown().await;
        assert_eq!(lines[0]["level"], "info");
        for (place, stdout) in [(2, false), (1, true)] {
            let message = lines[place]["message"].as_str().unwrap();
            assert!(message.contains("owned") && message.contains("evil") && message.ends_with(&stdout.to_string()), "{lines}");
        }
        let is_harmful = |letter: char| {
            (letter.is_control() && letter != '\n') || ('\u{202a}'..='\u{202e}').contains(&letter) || ('\u{2066}'..='\u{2069}').contains(&letter)
        };
        assert!(!lines.to_string().chars().any(is_harmful));
        until("all is in the server's own log", async || server.log().contains("of no level")).await;
        let harmful: Vec<String> = server.log().lines().filter(|line| line.chars().any(is_harmful)).map(str::to_owned).collect();
        assert!(harmful.is_empty(), "{harmful:?}");
        // A block cannot fill the database: only the newest lines are kept.
        let count = server.sql("SELECT count(*) FROM svc_block_logs").await[0][0].parse::<u32>().unwrap();
        assert!(count <= 1100, "{count}");
        assert_eq!(call(&admin, "good", Value::Null).await.status, 400);
        good(&admin).await;
    }
}

/// Each call writes the whole memory of a new instance, so it must not be larger than needed.
#[tokio::test]
async fn the_memory_of_a_block_in_rust_begins_with_a_small_stack() {
    // Four pages for the stack, and the others for all other data. A stack of 1 MiB has 16.
    let pages = pages_at_start(&example_block("echo").await);
    assert!(matches!(pages[..], [4..=8]), "{pages:?}");
}

/// The pages of 64 KiB that each memory of a block begins with.
fn pages_at_start(block: &[u8]) -> Vec<u64> {
    let payloads = wasmparser::Parser::new(0).parse_all(block).map(Result::unwrap);
    let memories = payloads.filter_map(|payload| match payload {
        wasmparser::Payload::MemorySection(memories) => Some(memories.into_iter().map(|memory| memory.unwrap().initial)),
        _ => None,
    });
    memories.flatten().collect()
}

/// To grow the memory in each call costs system calls.
#[tokio::test]
async fn small_allocations_of_a_block_in_rust_do_not_grow_its_memory() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    assert_eq!(install(&admin, "", json!({})).await.status, 201);
    let at_start = pages_at_start(&test_block("hostile").await)[0] * 64 * 1024;
    for (bytes, is_grown) in [(1, false), (4_000, false), (20_000, false), (40_000, true)] {
        let address = call(&admin, "allocate", json!({ "bytes": bytes })).await.data().as_u64().unwrap();
        assert_eq!(address >= at_start, is_grown, "{bytes} bytes at {address}, {at_start} at the start");
    }
}

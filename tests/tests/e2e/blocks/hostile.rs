//! Hostile blocks: each call fails with its own error, and nothing else is affected.

mod compile;
pub(crate) mod hand_made;
mod hooks;
mod lies;
mod limits;
mod loops;
mod places;
mod requests;
mod secrets;
mod traps;
mod upgrades;

use std::time::{Duration, Instant};

use blockbase_tests::{Admin, Answer, Engine, Server, ServerBuilder, inspect, pack, test_block, within};
use serde_json::{Value, json};

/// The longest time until the server answers that it is ready, no matter what the blocks do.
const READY_WITHIN: Duration = Duration::from_secs(2);
/// Memory that the process may keep afterwards, for caches and the allocator.
const KEPT_KILOBYTES_MAX: u64 = 150 * 1024;

/// A server with a short time limit for calls.
fn impatient(engine: Engine) -> ServerBuilder {
    ServerBuilder::new(engine).env("SVC_ACTION_TIMEOUT_MS", "1500")
}

/// The manifest of `tests/guests/hostile` with some keys replaced.
async fn manifest(changes: Value) -> Value {
    let mut manifest = inspect(test_block("hostile").await).await;
    for (key, value) in changes.as_object().unwrap() {
        manifest[key] = value.clone();
    }
    manifest
}

/// Installs `tests/guests/hostile` with a manifest of some other keys.
pub(crate) async fn install(admin: &Admin<'_>, query: &str, changes: Value) -> Answer {
    let packed = pack(test_block("hostile").await, manifest(changes).await).await.unwrap();
    let answer = admin.install(query, packed).await;
    assert!([200, 201].contains(&answer.status), "{}", answer.text);
    answer
}

async fn call(who: &Admin<'_>, action: &str, input: Value) -> Answer {
    who.post(&format!("/api/v1/blocks/hostile/actions/{action}"), input).await
}

/// Calls an action that works.
async fn good(admin: &Admin<'_>) {
    assert_eq!(call(admin, "good", json!({ "a": 1 })).await.data(), json!({ "a": 1 }));
}

/// Asserts that a call exceeded a limit, and that the error names the limit.
#[track_caller]
fn expect_limit(answer: &Answer, words: &str) {
    let error = answer.expect_error(500, "action_failed");
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("A limit of the call was hit: ") && message.contains(words), "{message}");
}

/// Does the work, and meanwhile checks repeatedly that the server is ready.
async fn staying_ready<T>(server: &Server, work: impl Future<Output = T>) -> T {
    let probes = async {
        loop {
            let begun = Instant::now();
            // The server answers 503 by itself if its database takes two seconds. On a busy machine that says nothing about the block.
            while server.call("GET", "/readyz", None).await.status != 200 {
                assert!(begun.elapsed() < within(READY_WITHIN), "not ready for {:?}", begun.elapsed());
            }
            assert!(begun.elapsed() < within(READY_WITHIN), "/readyz took {:?}", begun.elapsed());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        done = work => done,
        () = probes => unreachable!("probes do not end"),
    }
}

/// Waits until a condition is true.
#[track_caller]
fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let deadline = Instant::now() + blockbase_tests::WAIT_MAX;
        while !is_so().await {
            assert!(Instant::now() < deadline, "{caller}: {what} does not come true");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Kilobytes of memory that the process uses.
fn resident_kilobytes(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process_id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Waits until the process has freed the memory of calls.
async fn memory_comes_back(server: &Server, before: u64) {
    // Without /proc the memory is not known.
    if cfg!(target_os = "linux") {
        until("memory comes back", async || resident_kilobytes(server) < before + KEPT_KILOBYTES_MAX).await;
    }
}

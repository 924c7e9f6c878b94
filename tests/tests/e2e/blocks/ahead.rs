//! Instances made ahead: calls of a hot block get them, each for itself, and no call gets one of an earlier block.
//!
//! These tests run only on SQLite, because the blocks use no data. Those of blocks in other languages are in `cli_sdk`.

use blockbase_tests::{Admin, Answer, Engine, Exposition, Server, ServerBuilder, until};
use serde_json::{Value, json};

use super::call;
use super::hostile::hand_made::HandMade;

const REMAINING: &str = r#"(import "blockbase:block/deadline@0.1.0" "remaining-ms" (func $remaining (result i64)))"#;

/// A block whose action answers with a digit: how many calls its instance has counted, from `first` on. A million turns at its start
/// take longer than an instance has to take, on any processor. `start` is further code of the start.
///
/// On a busy machine, a start can take too long to be made ahead. The server tries again a second later, after a further call. So
/// each wait for such an instance makes further calls.
fn counting(first: char, imports: &'static str, start: &str) -> HandMade {
    let fields = format!(
        r#"(global $turns (mut i32) (i32.const 0))
           (func $start
             (loop $again
               (global.set $turns (i32.add (global.get $turns) (i32.const 1)))
               (br_if $again (i32.lt_u (global.get $turns) (i32.const 1000000))))
             {start})
           (start $start)
           (data (i32.const 512) "\00\00\00\00\48\02\00\00\01\00\00\00")
           (data (i32.const 584) "{first}")"#
    );
    let call = "(i32.store8 (i32.const 584) (i32.add (i32.load8_u (i32.const 584)) (i32.const 1))) (i32.const 512)";
    HandMade { imports, fields, call, ..HandMade::default() }
}

/// A server with metrics.
pub(crate) async fn server() -> Server {
    ServerBuilder::new(Engine::Sqlite).env("SVC_TELEMETRY", "true").start().await
}

async fn install(admin: &Admin<'_>, query: &str, file: Vec<u8>) {
    let answer: Answer = admin.install(query, file).await;
    assert!([200, 201].contains(&answer.status), "{}", answer.text);
}

/// What the action of a block answers.
async fn count(admin: &Admin<'_>, block: &str) -> Value {
    call(admin, &format!("{block}/actions/go"), json!({})).await.data()
}

/// The number of calls of a block that got such an instance: `new`, `ahead` or `kept`.
async fn instances(admin: &Admin<'_>, block: &str, instance: &str) -> f64 {
    let shown = Exposition::parse(&admin.server.call("GET", "/metrics", None).await.text);
    shown.value("svc_block_instances_total", &[("svc_block", block), ("svc_block_instance", instance)]).unwrap_or(0.0)
}

/// Calls a block until instances that were made ahead have served some of these calls. `call` makes a call, and asserts that it
/// sees nothing of an earlier one.
pub(crate) async fn are_made_ahead(admin: &Admin<'_>, block: &str, mut call: impl AsyncFnMut()) {
    let before = instances(admin, block, "ahead").await;
    until("instances that were made ahead serve calls", async || {
        call().await;
        instances(admin, block, "ahead").await >= before + 3.0
    })
    .await;
}

/// Does so with the block `counts`, of which each call has to answer with `counted`.
async fn is_made_ahead(admin: &Admin<'_>, counted: u32) {
    are_made_ahead(admin, "counts", async || assert_eq!(count(admin, "counts").await, counted)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_a_hot_block_get_instances_that_were_made_ahead_and_share_nothing() {
    let server = server().await;
    let admin = server.admin().await;
    install(&admin, "", counting('0', "", "").packed("counts").await).await;
    let mut calls = 0.0;
    let is_served = async || {
        calls += 1.0;
        assert_eq!(count(&admin, "counts").await, 1, "an instance has counted an earlier call");
        instances(&admin, "counts", "ahead").await >= 5.0
    };
    until("instances that were made ahead serve calls", is_served).await;
    let (new, ahead) = (instances(&admin, "counts", "new").await, instances(&admin, "counts", "ahead").await);
    // The call during the install that listed the handlers counts too.
    assert_eq!((new + ahead, instances(&admin, "counts", "kept").await), (calls + 1.0, 0.0));
    until("an instance that was made ahead serves a hook", async || {
        let answer = server.call("GET", "/api/v1/hooks/counts/go", None).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        instances(&admin, "counts", "ahead").await > ahead
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_gets_an_instance_that_was_made_before_a_change_of_its_block() {
    let server = server().await;
    let admin = server.admin().await;
    let config = json!({ "type": "object", "properties": { "size": { "type": "integer", "default": 1 } } });
    let file = counting('0', "", "").packed_with("counts", json!({ "config": config })).await;
    install(&admin, "", file).await;
    // The call right after a change makes its instance itself.
    let starts_anew = async |counted: u32, after: &str| {
        let before = instances(&admin, "counts", "new").await;
        assert_eq!(count(&admin, "counts").await, counted, "after {after}");
        assert_eq!(instances(&admin, "counts", "new").await, before + 1.0, "after {after}");
    };
    for size in 2..4 {
        is_made_ahead(&admin, 1).await;
        admin.patch("/api/v1/blocks/counts", json!({ "config": { "size": size } })).await.data();
        starts_anew(1, "a change of the configuration").await;
    }
    is_made_ahead(&admin, 1).await;
    for enabled in [false, true] {
        admin.patch("/api/v1/blocks/counts", json!({ "enabled": enabled })).await.data();
    }
    starts_anew(1, "a pause").await;
    is_made_ahead(&admin, 1).await;
    let file = counting('4', "", "").packed_with("counts", json!({ "config": config, "version": "0.2.0" })).await;
    install(&admin, "?upgrade=true", file).await;
    starts_anew(5, "an upgrade").await;
    is_made_ahead(&admin, 5).await;
    admin.post("/api/v1/blocks/counts/rollback", json!({})).await.data();
    starts_anew(1, "a rollback").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_whose_start_uses_the_block_interface_starts_in_its_calls() {
    let server = server().await;
    let admin = server.admin().await;
    install(&admin, "", counting('0', "", "").packed("counts").await).await;
    install(&admin, "", counting('0', REMAINING, "(drop (call $remaining))").packed("asks").await).await;
    let mut calls = 0.0;
    let reason = "no longer made ahead: its start called the block interface";
    until("instances of the other block were made ahead, and the log has the reason why none of this one is", async || {
        calls += 1.0;
        assert_eq!((count(&admin, "counts").await, count(&admin, "asks").await), (json!(1), json!(1)));
        instances(&admin, "counts", "ahead").await >= 5.0 && server.log().contains(reason)
    })
    .await;
    assert_eq!(instances(&admin, "asks", "ahead").await, 0.0, "its start may depend on the call");
    assert_eq!(instances(&admin, "asks", "new").await, calls + 1.0);
}

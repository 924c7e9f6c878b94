//! Blocks written in Go.

use blockbase_tests::{inspect, new_block, on_both_engines, pack};
use serde_json::json;

use crate::blocks::ahead;
use crate::cli_sdk::promises;

const COUNTER: &str = r#"
package main

import "blockbase"

type Input struct {
	Text string `json:"text"`
}

type Output struct {
	Text  string `json:"text"`
	Calls int    `json:"calls"`
}

var calls int

func count(_ *blockbase.Context, input Input) (Output, error) {
	calls++
	return Output{Text: input.Text, Calls: calls}, nil
}

func init() {
	blockbase.Action("count", blockbase.ActionOptions{Description: "Counts its calls."}, count)
}

func main() {}
"#;
const COUNTER_MANIFEST: &str = r#"{
  "name": "counter", "version": "0.1.0", "description": "Counts the calls of an instance.",
  "instances": { "reuse": { "calls": 1000, "seconds": 300 } }
}"#;

/// A block whose action answers with its input, and with the number of calls that its instance has counted. Its manifest asks for
/// reuse.
async fn counter() -> Vec<u8> {
    new_block("go", "counter", &[("block.json", COUNTER_MANIFEST), ("main.go", COUNTER)]).await
}

on_both_engines! {
    #[ignore = "long: a toolchain"]
    async fn the_template_is_a_block(server: Server) {
        let file = new_block("go", "hello-go", &[]).await;
        promises::template(&server, "hello-go", file).await;
    }

    #[ignore = "long: a toolchain"]
    async fn the_handler_of_the_template_takes_any_record(server: Server) {
        let file = new_block("go", "hello-go", &[]).await;
        promises::any_record(&server, "hello-go:tasks", file, 7).await;
    }
}

on_both_engines! {
    #[ignore = "long: a toolchain"]
    async fn what_the_sdk_offers_works(engine: Engine) {
        let files = [("block.json", promises::PROBE_MANIFEST), ("main.go", include_str!("probe/main.go"))];
        let file = new_block("go", "probe", &files).await;
        // A panic is an ordinary error, and not a trap.
        let crash = promises::promises(engine, file, &["random", "old", "new", "own"]).await;
        assert!(crash.starts_with("panic: runtime error: "), "{crash}");
    }
}

on_both_engines! {
    /// The garbage collector may read the clock only while the guest's own code runs, and not while the host asks it for memory.
    #[ignore = "long: a toolchain"]
    async fn a_reused_instance_collects_its_garbage(server: Server) {
        let admin = server.admin().await;
        assert_eq!(admin.install("", counter().await).await.status, 201);
        // The first collection comes after 4 MiB.
        let text = "x".repeat(100_000);
        for calls in 1..=100 {
            let counted = admin.post("/api/v1/blocks/counter/actions/count", json!({ "text": text })).await;
            assert_eq!(counted.status, 200, "call {calls}: {}", counted.text);
            assert_eq!(counted.data(), json!({ "text": text, "calls": calls }));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: a toolchain"]
async fn calls_of_a_hot_block_get_instances_that_were_made_ahead() {
    let server = ahead::server().await;
    let admin = server.admin().await;
    let mut manifest = inspect(counter().await).await;
    manifest.as_object_mut().unwrap().remove("instances");
    let installed = admin.install("", pack(counter().await, manifest).await.unwrap()).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    let mut text = String::new();
    ahead::are_made_ahead(&admin, "counter", async || {
        text.push('x');
        let counted = admin.post("/api/v1/blocks/counter/actions/count", json!({ "text": text })).await;
        assert_eq!((counted.status, counted.data()), (200, json!({ "text": text, "calls": 1 })), "{}", counted.text);
    })
    .await;
}

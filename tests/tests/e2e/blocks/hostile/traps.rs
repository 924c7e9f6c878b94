//! Traps of every kind, and results that the interface does not allow.
//!
//! These tests run only on SQLite, because the blocks use no data.

use blockbase_tests::{Engine, Exposition};
use serde_json::json;

use super::hand_made::HandMade;
use super::{call, good, impatient, install, staying_ready};

/// Traps of the kind that the digit in `{"k":0}` selects.
const BY_KIND: &str = "
    (block $8 (block $7 (block $6 (block $5 (block $4 (block $3 (block $2 (block $1 (block $0
      (br_table $0 $1 $2 $3 $4 $5 $6 $7 $8
        (i32.sub (i32.load8_u offset=5 (i32.load offset=60 (local.get $arguments))) (i32.const 48))))
      unreachable)
      (return (i32.div_u (i32.const 1) (i32.const 0))))
      (return (i32.div_s (i32.const 0x80000000) (i32.const -1))))
      (return (i32.trunc_f32_s (f32.const nan))))
      (return (i32.load (i32.const -8))))
      (return (call_indirect (result i32) (i32.const 1))))
      (return (call_indirect (param i32) (result i32) (i32.const 0) (i32.const 0))))
      (return (call_indirect (result i32) (i32.const 99))))
    (call $deeper)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_trap_is_named_without_addresses() {
    let server = impatient(Engine::Sqlite).env("SVC_TELEMETRY", "true").start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({})).await;
    let block = HandMade {
        fields: "(table 2 funcref) (elem (i32.const 0) $deeper)
                 (func $deeper (result i32) (i32.add (i32.const 1) (call $deeper)))"
            .to_owned(),
        call: BY_KIND,
        ..HandMade::default()
    };
    let installed = admin.install("", block.packed("traps").await).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    let names = [
        "wasm `unreachable` instruction executed",
        "integer divide by zero",
        "integer overflow",
        "invalid conversion to integer",
        "out of bounds memory access",
        "uninitialized element",
        "indirect call type mismatch",
        "undefined element: out of bounds table access",
        "call stack exhausted",
    ];
    staying_ready(&server, async {
        for (kind, name) in names.into_iter().enumerate() {
            let error =
                admin.post("/api/v1/blocks/traps/actions/go", json!({ "k": kind })).await.expect_error(500, "action_failed");
            assert_eq!(error["message"], format!("The block trapped: {name}."));
        }
        let deep = call(&admin, "descend", json!({})).await.expect_error(500, "action_failed");
        assert_eq!(deep["message"], "The block trapped: call stack exhausted.");
    })
    .await;
    good(&admin).await;
    let shown = Exposition::parse(&server.call("GET", "/metrics", None).await.text);
    for name in names {
        assert_eq!(
            shown.value("svc_block_traps_total", &[("svc_block", "traps"), ("svc_block_trap", name)]),
            Some(1.0),
            "{shown:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_the_interface_does_not_allow_fail_the_call() {
    let server = impatient(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({})).await;
    // The result is at 400. The text "null" at 192 is followed by zeros, and \ff at 200 cannot begin a character.
    let data = |bytes: &str| format!(r#"(data (i32.const 200) "\ff\fe") (data (i32.const 400) "{bytes}")"#);
    let text = |place: &str, length: &str| data(&format!("\\00\\00\\00\\00{place}{length}"));
    for (name, fields, call, receive) in [
        ("result-outside", String::new(), "(i32.const -256)", "(i32.const -256)"),
        ("result-not-aligned", String::new(), "(i32.const 257)", "(i32.const 321)"),
        ("text-outside", text(r"\00\00\00\7f", r"\04\00\00\00"), "(i32.const 400)", "(unreachable)"),
        ("text-too-long", text(r"\00\00\00\00", r"\ff\ff\ff\ff"), "(i32.const 400)", "(unreachable)"),
        ("text-not-utf-8", text(r"\c8\00\00\00", r"\02\00\00\00"), "(i32.const 400)", "(unreachable)"),
        ("neither-result-nor-error", data(r"\07"), "(i32.const 400)", "(i32.const 400)"),
        // A hook's response: status 200, this many headers, no body.
        (
            "a-billion-headers",
            data(r"\00\00\00\00\01\00\00\00\c8\00\00\00\00\00\00\00\00\00\00\40\00\00\00\00\00\00\00\00"),
            "(unreachable)",
            "(i32.const 400)",
        ),
    ] {
        let block = HandMade { fields, call, receive, ..HandMade::default() };
        let installed = admin.install("", block.packed(name).await).await;
        assert_eq!(installed.status, 201, "{name}: {}", installed.text);
        let error = admin.post(&format!("/api/v1/blocks/{name}/actions/go"), json!({})).await.expect_error(500, "action_failed");
        assert!(error["message"].as_str().unwrap().starts_with("The block trapped: "), "{name}: {error}");
        let hook = server.call("POST", &format!("/api/v1/hooks/{name}/go"), None).await.expect_error(500, "action_failed");
        assert_eq!(hook["message"], "The hook failed.", "{name}");
    }
    // Half of the text is valid text, but not JSON.
    let cut = HandMade { fields: text(r"\c0\00\00\00", r"\03\00\00\00"), call: "(i32.const 400)", ..HandMade::default() };
    assert_eq!(admin.install("", cut.packed("no-json").await).await.status, 201);
    let error = admin.post("/api/v1/blocks/no-json/actions/go", json!({})).await.expect_error(500, "action_failed");
    assert_eq!(error["message"], "The handler's result is not JSON.");
    good(&admin).await;
}

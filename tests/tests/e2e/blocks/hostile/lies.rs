//! Files whose contents differ from their declarations. The install refuses each of them, and leaves nothing behind.
//!
//! These tests run only on SQLite, because nothing is stored.

use blockbase_tests::Engine;
use serde_json::json;

use super::hand_made::{HandMade, packed};
use super::{good, impatient, install, staying_ready};

/// A component that exports `registry` with the given function.
fn with_registry(function: &str) -> Vec<u8> {
    let text = format!(
        r#"(component
          (core module $module (func (export "run") (result i32) (i32.const 0)))
          (core instance $core (instantiate $module))
          (func $run (result u32) (canon lift (core func $core "run")))
          (instance $registry {function})
          (export "blockbase:block/registry@0.1.0" (instance $registry)))"#
    );
    wat::parse_str(text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_file_says_of_itself_is_checked() {
    let server = impatient(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({})).await;
    let reports = |handlers: &'static str, fields: &str| HandMade { handlers, fields: fields.to_owned(), ..HandMade::default() };
    // A list at 400 whose length is impossible, and a list at an impossible address.
    let endless = r#"(data (i32.const 400) "\40\00\00\00\ff\ff\ff\0f")"#;
    let elsewhere = r#"(data (i32.const 400) "\00\00\00\7f\01\00\00\00")"#;
    // Only the first entry of the list, which is the action `go`.
    let action_only = r#"(data (i32.const 400) "\40\00\00\00\01\00\00\00")"#;
    // One entry at 408. Its kind, at 512, is not valid text.
    let not_text = r#"(data (i32.const 400) "\98\01\00\00\01\00\00\00") (data (i32.const 408) "\80\00\00\00\02\00\00\00\00\02\00\00\01\00\00\00") (data (i32.const 512) "\ff")"#;
    let mut refused = vec![
        ("endless-list", "does not report its handlers", reports("(i32.const 400)", endless).packed("a").await),
        ("list-elsewhere", "does not report its handlers", reports("(i32.const 400)", elsewhere).packed("a").await),
        ("not-text", "does not report its handlers", reports("(i32.const 400)", not_text).packed("a").await),
        ("trap", "The block trapped: wasm `unreachable`", reports("(unreachable)", "").packed("a").await),
        ("hook-left-out", "hook `go`", reports("(i32.const 400)", action_only).packed("a").await),
        ("nothing-reported", "action `go`, hook `go`", reports("(i32.const 600)", "").packed("a").await),
        (
            "no-registry",
            "does not export `blockbase:block/registry@0.1.0`",
            packed(wat::parse_str("(component)").unwrap(), "a", json!({})).await,
        ),
        ("empty-registry", "registry", packed(with_registry(""), "a", json!({})).await),
        ("other-function", "registry", packed(with_registry(r#"(export "handle" (func $run))"#), "a", json!({})).await),
        ("other-type", "handlers", packed(with_registry(r#"(export "handlers" (func $run))"#), "a", json!({})).await),
    ];
    // A type with the same number of core parameters and results, but with another meaning.
    let block = HandMade::default();
    let other_type = block.packed_with_wit("a", |wit| {
        let handler = "call: func(context: context, name: string, input: json)";
        wit.replace(handler, "call: func(context: context, name: string, input: list<u8>)")
    });
    refused.push(("action-of-other-type", "handlers", other_type.await));
    let imports = |import: &str| {
        wat::parse_str(format!(
            r#"(component (import "{import}" (instance)) (core module $m (func (export "run") (result i32) (i32.const 0)))
               (core instance $c (instantiate $m)) (func $run (result u32) (canon lift (core func $c "run")))
               (instance $registry (export "handlers" (func $run)))
               (export "blockbase:block/registry@0.1.0" (instance $registry)))"#
        ))
        .unwrap()
    };
    for (name, import, words) in [
        ("unknown-import", "acme:secrets/vault@1.0.0", "does not offer"),
        ("unknown-interface", "blockbase:block/admin@0.1.0", "does not offer"),
        ("unknown-version", "blockbase:block/data@9.0.0", "does not offer"),
        ("unasked", "blockbase:block/data@0.1.0", "does not ask for `data`"),
        ("unasked-http", "wasi:http/outgoing-handler@0.2.0", "does not ask for `http`"),
    ] {
        refused.push((name, words, packed(imports(import), "a", json!({})).await));
    }
    staying_ready(&server, async {
        for (name, words, file) in refused {
            let error = admin.install("", file).await.expect_error(400, "invalid_block");
            assert!(error["message"].as_str().unwrap().contains(words), "{name}: {error}");
        }
    })
    .await;
    assert_eq!(admin.get("/api/v1/blocks").await.data().as_array().unwrap().len(), 1);
    assert_eq!(server.sql("SELECT block FROM svc_block_versions").await.len(), 1);
    good(&admin).await;
}

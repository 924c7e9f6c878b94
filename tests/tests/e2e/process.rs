//! The process: configuration, health, draining, the lock on the data directory, the command line.

use std::process::Command;

use blockbase_tests::{Engine, ServerBuilder, blockbase, finished, on_both_engines};
use serde_json::json;

on_both_engines! {
    async fn a_signal_drains_and_the_exit_is_clean(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        assert_eq!(server.call("GET", "/healthz", None).await.status, 200);
        assert_eq!(server.call("GET", "/readyz", None).await.status, 200);
        let mut stream = crate::events::Stream::open(&admin, "").await;
        let made = admin.post("/api/v1/data/task", json!({ "title": "kept" })).await;
        assert_eq!(made.status, 201);
        stream.event().await;
        server.signal("TERM");
        assert_eq!(stream.frame().await, None);
        let (builder, token) = (server.builder(), admin.token.clone());
        assert!(server.ended().await.success());
        let server = builder.start().await;
        assert_eq!(server.with_token(token).get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 1);
    }
}

#[tokio::test]
async fn a_malformed_setting_stops_the_boot_with_one_line() {
    for (name, value) in
        [("SVC_LISTEN", "nowhere"), ("SVC_REQUIRE_AUTH", "maybe"), ("SVC_MAX_BULK", "many"), ("SVC_LOG", "a=b=c")]
    {
        let (status, text) = ServerBuilder::new(Engine::Sqlite).env(name, value).fail().await;
        assert_eq!(status.code(), Some(2), "{text}");
        assert!(text.starts_with(&format!("blockbase: {name}")) && text.trim_end().lines().count() == 1, "{text}");
    }
    let (status, text) = ServerBuilder::new(Engine::Sqlite).env("SVC_SECRET", "hunter2").fail().await;
    assert_eq!(status.code(), Some(2));
    assert!(text.contains("SVC_SECRET") && !text.contains("hunter2"), "{text}");
    let (status, text) =
        ServerBuilder::new(Engine::Sqlite).env("SVC_DATABASE_URL", "postgres://u:hunter2@127.0.0.1:1/d").fail().await;
    assert_eq!(status.code(), Some(2), "a secret is needed: {text}");
    let unreachable = ServerBuilder::new(Engine::Sqlite)
        .env("SVC_DATABASE_URL", "postgres://u:hunter2@127.0.0.1:1/d")
        .env("SVC_SECRET", "a secret for tests, long enough for it");
    let (status, text) = unreachable.fail().await;
    assert_eq!(status.code(), Some(1), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn a_misspelt_setting_is_warned_about() {
    let server = ServerBuilder::new(Engine::Sqlite).env("SVC_LISTNE", "x").start().await;
    assert!(server.log().contains("SVC_LISTNE"), "{}", server.log());
}

#[tokio::test]
async fn a_data_directory_has_one_process() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let (status, text) = server.builder().fail().await;
    assert_eq!(status.code(), Some(1));
    assert!(text.contains("Another blockbase runs"), "{text}");
    assert_eq!(server.call("GET", "/readyz", None).await.status, 200);
    let secret = server.directory().join("svc-data/svc.secret");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(secret).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let directory = std::fs::metadata(server.directory().join("svc-data")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&directory.permissions()) & 0o777, 0o700);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_that_boot_at_once_migrate_once() {
    let first = ServerBuilder::new(Engine::Postgres).env("SVC_DATABASE_URL", &blockbase_tests::new_database().await);
    let first = first.env("SVC_SECRET", "a secret for tests, long enough for it");
    let servers = futures_util::future::join_all((0..4).map(|_| first.clone().start())).await;
    for server in &servers {
        assert_eq!(server.call("GET", "/readyz", None).await.status, 200);
    }
}

#[tokio::test]
async fn the_command_line_says_what_it_does() {
    let output = Command::new(blockbase()).args(["serve", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    for part in ["SVC_DATABASE_URL", "SVC_REQUIRE_AUTH", "Example:"] {
        assert!(help.contains(part), "{help}");
    }
    let mut usage = Command::new(blockbase());
    usage.arg("dance");
    assert_eq!(finished(usage).0.code(), Some(2));
    let mut missing = Command::new(blockbase());
    missing.args(["block", "inspect", "/nonexistent.wasm"]);
    let (status, text) = finished(missing);
    assert_eq!(status.code(), Some(1));
    assert!(text.contains("/nonexistent.wasm"), "{text}");
}

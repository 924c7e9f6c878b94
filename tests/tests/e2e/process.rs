//! The process: configuration, health, draining, the lock on the data directory, the command line.

pub(crate) mod damaged;
pub(crate) mod faults;
pub(crate) mod instances;
pub(crate) mod operator;
pub(crate) mod settings;
pub(crate) mod telemetry;

use std::process::Command;

use blockbase_tests::{Engine, ServerBuilder, blockbase, finished, on_both_engines, until};
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_served_while_a_balancer_learns_that_the_server_stops() {
    // The second signal ends the delay, so the test does not depend on its length.
    let server = ServerBuilder::new(Engine::Sqlite).env("SVC_DRAIN_DELAY_MS", "600000").start().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    let ready = server.call("GET", "/readyz", None).await;
    assert!(ready.status == 200 && !ready.headers.contains_key("connection"), "{:?}", ready.headers);
    server.signal("TERM");
    // The process handles the signal a moment later.
    until("/readyz answers 503", async || server.call("GET", "/readyz", None).await.status == 503).await;
    let made = admin.post("/api/v1/data/task", json!({ "title": "late" })).await;
    assert!(made.status == 201 && made.headers["connection"] == "close", "{} {:?}", made.text, made.headers);
    assert_eq!(server.call("GET", "/healthz", None).await.status, 200);
    server.signal("TERM");
    assert!(server.ended().await.success());
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
async fn no_message_shows_a_value_that_may_hold_a_password() {
    const SECRET: &str = "a secret for tests, long enough for it";
    for (name, value) in [
        ("SVC_PUBLIC_URL", "https://admin:hunter2@api.example.com"),
        ("SVC_PUBLIC_URL", "admin:hunter2"),
        ("SVC_TRUSTED_ORIGINS", "https://admin:hunter2@api.example.com"),
        ("SVC_DATABASE_URL", "postgres://admin:hunter2@[::1/d"),
        ("SVC_DATABASE_URL", "postgres://admin:hunter2@h/d?sslmode=hunter2"),
        ("SVC_DATABASE_URL", "mysql://admin:hunter2@h/d"),
        ("SVC_SETUP_TOKEN", "hunter2 hunter2 hunter2"),
        ("SVC_SETUP_TOKEN", "hunter2hunter2!"),
        ("SVC_METRICS_TOKEN", "hunter2 hunter2"),
    ] {
        let (status, text) = ServerBuilder::new(Engine::Sqlite).env("SVC_SECRET", SECRET).env(name, value).fail().await;
        assert_eq!(status.code(), Some(2), "{name}: {text}");
        assert!(text.contains(name) && !text.contains("hunter2") && text.trim_end().lines().count() == 1, "{text}");
    }
    // The error about a weak password names the variable that it came from.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    std::fs::write(&file, "hunter2\n").unwrap();
    for (name, value) in [("SVC_ADMIN_PASSWORD", "hunter2"), ("SVC_ADMIN_PASSWORD_FILE", file.to_str().unwrap())] {
        let server = ServerBuilder::new(Engine::Sqlite).env("SVC_ADMIN_EMAIL", "ada@example.com").env(name, value);
        let (status, text) = server.fail().await;
        assert_eq!(status.code(), Some(2), "{text}");
        assert!(text.contains(&format!("`{name}`")) && !text.contains("hunter2"), "{text}");
    }
}

on_both_engines! {
    async fn a_database_of_another_secret_stops_the_boot(engine: Engine) {
        let with = |builder: ServerBuilder, secret: &str| builder.env("SVC_SECRET", secret);
        let mut server = with(ServerBuilder::new(engine), "the secret that the database was made with").start().await;
        // At first, only the check itself is sealed, and then other data as well. The result is the same.
        for is_empty in [true, false] {
            if !is_empty {
                let admin = server.admin().await;
                crate::events::webhooks::make(&admin, json!({ "url": "https://example.com/hook", "topics": ["data.#"] })).await;
            }
            server.kill();
            let (status, text) = with(server.builder(), "another secret, as long as the first").fail().await;
            assert_eq!(status.code(), Some(2), "{text}");
            assert!(text.contains("SVC_SECRET does not open") && text.trim_end().lines().count() == 1, "{text}");
            assert!(!text.contains("another secret") && !text.contains("was made with the"), "{text}");
            server = with(server.builder(), "the secret that the database was made with").start().await;
        }
        assert_eq!(server.call("GET", "/readyz", None).await.status, 200);
    }

    async fn a_database_with_secrets_of_two_keys_boots(engine: Engine) {
        let mut server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        for number in [1, 2] {
            let url = format!("https://example.com/hook/{number}");
            crate::events::webhooks::make(&admin, json!({ "url": url, "topics": ["data.#"] })).await;
        }
        server.kill();
        // Earlier versions started with any secret, and did not remember it.
        const FORGET: &str = "DELETE FROM svc_once WHERE name = 'secret_check'";
        server.sql(FORGET).await;
        server.sql("UPDATE svc_webhooks SET secret_key_id = 'another' WHERE url = 'https://example.com/hook/1'").await;
        let mut server = server.builder().start().await;
        until("the boot warns", async || server.log().contains("sealed with another SVC_SECRET")).await;
        server.kill();
        // From now on the stored check decides.
        server.sql("UPDATE svc_webhooks SET secret_key_id = 'another'").await;
        let mut server = server.builder().start().await;
        server.kill();
        // Nothing in the database was sealed with this secret.
        server.sql(FORGET).await;
        let (status, text) = server.builder().fail().await;
        assert_eq!(status.code(), Some(2), "{text}");
    }
}

#[tokio::test]
async fn a_copy_without_its_secret_stops_the_boot_and_leaves_no_other() {
    let mut server = ServerBuilder::new(Engine::Sqlite).start().await;
    server.kill();
    let file = server.directory().join("svc-data/svc.secret");
    let secret = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let (status, text) = server.builder().fail().await;
    assert_eq!(status.code(), Some(2), "{text}");
    assert!(text.contains("svc.secret") && text.contains("made with another one"), "{text}");
    assert!(!file.exists());
    std::fs::write(&file, secret).unwrap();
    let server = server.builder().start().await;
    assert_eq!(server.call("GET", "/readyz", None).await.status, 200);
}

fn mode(path: &std::path::Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions()) & 0o777
}

fn set_mode(path: &std::path::Path, mode: u32) {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

/// Asserts that every file is 0600 and every directory 0700. Returns the number of files.
fn assert_closed(directory: &std::path::Path) -> usize {
    assert_eq!(mode(directory), 0o700, "{}", directory.display());
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files += assert_closed(&path),
            false => {
                assert_eq!(mode(&path), 0o600, "{}", path.display());
                files += 1;
            }
        }
    }
    files
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_data_directory_is_closed_whatever_the_umask() {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("with-umask");
    std::fs::write(&program, format!("#!/bin/sh\numask 000\nexec {} \"$@\"\n", blockbase().display())).unwrap();
    set_mode(&program, 0o755);
    let server = ServerBuilder::new(Engine::Sqlite).program(program).start().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    assert_eq!(admin.install("", blockbase_tests::example_block("tasks").await).await.status, 201);
    let directory = server.directory().join("svc-data");
    // These are the database, its log and its index, the secret, the lock, and the compiled block.
    assert!(assert_closed(&directory) >= 6);
    // If somebody changed the permissions of files, the next start restores them.
    let mut server = server;
    server.kill();
    for name in ["svc.db", "svc.secret", "blocks"] {
        set_mode(&directory.join(name), if name == "blocks" { 0o755 } else { 0o644 });
    }
    set_mode(&directory, 0o755);
    let mut server = server.builder().start().await;
    assert_closed(&directory);
    server.kill();
    for open in [0o770, 0o702, 0o777] {
        set_mode(&directory, open);
        let (status, text) = server.builder().fail().await;
        assert_eq!(status.code(), Some(2), "{text}");
        assert!(text.contains("SVC_DATA_DIR") && text.contains("chmod 700") && text.trim_end().lines().count() == 1, "{text}");
        assert_eq!(mode(&directory), open);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_rows_leave_nothing_in_the_file() {
    let server = ServerBuilder::new(Engine::Sqlite).env("SVC_EVENTS_ENABLED", "false").start().await;
    let admin = server.admin().await;
    admin.define("secret", json!([{ "name": "text", "type": "json" }])).await;
    let id = admin.make("secret", json!({ "text": { "word": "unforgettable-0815" } })).await;
    assert_eq!(admin.delete(&format!("/api/v1/data/secret/{id}")).await.status, 204);
    // At a clean end, the server copies the write-ahead log into the database and removes it.
    let builder = server.builder();
    server.signal("TERM");
    assert!(server.ended().await.success());
    let bytes = std::fs::read(builder.directory().join("svc-data/svc.db")).unwrap();
    assert!(!bytes.windows(18).any(|window| window == b"unforgettable-0815"));
}

#[tokio::test]
async fn a_misspelt_setting_is_warned_about() {
    let server = ServerBuilder::new(Engine::Sqlite).env("SVC_LISTNE", "x").start().await;
    server.log_with("SVC_LISTNE").await;
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
    let text_bytes = "largest text value, where the field has no max of its own; 1024 to 4294967296 [1048576]";
    for part in ["SVC_DATABASE_URL", "SVC_REQUIRE_AUTH", text_bytes, "Example:"] {
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

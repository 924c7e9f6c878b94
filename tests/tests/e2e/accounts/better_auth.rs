//! The unmodified JavaScript client of better-auth, run with Node against the real binary.

use std::process::Command;

use blockbase_tests::{Engine, ServerBuilder, npm_package};

const FILES: [(&str, &str); 5] = [
    ("package.json", include_str!("../../../clients/better-auth/package.json")),
    ("package-lock.json", include_str!("../../../clients/better-auth/package-lock.json")),
    ("browser.mjs", include_str!("../../../clients/better-auth/browser.mjs")),
    ("client.mjs", include_str!("../../../clients/better-auth/client.mjs")),
    ("mail.mjs", include_str!("../../../clients/better-auth/mail.mjs")),
];

/// Runs a program of the client, and returns what it printed: a line for each step.
async fn run(program: &'static str, arguments: Vec<String>) -> String {
    let run = move || {
        let client = npm_package("better-auth-client", &FILES);
        Command::new("node").arg(program).args(arguments).current_dir(client).output().expect("node")
    };
    let ran = tokio::task::spawn_blocking(run).await.unwrap();
    let (steps, problem) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "after\n{steps}\n{problem}");
    steps.into_owned()
}

async fn speaks_with_the_client(engine: Engine) {
    let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
    server.admin().await;
    let steps = run("client.mjs", vec![server.base.clone()]).await;
    assert!(steps.lines().count() >= 30, "{steps}");
}

async fn speaks_with_the_client_about_mail(engine: Engine) {
    let logs = tempfile::tempdir().unwrap();
    let log = logs.path().join("log");
    let server = ServerBuilder::new(engine)
        .env("SVC_MAIL_LOG", "true")
        .env("SVC_LOG_FORMAT", "json")
        .env("SVC_EVENTS_POLL_INTERVAL_MS", "50")
        .env("SVC_REQUIRE_EMAIL_VERIFICATION", "true")
        .env("SVC_DELETE_USER", "true")
        .env("SVC_ANONYMOUS_AUTH", "true")
        .log_to(log.clone())
        .start()
        .await;
    server.admin().await;
    let log = log.to_str().unwrap().to_owned();
    let steps = run("mail.mjs", vec![server.base.clone(), log.clone()]).await;
    assert!(steps.lines().count() >= 15, "{steps}");
    let token = steps.lines().find_map(|line| line.strip_prefix("token ")).expect("a token").to_owned();
    // For a session that is older than a day, the server mails a link.
    server.sql("UPDATE svc_sessions SET created_at = created_at - 90000000").await;
    let server = server.restart().await;
    run("mail.mjs", vec![server.base.clone(), log, token]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_of_better_auth_works_unmodified_on_sqlite() {
    speaks_with_the_client(Engine::Sqlite).await;
}

#[ignore = "long: SQLite's twin proves the same"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_of_better_auth_works_unmodified_on_postgres() {
    speaks_with_the_client(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_of_better_auth_works_unmodified_with_mail_on_sqlite() {
    speaks_with_the_client_about_mail(Engine::Sqlite).await;
}

#[ignore = "long: SQLite's twin proves the same"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_of_better_auth_works_unmodified_with_mail_on_postgres() {
    speaks_with_the_client_about_mail(Engine::Postgres).await;
}

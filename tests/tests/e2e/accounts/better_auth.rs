//! The unmodified JavaScript client of better-auth, run under Node against the real binary.

use std::process::Command;

use blockbase_tests::{Engine, ServerBuilder, npm_package};

const FILES: [(&str, &str); 3] = [
    ("package.json", include_str!("../../../clients/better-auth/package.json")),
    ("package-lock.json", include_str!("../../../clients/better-auth/package-lock.json")),
    ("client.mjs", include_str!("../../../clients/better-auth/client.mjs")),
];

async fn speaks_with_the_client(engine: Engine) {
    let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
    server.admin().await;
    let base = server.base.clone();
    let run = move || {
        let client = npm_package("better-auth-client", &FILES);
        Command::new("node").arg("client.mjs").arg(base).current_dir(client).output().expect("node")
    };
    let ran = tokio::task::spawn_blocking(run).await.unwrap();
    let (steps, problem) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "after\n{steps}\n{problem}");
    assert!(steps.lines().count() >= 30, "{steps}");
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

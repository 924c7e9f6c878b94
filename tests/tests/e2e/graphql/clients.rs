//! Unmodified third-party programs for GraphQL, run with Node against the real binary: the audits of GraphQL over HTTP, the
//! client of GraphQL-SSE, Relay, which pages through connections, and the reference implementation of GraphQL, which reads the
//! schema.

use std::path::PathBuf;
use std::process::Command;

use blockbase_tests::{Engine, Server, ServerBuilder, npm_package, on_both_engines, on_sqlite_first};
use serde_json::json;

const FILES: [(&str, &str); 7] = [
    ("package-lock.json", include_str!("../../../clients/graphql/package-lock.json")),
    ("package.json", include_str!("../../../clients/graphql/package.json")),
    ("audit.mjs", include_str!("../../../clients/graphql/audit.mjs")),
    ("relay.mjs", include_str!("../../../clients/graphql/relay.mjs")),
    ("schema.mjs", include_str!("../../../clients/graphql/schema.mjs")),
    ("send.mjs", include_str!("../../../clients/graphql/send.mjs")),
    ("sse.mjs", include_str!("../../../clients/graphql/sse.mjs")),
];

/// Runs a program that has to succeed, and returns its output. It gets the endpoint's URL, a session's token, and one more argument.
async fn run(program: &'static str, server: &Server, token: &str, more: Option<PathBuf>) -> String {
    let (url, token) = (format!("{}/api/v1/graphql", server.base), token.to_owned());
    let run = move || {
        Command::new("node")
            .arg(program)
            .arg(url)
            .arg(token)
            .args(more)
            .current_dir(npm_package("graphql-clients", &FILES))
            .output()
            .expect("node")
    };
    let ran = tokio::task::spawn_blocking(run).await.unwrap();
    let (steps, problem) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{program}: after\n{steps}\n{problem}");
    steps.into_owned()
}

on_sqlite_first! {
    async fn the_client_of_graphql_sse_works_unmodified(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let steps = run("sse.mjs", &server, &admin.token, None).await;
        assert!(steps.lines().filter(|line| line.starts_with("ok ")).count() >= 29, "{steps}");
    }
}

on_both_engines! {
    async fn relay_pages_through_connections_unmodified(server: Server) {
        let admin = server.admin().await;
        crate::graphql::define(&admin).await;
        let steps = run("relay.mjs", &server, &admin.token, None).await;
        assert_eq!(steps.lines().filter(|line| line.starts_with("ok ")).count(), 17, "{steps}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_must_and_should_of_graphql_over_http_holds() {
    // The code that answers these requests does not depend on the database, so one engine is enough.
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    let verdicts = run("audit.mjs", &server, &admin.token, None).await;
    assert!(verdicts.lines().filter(|line| line.starts_with("ok ")).count() >= 40, "{verdicts}");
}

/// The schema on which clients depend. The reference implementation has to accept it. `UPDATE_SNAPSHOTS=1` writes the stored
/// schema again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schema_is_valid_and_as_it_was() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    crate::graphql::define(&admin).await;
    admin.define("empty_one", json!([])).await;
    let echo = admin.install("", blockbase_tests::example_block("echo").await).await;
    assert_eq!(echo.status, 201, "{}", echo.text);
    let file = tempfile::NamedTempFile::new().unwrap();
    run("schema.mjs", &server, &admin.token, Some(file.path().to_owned())).await;
    let schema = std::fs::read_to_string(file.path()).unwrap();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        let kept = blockbase_tests::checkout().join("tests/tests/e2e/graphql/schema.graphql");
        std::fs::write(kept, &schema).unwrap();
        return;
    }
    let known = include_str!("schema.graphql");
    assert!(schema == known, "the schema changed; is that meant? UPDATE_SNAPSHOTS=1 keeps it\n{schema}");
}

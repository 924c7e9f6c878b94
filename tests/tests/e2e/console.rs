//! The console in a real browser, with the real binary. Each file of `tests/clients/console` is one test for each engine.
//!
//! `flows.mjs` has one flow for each screen. The gate runs it on SQLite. Only the long command runs the other tests. Screenshots go to
//! `console-pictures/<engine>` in the target directory.

pub(crate) mod page;

use std::path::PathBuf;
use std::process::Command;

use blockbase_tests::{
    Engine, Server, ServerBuilder, blockbase, example_block, free_port, npm_package, path_with_go, shipped_block,
    target_directory,
};

const FILES: &[(&str, &str)] = &[
    ("package.json", include_str!("../../clients/console/package.json")),
    ("package-lock.json", include_str!("../../clients/console/package-lock.json")),
    ("axe.mjs", include_str!("../../clients/console/axe.mjs")),
    ("blocks.mjs", include_str!("../../clients/console/blocks.mjs")),
    ("event_source.mjs", include_str!("../../clients/console/event_source.mjs")),
    ("events.mjs", include_str!("../../clients/console/events.mjs")),
    ("failures.mjs", include_str!("../../clients/console/failures.mjs")),
    ("firefox.mjs", include_str!("../../clients/console/firefox.mjs")),
    ("flows.mjs", include_str!("../../clients/console/flows.mjs")),
    ("forms.mjs", include_str!("../../clients/console/forms.mjs")),
    ("gate.mjs", include_str!("../../clients/console/gate.mjs")),
    ("harness.mjs", include_str!("../../clients/console/harness.mjs")),
    ("home.mjs", include_str!("../../clients/console/home.mjs")),
    ("objects-edges.mjs", include_str!("../../clients/console/objects-edges.mjs")),
    ("objects.mjs", include_str!("../../clients/console/objects.mjs")),
    ("record.mjs", include_str!("../../clients/console/record.mjs")),
    ("records.mjs", include_str!("../../clients/console/records.mjs")),
    ("records_bulk.mjs", include_str!("../../clients/console/records_bulk.mjs")),
    ("records_filter.mjs", include_str!("../../clients/console/records_filter.mjs")),
    ("records_groups.mjs", include_str!("../../clients/console/records_groups.mjs")),
    ("records_live.mjs", include_str!("../../clients/console/records_live.mjs")),
    ("reference.mjs", include_str!("../../clients/console/reference.mjs")),
    ("roles_conditions.mjs", include_str!("../../clients/console/roles_conditions.mjs")),
    ("screens.mjs", include_str!("../../clients/console/screens.mjs")),
    ("shell.mjs", include_str!("../../clients/console/shell.mjs")),
    ("transfer.mjs", include_str!("../../clients/console/transfer.mjs")),
    ("users.mjs", include_str!("../../clients/console/users.mjs")),
    ("webhooks.mjs", include_str!("../../clients/console/webhooks.mjs")),
];

/// A server whose webhooks may call receivers on this machine.
fn builder(engine: Engine) -> ServerBuilder {
    ServerBuilder::new(engine).env("SVC_ALLOW_PRIVATE_NETWORK", "true")
}

/// Fails if there is no browser, and gives advice. Without this check, the tests would pass without testing the console.
fn chromium_is_there() {
    let path = std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from("/usr/bin/chromium"), PathBuf::from);
    assert!(
        path.is_file(),
        "There is no Chromium at {}, so the console cannot be tested. Install it with `./dev tools`, or name its path in CHROMIUM.",
        path.display()
    );
}

/// Runs a file of tests with node, and fails with its output. `more` are further variables.
async fn passes(file: &'static str, engine: Engine, server: &Server, more: Vec<(&'static str, String)>) {
    passes_at(server.base.clone(), file, engine, more).await;
}

/// Does the same for the server at this address, which the tests may start themselves.
async fn passes_at(base: String, file: &'static str, engine: Engine, more: Vec<(&'static str, String)>) {
    chromium_is_there();
    let engine = match engine {
        Engine::Sqlite => "sqlite",
        Engine::Postgres => "postgres",
    };
    let run = move || {
        Command::new("node")
            .args(["--test", "--test-reporter=spec", file])
            .env("BASE_URL", base)
            .env("ENGINE", engine)
            .env("ARTIFACTS", target_directory().join("console-pictures").join(engine))
            .envs(more)
            .current_dir(npm_package("console-client", FILES))
            .output()
            .expect("node")
    };
    let ran = tokio::task::spawn_blocking(run).await.unwrap();
    let (steps, problem) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    eprintln!("{steps}");
    assert!(ran.status.success(), "{file} on {engine}:\n{steps}\n{problem}");
}

/// Variables for `webhooks.mjs`, which runs the samples in every language. `./dev tools --long` installs PHP.
async fn every_language() -> Vec<(&'static str, String)> {
    let path = tokio::task::spawn_blocking(path_with_go).await.expect("a path");
    vec![("PATH", path.into_string().expect("a path in UTF-8")), ("EVERY_LANGUAGE", "true".to_owned())]
}

/// A file of tests that needs only a server.
macro_rules! screens {
    ($($name:ident: $file:literal;)*) => {$(
        mod $name {
            use super::*;

            async fn on(engine: Engine) {
                // `events.mjs` waits for dead deliveries, so this server retries at once.
                let retry_ms = if $file == "events.mjs" { "1" } else { "5000" };
                let server = builder(engine).env("SVC_RETRY_BASE_MS", retry_ms).start().await;
                let more = if $file == "webhooks.mjs" { every_language().await } else { Vec::new() };
                passes($file, engine, &server, more).await;
            }

            #[ignore = "long: a browser"]
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                on(Engine::Sqlite).await;
            }

            #[ignore = "long: a browser"]
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                on(Engine::Postgres).await;
            }
        }
    )*};
}

screens! {
    events: "events.mjs";
    firefox: "firefox.mjs";
    forms: "forms.mjs";
    home: "home.mjs";
    objects: "objects.mjs";
    objects_edges: "objects-edges.mjs";
    record: "record.mjs";
    records: "records.mjs";
    records_bulk: "records_bulk.mjs";
    records_filter: "records_filter.mjs";
    records_groups: "records_groups.mjs";
    records_live: "records_live.mjs";
    reference: "reference.mjs";
    roles_conditions: "roles_conditions.mjs";
    shell: "shell.mjs";
    transfer: "transfer.mjs";
    users: "users.mjs";
    webhooks: "webhooks.mjs";
}

/// The blocks of `blocks/`.
const SHIPPED: [&str; 4] = ["csv", "github-hooks", "slack-notify", "stripe-hooks"];

/// A file of tests that uploads a block: the component of `examples/echo`, packed again with its own manifests. `blocks.mjs` also
/// uploads the shipped blocks.
async fn passes_with_a_block(file: &'static str, engine: Engine) {
    let server = builder(engine).start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let component = directory.path().join("echo.wasm");
    std::fs::write(&component, example_block("echo").await).expect("a file");
    let shipped: &[&str] = if file == "blocks.mjs" { &SHIPPED } else { &[] };
    for name in shipped {
        std::fs::write(directory.path().join(format!("{name}.wasm")), shipped_block(name).await).expect("a file");
    }
    let more = [("BLOCK", component.as_path()), ("BLOCKBASE", blockbase()), ("SHIPPED", directory.path())];
    let more = more.map(|(name, path)| (name, path.display().to_string())).into();
    passes(file, engine, &server, more).await;
}

mod flows {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sqlite() {
        passes_with_a_block("flows.mjs", Engine::Sqlite).await;
    }

    #[ignore = "long: a browser"]
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn postgres() {
        passes_with_a_block("flows.mjs", Engine::Postgres).await;
    }
}

/// A file of tests that uploads a block. Only the long command runs it.
macro_rules! screens_with_a_block {
    ($($name:ident: $file:literal;)*) => {$(
        mod $name {
            use super::*;

            #[ignore = "long: a browser"]
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                passes_with_a_block($file, Engine::Sqlite).await;
            }

            #[ignore = "long: a browser"]
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                passes_with_a_block($file, Engine::Postgres).await;
            }
        }
    )*};
}

screens_with_a_block! {
    axe: "axe.mjs";
    blocks: "blocks.mjs";
    failures: "failures.mjs";
}

/// The tests start the server, because they restart it.
mod event_source {
    use super::*;

    async fn on(engine: Engine) {
        let prepared = builder(engine).prepared().await;
        let port = free_port();
        let mut more = vec![
            ("BLOCKBASE", blockbase().display().to_string()),
            ("DIRECTORY", prepared.directory().display().to_string()),
            ("PORT", port.to_string()),
        ];
        more.extend(prepared.database_url().map(|url| ("DATABASE_URL", url)));
        passes_at(format!("http://127.0.0.1:{port}"), "event_source.mjs", engine, more).await;
    }

    #[ignore = "long: a browser"]
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sqlite() {
        on(Engine::Sqlite).await;
    }

    #[ignore = "long: a browser"]
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn postgres() {
        on(Engine::Postgres).await;
    }
}

mod gate {
    use super::*;

    /// In addition to the new server, there are two whose admin has to be claimed, one that needs a setup token, and one that
    /// sends mail.
    async fn on(engine: Engine) {
        let server = builder(engine).start().await;
        let to_claim = builder(engine).env("SVC_ADMIN_EMAIL", "boot@example.com").env("SVC_ADMIN_PASSWORD", "the first password");
        let lost = to_claim.clone().start().await;
        let won = to_claim.start().await;
        let guarded = builder(engine).env("SVC_SETUP_TOKEN", "let-me-in-please-1234").start().await;
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("log");
        let mailing = builder(engine).env("SVC_MAIL_LOG", "true").env("SVC_REQUIRE_EMAIL_VERIFICATION", "true");
        let mailing = mailing.log_to(log.clone()).start().await;
        let more = vec![
            ("CLAIM_URL", lost.base.clone()),
            ("CLAIM_2_URL", won.base.clone()),
            ("SETUP_URL", guarded.base.clone()),
            ("MAIL_URL", mailing.base.clone()),
            ("MAIL_LOG", log.display().to_string()),
        ];
        passes("gate.mjs", engine, &server, more).await;
    }

    #[ignore = "long: a browser"]
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sqlite() {
        on(Engine::Sqlite).await;
    }

    #[ignore = "long: a browser"]
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn postgres() {
        on(Engine::Postgres).await;
    }
}

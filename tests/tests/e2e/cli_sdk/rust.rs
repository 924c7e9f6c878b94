//! Blocks in Rust, from `block new` to the calls.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use blockbase_tests::{blockbase, guests_directory, made_once, on_sqlite_first, target_directory};
use serde_json::{Value, json};

use crate::cli_sdk::promises;

/// Code that an author adds to the template's source.
pub(crate) const SURROUNDINGS: &str = r#"
#[derive(Serialize)]
struct Surroundings {
    now_ms: u64,
    uuid: String,
    signed: bool,
    block: String,
    remaining_ms: u64,
}

/// Tells where it is.
///
/// For whoever asks.
#[action(timeout_ms = 5000, rbac(resource = "probe-rs:surroundings", action = "read"))]
fn surroundings(context: &Context) -> Result<Surroundings, std::fmt::Error> {
    let signature = blockbase_sdk::signature::hmac_sha256_hex(b"key", b"message");
    Ok(Surroundings {
        now_ms: blockbase_sdk::time::now_ms(),
        uuid: blockbase_sdk::random::uuid(),
        signed: blockbase_sdk::signature::is_hmac_sha256_hex(b"key", b"message", &signature),
        block: context.block.clone(),
        remaining_ms: blockbase_sdk::deadline::remaining_ms(),
    })
}

#[derive(Deserialize, JsonSchema)]
struct Number {
    text: String,
}

/// Reads a number.
#[action]
fn number(_context: &Context, input: Number) -> Result<i64, Error> {
    Ok(input.text.parse::<i64>()?)
}

use blockbase_sdk::data;
use blockbase_sdk::serde_json::{Value, json};

#[derive(Deserialize)]
struct Task {
    title: String,
}

#[derive(Deserialize)]
struct Book {
    title: String,
}

#[derive(Deserialize)]
struct Project {
    name: String,
}

#[derive(Serialize)]
struct Found {
    open: Vec<String>,
    books: Vec<String>,
    projects: Vec<String>,
    idle: Vec<String>,
    counted: Value,
}

/// Asks with conditions.
#[action]
fn conditions(_context: &Context) -> Result<Found, Error> {
    let open = json!({ "where": { "done": false, "project.owner.name": { "ilike": "an" } }, "sort": "-created_at" });
    let page = data::query::<Task>("task", open)?;
    let books: data::Page<Book> = data::query("book", json!({ "where": { "_not": { "lent": true } } }))?;
    let some = json!({ "where": { "task_by_project": { "some": { "done": true } } } });
    let projects = data::query::<Project>("project", some)?;
    let both = json!({ "where": { "task_by_project": { "every": { "title": { "ilike": "a" } }, "none": { "done": true } } } });
    let idle = data::query::<Project>("project", both)?;
    let counted = data::aggregate("task", json!({ "fn": "count", "where": { "project.owner.name": "Ann" } }))?;
    Ok(Found {
        open: page.data.into_iter().map(|task| task.title).collect(),
        books: books.data.into_iter().map(|book| book.title).collect(),
        projects: projects.data.into_iter().map(|project| project.name).collect(),
        idle: idle.data.into_iter().map(|project| project.name).collect(),
        counted: counted.value,
    })
}
"#;

/// A block's folder from `block new`, with another source. Its path is the same in every run, so that a run can reuse the build of the
/// previous one.
fn new_block(name: &str, change: impl FnOnce(String) -> String) -> PathBuf {
    let directory = target_directory().join("new-blocks").join(name);
    let _ = std::fs::remove_dir_all(&directory);
    let made = command(&["block", "new", name, "--language", "rust"], &directory);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(directory.join(".gitignore").is_file() && directory.join(".blockbase/sdk/Cargo.toml").is_file());
    let source = directory.join("src/lib.rs");
    std::fs::write(&source, change(std::fs::read_to_string(&source).unwrap())).unwrap();
    directory
}

fn command(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(blockbase());
    // All guests share one target directory, so that the standard library is built once.
    command.args(arguments).arg(directory).env("CARGO_TARGET_DIR", guests_directory());
    command.output().unwrap()
}

/// The packed file.
fn built(directory: &Path, name: &str) -> Vec<u8> {
    let output = command(&["block", "build"], directory);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(directory.join(format!("{name}.wasm"))).unwrap()
}

/// The text with a part replaced. The part has to exist.
fn replaced(text: &str, part: &str, by: &str) -> String {
    assert!(text.contains(part), "no {part:?} in the template");
    text.replace(part, by)
}

/// The unchanged template.
async fn hello() -> Vec<u8> {
    let build = || built(&new_block("hello-rs", |text| text), "hello-rs");
    tokio::task::spawn_blocking(move || made_once("hello-rs", build)).await.unwrap()
}

/// The template with [`SURROUNDINGS`] and further keys in block.json.
async fn probe() -> Vec<u8> {
    let build = || {
        let directory = new_block("probe-rs", |text| {
            replaced(&text, "block!(greet, knock, on_task)", "block!(greet, knock, on_task, surroundings, number, conditions)")
                + SURROUNDINGS
        });
        let manifest = directory.join("block.json");
        let mut draft: Value = serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
        draft["resources"] = json!([{ "name": "probe-rs:surroundings", "actions": ["read"] }]);
        draft["actions"] = json!([{ "name": "greet", "description": "Says hello, as block.json has it." }]);
        std::fs::write(manifest, draft.to_string()).unwrap();
        built(&directory, "probe-rs")
    };
    tokio::task::spawn_blocking(move || made_once("probe-rs", build)).await.unwrap()
}

on_sqlite_first! {
    async fn a_new_block_builds_as_it_is_and_does_what_it_says(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let installed = admin.install("", hello().await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let block = installed.data();
        assert_eq!((&block["actions"][0]["description"], &block["hooks"][0]["name"]), (&json!("Greets somebody."), &json!("knock")));
        assert_eq!(
            (&block["subscriptions"][0]["event"], &block["subscriptions"][0]["consumer"]),
            (&json!("data.task.#"), &json!("hello-rs:on_task"))
        );

        let greet = async |input: Value| admin.post("/api/v1/blocks/hello-rs/actions/greet", input).await;
        assert_eq!(greet(json!({ "name": "Zoë" })).await.data(), json!({ "message": "Hello, Zoë!" }));
        assert_eq!(greet(json!({ "name": "Zoë", "loud": true })).await.data(), json!({ "message": "HELLO, ZOË!" }));
        let refused = greet(json!({ "name": "", "louder": true })).await.expect_error(400, "validation_failed");
        let mut paths: Vec<&str> = refused["issues"].as_array().unwrap().iter().map(|issue| issue["path"].as_str().unwrap()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["", "/name"]);
        greet(json!({})).await.expect_error(400, "validation_failed");
        let error = greet(json!({ "name": "nobody" })).await.expect_error(409, "conflict");
        assert_eq!(error["message"], "There is nobody to greet.");

        let task = admin.make("task", json!({ "title": "a" })).await;
        let expected = format!("The task {task} was created.");
        for attempt in 0.. {
            let lines = admin.get("/api/v1/blocks/hello-rs/logs").await.data();
            if lines.as_array().unwrap().iter().any(|line| line["message"] == expected) {
                break;
            }
            assert!(attempt < 2400, "no line of the subscription: {lines}");
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    async fn the_handler_of_the_template_takes_any_record(server: Server) {
        promises::any_record(&server, "hello-rs:on_task", hello().await, 7).await;
    }

    #[ignore = "long: a toolchain"]
    async fn what_the_code_says_is_in_the_manifest_and_the_host_gives_time_and_randomness(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let installed = admin.install("", probe().await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let actions = installed.data()["actions"].clone();
        let action = |name: &str| actions.as_array().unwrap().iter().find(|action| action["name"] == name).unwrap().clone();
        // The values of block.json take precedence. Everything else comes from the code.
        assert_eq!(action("greet")["description"], "Says hello, as block.json has it.");
        assert_eq!(action("greet")["input"]["required"], json!(["name"]));
        let said = action("surroundings");
        assert_eq!(said["description"], "Tells where it is.\n\nFor whoever asks.");
        assert_eq!(said["input"], json!({ "type": "object", "additionalProperties": false }));

        let found = admin.post("/api/v1/blocks/probe-rs/actions/surroundings", json!({})).await.data();
        let now_ms = u64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
        assert!(now_ms.abs_diff(found["now_ms"].as_u64().unwrap()) < 60_000, "{found}");
        assert!((1..=5000).contains(&found["remaining_ms"].as_u64().unwrap()), "{found}");
        assert_eq!((&found["signed"], &found["block"]), (&json!(true), &json!("probe-rs")));
        let last = promises::nothing_repeats(&admin, "/api/v1/blocks/probe-rs/actions/surroundings", &["uuid"]).await;
        assert_eq!(last["uuid"].as_str().unwrap().len(), 36);

        let number = async |text: &str| admin.post("/api/v1/blocks/probe-rs/actions/number", json!({ "text": text })).await;
        assert_eq!(number("-7").await.data(), -7);
        let error = number("seven").await.expect_error(500, "action_failed");
        assert_eq!(error["message"], "invalid digit found in string");
    }
}

on_sqlite_first! {
    #[ignore = "long: a toolchain"]
    async fn conditions_find_their_records(server: Server) {
        promises::conditions_in_a_new_block(&server, "probe-rs", probe().await).await;
    }
}

/// The build's error for a template with a mistake.
async fn mistake(part: &'static str, by: &'static str) -> String {
    tokio::task::spawn_blocking(move || {
        let directory = new_block("wrong-rs", |text| replaced(&text, part, by));
        let output = command(&["block", "build"], &directory);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mistakes_are_said_where_they_are() {
    let without_attribute = mistake("#[hook]\n", "").await;
    assert!(without_attribute.contains("cannot find type `attribute_of_knock`"), "{without_attribute}");
    let another_parameter = mistake("request: Request)", "request: Request, more: u8)").await;
    assert!(another_parameter.contains("a hook is `fn(context: &Context, request: Request)"), "{another_parameter}");
}

/// The first Rust snippet in a document.
fn snippet(document: &str) -> &str {
    let (_, rest) = document.split_once("```rust\n").expect("a snippet of Rust");
    rest.split_once("```").expect("its end").0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_snippets_of_the_documents_build() {
    for (name, document) in [
        ("tasks", include_str!("../../../../docs/blocks.md")),
        ("snippet-readme", include_str!("../../../../sdk/rust/README.md")),
    ] {
        let build = move || {
            let directory = new_block(name, |_| snippet(document).to_owned());
            let manifest = directory.join("block.json");
            let mut draft: Value = serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
            draft["resources"] = json!([{ "name": format!("{name}:use"), "actions": ["read"] }]);
            std::fs::write(manifest, draft.to_string()).unwrap();
            built(&directory, name)
        };
        assert!(!tokio::task::spawn_blocking(build).await.unwrap().is_empty());
    }
}

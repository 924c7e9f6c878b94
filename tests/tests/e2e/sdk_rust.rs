//! Blocks in Rust, from `block new` to the calls.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use blockbase_tests::{blockbase, on_both_engines, target_directory};
use serde_json::{Value, json};

/// What an author writes into the template's source, besides what is there.
const SURROUNDINGS: &str = r#"
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
"#;

/// A block's folder as `block new` makes it, changed, and built: the packed file.
fn built(name: &str, change: impl FnOnce(&Path)) -> Vec<u8> {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("block");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(blockbase());
        // One target directory for all guests, so that the standard library is built once.
        command.args(arguments).arg(&directory).env("CARGO_TARGET_DIR", target_directory().join("guests"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["block", "new", name, "--language", "rust"]);
    assert!(directory.join(".gitignore").is_file() && directory.join(".blockbase/sdk/Cargo.toml").is_file());
    change(&directory);
    run(&["block", "build"]);
    std::fs::read(directory.join(format!("{name}.wasm"))).unwrap()
}

/// The template as it is.
async fn hello() -> Vec<u8> {
    static BUILT: OnceLock<Vec<u8>> = OnceLock::new();
    tokio::task::spawn_blocking(|| BUILT.get_or_init(|| built("hello-rs", |_| {})).clone()).await.unwrap()
}

/// The template with [`SURROUNDINGS`] and a resource.
async fn probe() -> Vec<u8> {
    static BUILT: OnceLock<Vec<u8>> = OnceLock::new();
    let change = |directory: &Path| {
        let (source, manifest) = (directory.join("src/lib.rs"), directory.join("block.json"));
        let text = std::fs::read_to_string(&source).unwrap();
        let listed = text.replace("block!(greet, knock, on_task)", "block!(greet, knock, on_task, surroundings, number)");
        assert_ne!(listed, text);
        std::fs::write(source, format!("{listed}{SURROUNDINGS}")).unwrap();
        let mut draft: Value = serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
        draft["resources"] = json!([{ "name": "probe-rs:surroundings", "actions": ["read"] }]);
        draft["actions"] = json!([{ "name": "greet", "description": "Says hello, as block.json has it." }]);
        std::fs::write(manifest, draft.to_string()).unwrap();
    };
    tokio::task::spawn_blocking(move || BUILT.get_or_init(|| built("probe-rs", change)).clone()).await.unwrap()
}

on_both_engines! {
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
            assert!(attempt < 400, "no line of the subscription: {lines}");
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    async fn what_the_code_says_is_in_the_manifest_and_the_host_gives_time_and_randomness(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let installed = admin.install("", probe().await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let actions = installed.data()["actions"].clone();
        let action = |name: &str| actions.as_array().unwrap().iter().find(|action| action["name"] == name).unwrap().clone();
        // block.json stands, and what it leaves out comes from the code.
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
        let again = admin.post("/api/v1/blocks/probe-rs/actions/surroundings", json!({})).await.data();
        assert_ne!(again["uuid"], found["uuid"]);
        assert_eq!(again["uuid"].as_str().unwrap().len(), 36);

        let number = async |text: &str| admin.post("/api/v1/blocks/probe-rs/actions/number", json!({ "text": text })).await;
        assert_eq!(number("-7").await.data(), -7);
        let error = number("seven").await.expect_error(500, "action_failed");
        assert_eq!(error["message"], "invalid digit found in string");
    }
}

/// A folder with a mistake: what the build says.
async fn mistake(change: fn(String) -> String) -> String {
    tokio::task::spawn_blocking(move || {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("block");
        let run = |arguments: &[&str]| {
            let mut command = Command::new(blockbase());
            command.args(arguments).arg(&directory).env("CARGO_TARGET_DIR", target_directory().join("guests"));
            command.output().unwrap()
        };
        assert!(run(&["block", "new", "wrong-rs"]).status.success());
        let source = directory.join("src/lib.rs");
        let text = std::fs::read_to_string(&source).unwrap();
        let changed = change(text.clone());
        assert_ne!(changed, text);
        std::fs::write(source, changed).unwrap();
        let output = run(&["block", "build"]);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mistakes_are_said_where_they_are() {
    let without_attribute = mistake(|text| text.replace("#[hook]\n", "")).await;
    assert!(without_attribute.contains("cannot find type `attribute_of_knock`"), "{without_attribute}");
    let another_parameter = mistake(|text| text.replace("request: Request)", "request: Request, more: u8)")).await;
    assert!(another_parameter.contains("a hook is `fn(context: &Context, request: Request)"), "{another_parameter}");
}

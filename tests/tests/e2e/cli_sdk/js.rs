//! The SDK for JavaScript and TypeScript: the unchanged template, and the functions that a handler can use.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use blockbase_tests::{
    Admin, Answer, Receiver, Reply, ServerBuilder, blockbase, inspect, made_once, on_sqlite_first, pack, target_directory,
};
use serde_json::{Value, json};

use crate::blocks::ahead;
use crate::cli_sdk::promises;

/// Handlers in addition to those of the template.
pub(crate) const MORE: &str = include_str!("js/more.ts");

fn run(command: &mut Command) -> String {
    let output = command.output().expect("a program");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}{}", String::from_utf8_lossy(&output.stdout));
    said
}

/// `blockbase block build`. All builds share one cache of packages.
fn build_command(directory: &Path) -> Command {
    let mut command = Command::new(blockbase());
    command.args(["block", "build"]).arg(directory);
    command.env("npm_config_cache", target_directory().join("npm")).env("npm_config_prefer_offline", "true");
    command
}

fn new_block(name: &str, directory: &Path) {
    run(Command::new(blockbase()).args(["block", "new", name, "--language", "js"]).arg(directory));
}

/// One block with the template and the handlers of these tests. It is built once.
async fn hello() -> Vec<u8> {
    let build = || {
        let directory = tempfile::tempdir().expect("a directory");
        let block = directory.path().join("hello");
        new_block("hello", &block);
        let source = block.join("src/block.ts");
        let text = std::fs::read_to_string(&source).expect("the template's source");
        std::fs::write(&source, text + MORE).expect("a source");
        let manifest = block.join("block.json");
        let text = std::fs::read_to_string(&manifest).expect("the template's manifest");
        let mut value: Value = serde_json::from_str(&text).expect("JSON");
        value["permissions"]["secrets"] = json!(["SIGNING_KEY"]);
        std::fs::write(&manifest, value.to_string()).expect("a manifest");
        run(&mut build_command(&block));
        std::fs::read(block.join("hello.wasm")).expect("a packed block")
    };
    tokio::task::spawn_blocking(move || made_once("hello-js", build)).await.expect("a built block")
}

/// The manifest of a packed block.
fn manifest_of(file: &Path) -> Value {
    let output = Command::new(blockbase()).args(["block", "inspect"]).arg(file).output().expect("blockbase");
    serde_json::from_slice(&output.stdout).expect("a manifest")
}

async fn call(who: &Admin<'_>, action: &str, input: Value) -> Answer {
    who.post(&format!("/api/v1/blocks/hello/actions/{action}"), input).await
}

async fn install(admin: &Admin<'_>) {
    admin.make_task_object().await;
    let installed = admin.install("", hello().await).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
}

#[test]
fn the_sdk_passes_its_own_tests() {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/js");
    run(Command::new("node").args(["--test", "tests/"]).current_dir(sdk));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: a toolchain"]
async fn calls_of_a_hot_block_get_instances_that_were_made_ahead() {
    let server = ahead::server().await;
    let admin = server.admin().await;
    install(&admin).await;
    let mut drawn = HashSet::new();
    ahead::are_made_ahead(&admin, "hello", async || {
        assert_eq!(call(&admin, "count", json!({})).await.data(), json!({ "counted": 1, "ranLate": [] }));
        let number = call(&admin, "draw", json!({})).await.data()["number"].to_string();
        assert!(drawn.insert(number), "two instances drew the same number: {drawn:?}");
        // What a call leaves ends with its instance.
        assert_eq!(call(&admin, "leave", json!({})).await.data(), json!({ "counted": 1 }));
    })
    .await;
}

#[test]
fn a_block_in_plain_javascript_asks_for_what_it_uses_and_no_more() {
    let directory = tempfile::tempdir().expect("a directory");
    let block = directory.path().join("plain");
    new_block("plain", &block);
    let write = |name: &str, text: &str| std::fs::write(block.join(name), text).expect("a file");
    for file in ["tsconfig.json", "src/block.ts"] {
        std::fs::remove_file(block.join(file)).expect("a file of the template");
    }
    write("block.json", r#"{ "name": "plain", "version": "0.1.0" }"#);
    write("src/block.js", "import { action, config } from '@blockbase/sdk';\naction('settings', () => config.get());\n");
    run(&mut build_command(&block));
    let manifest = manifest_of(&block.join("plain.wasm"));
    assert_eq!(manifest["requires"]["plugins"], json!(["config", "log"]));
    assert_eq!(manifest["actions"], json!([{ "name": "settings", "description": "", "input": { "type": "object" } }]));

    // The build's errors use the names in the author's code.
    for (line, part) in [
        ("action('settings', () => 1);", "The action settings is declared twice."),
        ("import 'nowhere';", "Could not resolve \"nowhere\""),
        ("config.get();", "config.get was called outside of a handler."),
    ] {
        write(
            "src/block.js",
            &format!("import {{ action, config }} from '@blockbase/sdk';\naction('settings', () => config.get());\n{line}\n"),
        );
        let failed = build_command(&block).output().expect("blockbase");
        let said = String::from_utf8_lossy(&failed.stderr);
        assert!(!failed.status.success() && said.contains(part), "{said}");
    }
}

on_sqlite_first! {
    async fn the_template_greets_and_reads_its_configuration(server: Server) {
        let admin = server.admin().await;
        install(&admin).await;
        let greeted = call(&admin, "greet", json!({ "name": "Ada" })).await;
        let user = admin.get("/api/v1/me").await.json()["userId"].clone();
        assert_eq!(greeted.data(), json!({ "message": "Hello, Ada!", "by": user }));
        admin.patch("/api/v1/blocks/hello", json!({ "config": { "greeting": "Ahoy" } })).await.data();
        assert_eq!(call(&admin, "greet", json!({ "name": "Äöü🦀" })).await.data()["message"], "Ahoy, Äöü🦀!");
        let failed = call(&admin, "greet", json!({ "name": "", "colour": 1 })).await.expect_error(400, "validation_failed");
        assert_eq!(failed["issues"].as_array().unwrap().len(), 2, "{failed}");
    }

    async fn the_handler_of_the_template_takes_any_record(server: Server) {
        promises::any_record(&server, "hello:titles", hello().await, 5).await;
    }

    #[ignore = "long: a toolchain"]
    async fn errors_answer_by_their_code_and_exceptions_by_their_message(server: Server) {
        let admin = server.admin().await;
        install(&admin).await;
        let nobody = call(&admin, "greet", json!({ "name": "nobody" })).await.expect_error(404, "not_found");
        assert_eq!(nobody["message"], "There is nobody to greet.");
        for (code, status) in [("invalid_request", 400), ("forbidden", 403), ("conflict", 409), ("unavailable", 503)] {
            call(&admin, "refuse", json!({ "code": code })).await.expect_error(status, code);
        }
        let teapot = call(&admin, "refuse", json!({ "code": "teapot" })).await.expect_error(500, "action_failed");
        assert_eq!(teapot["message"], "No.");
        let failed = call(&admin, "fail", json!({})).await.expect_error(500, "action_failed");
        assert_eq!(failed["message"], "The printer is on fire.");
        call(&admin, "reject", json!({})).await.expect_error(409, "conflict");
        let misuse = call(&admin, "misuse", json!({})).await.expect_error(409, "conflict");
        assert_eq!(
            misuse["message"],
            "The id of a record has to be a string. The record is nothing that JSON can hold. The ids have to be an array of strings."
        );
        let hung = call(&admin, "hang", json!({})).await.expect_error(500, "action_failed");
        assert_eq!(hung["message"], "The handler waits for a promise that nothing settles.");
    }

    #[ignore = "long: a toolchain"]
    async fn handlers_wait_draw_and_sign(server: Server) {
        let admin = server.admin().await;
        install(&admin).await;
        let settled = call(&admin, "settle", json!({})).await.data();
        assert_eq!(settled, json!({ "both": [1, 2], "letters": ["a", "b"], "caught": "caught", "waited": true }));
        let members = ["number", "kept", "bytes", "uuid"];
        let drawn = promises::nothing_repeats(&admin, "/api/v1/blocks/hello/actions/draw", &members).await;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        assert!((drawn["now"].as_f64().unwrap() / 1000.0 - now).abs() < 60.0, "{drawn}");
        let signed = call(&admin, "sign", json!({ "key": "key", "text": "é" })).await.data();
        let signature = "e5eb9b0a697f5df0e9c03ffdd759f4b6edb39204332904d5eb74735b54259255";
        assert_eq!(signed, json!({ "signature": signature, "bytes": 2, "left": true }));
        let mut lines = Value::Null;
        for _ in 0..1000 {
            lines = admin.get("/api/v1/blocks/hello/logs?level=warn").await.data();
            if lines.as_array().unwrap().len() == promises::DRAWS {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(lines[0]["message"], "drawn { at: \"1970-01-01T00:00:00.000Z\", list: [1, \"two\"] }");
    }

    #[ignore = "long: a toolchain"]
    async fn a_reused_instance_keeps_variables_but_no_timers_and_jobs(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let counted = async |action: &str| call(&admin, action, json!({})).await.data()["counted"].as_u64().unwrap();
        assert_eq!(admin.install("", hello().await).await.status, 201);
        assert_eq!((counted("count").await, counted("leave").await, counted("count").await), (1, 1, 1), "without reuse");

        let mut manifest = inspect(hello().await).await;
        manifest["version"] = json!("0.2.0");
        manifest["instances"] = json!({ "reuse": { "calls": 1000, "seconds": 300 } });
        let asking = pack(hello().await, manifest).await.unwrap();
        let upgraded = admin.install("?upgrade=true&allowNewPermissions=true", asking).await;
        assert_eq!(upgraded.status, 200, "{}", upgraded.text);
        assert_eq!((counted("count").await, counted("leave").await), (1, 2));
        assert_eq!(call(&admin, "count", json!({})).await.data(), json!({ "counted": 3, "ranLate": [] }), "what was left");
        // An error of the handler does not end the instance.
        call(&admin, "refuse", json!({ "code": "conflict" })).await.expect_error(409, "conflict");
        assert_eq!(counted("count").await, 4);
        // Numbers are not drawn twice by calls of one instance either.
        let drawn = call(&admin, "draw", json!({})).await.data();
        assert_ne!(call(&admin, "draw", json!({})).await.data()["number"], drawn["number"]);
        assert_eq!(counted("count").await, 5);
        // Nothing can settle this promise in this instance any more, so the instance ends.
        call(&admin, "wait_for_what_was_left", json!({})).await.expect_error(500, "action_failed");
        assert_eq!((counted("count").await, counted("count").await), (1, 2), "after a promise that was lost");
        // A call that slept leaves no handle of the clock, so its instance goes on.
        assert_eq!((counted("nap").await, counted("count").await), (3, 4), "after a timer that was waited for");
    }

    #[ignore = "long: a toolchain"]
    async fn records_are_read_and_written_as_values(server: Server) {
        let admin = server.admin().await;
        install(&admin).await;
        let id = admin.make("task", json!({ "title": "bread" })).await;
        let answer = call(&admin, "records", json!({ "id": id })).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let expected = json!({
            "title": "bread", "missing": null, "found": [1, 1, 0], "total": 1, "value": 1, "done": true, "refused": "forbidden",
        });
        assert_eq!(answer.data(), expected);
    }

    #[ignore = "long: a toolchain"]
    async fn conditions_find_their_records(server: Server) {
        promises::conditions_in_a_new_block(&server, "hello", hello().await).await;
    }

    #[ignore = "long: a toolchain"]
    async fn an_event_reaches_its_handler(server: Server) {
        let admin = server.admin().await;
        install(&admin).await;
        let id = admin.make("task", json!({ "title": "  milk " })).await;
        let mut title = Value::Null;
        for _ in 0..1000 {
            title = admin.get(&format!("/api/v1/data/task/{id}")).await.data()["title"].clone();
            if title == "milk" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(title, "milk");
    }

    #[ignore = "long: a toolchain"]
    async fn a_hook_reads_what_came_and_answers_as_it_likes(server: Server) {
        let admin = server.admin().await;
        install(&admin).await;
        let post = async |path: &str, signature: &str, body: Vec<u8>| {
            let url = format!("/api/v1/hooks/hello/{path}");
            server.request("POST", &url).header("x-SIGNATURE", signature).body(body).send().await.unwrap()
        };
        let pinged = post("ping", "", b"hello".to_vec()).await;
        assert_eq!((pinged.status(), pinged.headers()["content-type"].to_str().unwrap()), (200.try_into().unwrap(), "application/json"));
        let pinged: Value = serde_json::from_slice(&pinged.bytes().await.unwrap()).unwrap();
        assert_eq!(pinged, json!({ "method": "POST", "received": "hello" }));
        let every_byte: Vec<u8> = (0..=255).collect();
        assert_eq!(post("bytes", "", every_byte.clone()).await.bytes().await.unwrap(), every_byte);

        let secret = json!({ "name": "SIGNING_KEY", "value": "secret" });
        let stored = admin.post("/api/v1/blocks/hello/secrets", secret).await;
        assert!(stored.status < 300, "{}", stored.text);
        let (body, signature) = (br#"{"kind":"order"}"#.to_vec(), "485c9d45e0637f34874ed99dc70146dc7d58dd97a089204cc52c61e393004f84");
        let signed = post("signed", signature, body.clone()).await;
        assert_eq!((signed.status().as_u16(), signed.headers()["x-kind"].to_str().unwrap()), (201, "order"));
        assert_eq!(signed.text().await.unwrap(), "taken");
        assert_eq!(post("signed", "0", body.clone()).await.status(), 401);
        let quiet = post("signed?quiet=1", signature, body.clone()).await;
        assert_eq!((quiet.status().as_u16(), quiet.text().await.unwrap().as_str()), (200, r#"{"received":true}"#));
        let failed = post("signed?fail", signature, body).await;
        assert_eq!(failed.status(), 500);
        assert!(!failed.text().await.unwrap().contains("detail for nobody"));
    }
}

on_sqlite_first! {
    #[ignore = "long: a toolchain"]
    async fn requests_go_to_granted_origins(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ALLOW_PRIVATE_NETWORK", "true").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        receiver.answer(|_, _| Reply::Text(418, "short and stout".to_owned()));
        let file = hello().await;
        let directory = tempfile::tempdir().unwrap();
        let packed = directory.path().join("hello.wasm");
        std::fs::write(&packed, &file).unwrap();
        let mut manifest = manifest_of(&packed);
        assert_eq!(manifest["requires"]["plugins"], json!(["config", "data", "http", "log", "secrets"]));
        manifest["permissions"]["http"] = json!([receiver.url.strip_suffix("/hook").unwrap()]);
        let installed = admin.install("", pack(file, manifest).await.unwrap()).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let fetched = call(&admin, "fetch", json!({ "url": receiver.url })).await;
        assert_eq!(fetched.status, 200, "{}", fetched.text);
        let fetched = fetched.data();
        assert_eq!((&fetched["status"], &fetched["ok"], &fetched["text"]), (&json!(418), &json!(false), &json!("short and stout")));
        let received = receiver.received();
        assert_eq!((received[0].json(), received[0].header("x-from")), (json!({ "hello": "you" }), "a block"));
        assert_eq!(received[0].header("content-type"), "application/json");
        call(&admin, "fetch", json!({ "url": "https://example.com" })).await.expect_error(403, "forbidden");
    }
}

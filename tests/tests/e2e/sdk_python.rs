//! The Python SDK: its template and a block that tries the rest of it, built by the real command line and called.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use blockbase_tests::{Admin, Answer, blockbase, on_both_engines, target_directory};
use serde_json::{Value, json};

/// A block for what the template does not show, in a module beside `block.py` as well.
const BLOCK: &str = r#"
import datetime, hashlib, hmac, os, random, secrets as tokens, time
from blockbase import HandlerError, action, config, data, http, log, secrets
import shapes

@action
def convert(input: shapes.Order, context):
    assert isinstance(input.lines[0], shapes.Line), input
    return {"order": input, "via": context.actor.via, "block": context.block}

@action
def refuse(input: dict):
    raise HandlerError(input["code"], "refused as asked", {"a": 1})

@action
def fail():
    print("before the fall")
    raise KeyError("the reason")

@action
def leave():
    raise SystemExit("left")

@action
def recurse():
    return recurse()

@action
def imports_late():
    import wave

@action
def missing():
    return http.get("https://example.com")

@action
def records(input: dict):
    made = data.create("task", {"title": "a"})
    others = data.create_many("task", [{"title": "b"}, {"title": "c"}])
    changed = data.update("task", made["id"], {"priority": 3})
    sum = data.aggregate("task", {"fn": "sum", "field": "priority"})
    gone = [data.delete("task", made["id"]), data.delete("task", made["id"]), data.delete_many("task", others)]
    batch = data.batch([{"op": "create", "object": "task", "values": {"title": "d"}}])
    page = data.query("task", {"sort": "title"})
    try:
        data.create("task", {"priority": 10})
        error = None
    except HandlerError as refused:
        error = [refused.code, refused.message, refused.details]
    return {"changed": changed["priority"], "sum": sum["value"], "gone": gone, "batch": len(batch), "after": data.get("task", made["id"]),
            "titles": [task["title"] for task in page["data"]], "total": page["pagination"]["totalCount"], "error": error}

@action
def world():
    log.info("a line", when=datetime.date(2024, 5, 1))
    return {
        "random": random.random(), "urandom": os.urandom(8).hex(), "token": tokens.token_hex(8),
        "now": time.time(), "hmac": hmac.new(b"key", b"body", hashlib.sha256).hexdigest(),
        "parsed": datetime.datetime.strptime("2024-05-01", "%Y-%m-%d"), "cheer": config.get()["cheer"],
    }
"#;

const SHAPES: &str = r#"
from dataclasses import dataclass
from typing import Annotated, Literal

@dataclass
class Line:
    product: str
    amount: Annotated[int, {"minimum": 1}] = 1

@dataclass
class Order:
    lines: list[Line]
    kind: Literal["new", "used"] = "new"
    note: str | None = None

    def __post_init__(self):
        if self.note == "":
            raise ValueError("a note says something")
"#;

fn manifest() -> Value {
    json!({
        "name": "trial", "version": "0.1.0",
        "requires": { "plugins": ["data", "config", "log"] },
        "permissions": { "data": [{ "resource": "task", "actions": ["create", "read", "update", "delete"] }] },
        "config": { "type": "object", "properties": { "cheer": { "type": "string", "default": "Well done!" } } },
    })
}

fn command(arguments: &[&str], directory: &Path) -> Output {
    Command::new(blockbase())
        .args(arguments)
        .arg(directory)
        // componentize-py is installed once for all runs.
        .env("XDG_CACHE_HOME", target_directory().join("cache"))
        .output()
        .expect("blockbase")
}

fn built(directory: &Path, name: &str) -> Vec<u8> {
    let output = command(&["block", "build"], directory);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(directory.join(format!("{name}.wasm"))).expect("a packed block")
}

/// The block of the template, and the one above; built once a test process.
async fn blocks() -> &'static (Vec<u8>, Vec<u8>) {
    static BUILT: OnceLock<(Vec<u8>, Vec<u8>)> = OnceLock::new();
    tokio::task::spawn_blocking(|| {
        BUILT.get_or_init(|| {
            let directory = tempfile::tempdir().expect("a directory");
            let template = directory.path().join("hello-py");
            let output = command(&["block", "new", "hello-py", "--language", "python"], &template);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let trial = directory.path().join("trial");
            std::fs::create_dir(&trial).expect("a directory");
            for (name, text) in [("block.py", BLOCK), ("shapes.py", SHAPES), ("block.json", &manifest().to_string())] {
                std::fs::write(trial.join(name), text).expect("a file");
            }
            (built(&template, "hello-py"), built(&trial, "trial"))
        })
    })
    .await
    .expect("built blocks")
}

async fn call(who: &Admin<'_>, action: &str, input: Value) -> Answer {
    let (block, action) = action.split_once('/').unwrap();
    who.post(&format!("/api/v1/blocks/{block}/actions/{action}"), input).await
}

/// What is there as soon as it is there.
async fn soon<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..400 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{what} does not come");
}

on_both_engines! {
    async fn a_block_made_from_the_python_template_acts_and_handles_events(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let installed = admin.install("", blocks().await.0.clone()).await;
        assert_eq!(installed.status, 201, "{}", installed.text);

        let greeted = call(&admin, "hello-py/greet", json!({ "name": "Zoë", "times": 2 })).await;
        assert_eq!(greeted.data(), json!({ "greetings": ["Hello, Zoë!", "Hello, Zoë!"] }));
        let bad = call(&admin, "hello-py/greet", json!({ "times": "2" })).await.expect_error(400, "validation_failed");
        assert_eq!(bad["issues"].as_array().unwrap().len(), 2);
        call(&admin, "hello-py/greet", json!({ "name": "Ada", "times": 11 })).await.expect_error(400, "invalid_request");

        let other = admin.make("task", json!({ "title": "Say nothing" })).await;
        let task = admin.make("task", json!({ "title": "Say hello" })).await;
        let done = async |id: &str| admin.get(&format!("/api/v1/data/task/{id}")).await.data()["done"] == true;
        soon("the effect of the event", async || done(&task).await.then_some(())).await;
        assert!(!done(&other).await);
    }

    async fn a_python_block_has_types_records_errors_and_a_real_world(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let installed = admin.install("", blocks().await.1.clone()).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        types_and_records(&admin).await;
        errors_and_lines(&admin).await;
        a_real_world(&admin).await;
    }
}

async fn types_and_records(admin: &Admin<'_>) {
    let order = call(admin, "trial/convert", json!({ "lines": [{ "product": "a" }], "note": null })).await.data();
    let expected = json!({ "lines": [{ "product": "a", "amount": 1 }], "kind": "new", "note": null });
    assert_eq!(order, json!({ "order": expected, "via": "rest", "block": "trial" }));
    let wrong = json!({ "lines": [{ "product": "a", "amount": 0 }], "kind": "broken" });
    let issues = call(admin, "trial/convert", wrong).await.expect_error(400, "validation_failed")["issues"].clone();
    let mut paths: Vec<&str> = issues.as_array().unwrap().iter().map(|issue| issue["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["/kind", "/lines/0/amount"]);
    // What the class checks itself is the caller's error too.
    let empty = call(admin, "trial/convert", json!({ "lines": [], "note": "" })).await.expect_error(400, "invalid_request");
    assert_eq!(empty["message"], "/: a note says something");

    let records = call(admin, "trial/records", json!({})).await.data();
    assert_eq!((&records["changed"], &records["sum"], &records["batch"]), (&json!(3), &json!(3), &json!(1)));
    assert_eq!(
        (&records["gone"][0], &records["gone"][1], records["gone"][2].as_array().unwrap().len()),
        (&json!(true), &json!(false), 2)
    );
    assert_eq!((&records["titles"], &records["total"], &records["after"]), (&json!(["d"]), &json!(1), &Value::Null));
    assert_eq!(records["error"][0], "validation_failed", "{records}");
}

async fn errors_and_lines(admin: &Admin<'_>) {
    for (code, status, shown) in [("not_found", 404, "not_found"), ("conflict", 409, "conflict"), ("odd", 500, "action_failed")] {
        let error = call(admin, "trial/refuse", json!({ "code": code })).await.expect_error(status, shown);
        assert_eq!(error["message"], "refused as asked");
    }
    for (action, message) in [
        ("fail", "'the reason'"),
        ("leave", "left"),
        ("recurse", "maximum recursion depth exceeded"),
        ("imports_late", "No module named 'wave'"),
        ("missing", "This block may not use `http`: add `http` to requires.plugins in block.json and build it again."),
    ] {
        let error = call(admin, &format!("trial/{action}"), json!({})).await.expect_error(500, "action_failed");
        assert!(error["message"].as_str().unwrap().starts_with(message), "{error}");
    }
    // A line that was printed, and the traceback with its source.
    let lines = soon("the log", async || {
        let lines = admin.get("/api/v1/blocks/trial/logs?limit=100").await.data();
        let lines = lines.as_array().unwrap().clone();
        lines.iter().any(|line| line["message"] == "before the fall").then_some(lines)
    })
    .await;
    let traceback = lines.iter().find(|line| line["message"] == "KeyError in a handler").expect("a traceback");
    assert_eq!(traceback["level"], "error");
    let text = traceback["fields"]["traceback"].as_str().unwrap();
    assert!(text.contains("block.py") && text.contains("raise KeyError(\"the reason\")"), "{text}");
}

async fn a_real_world(admin: &Admin<'_>) {
    let first = call(admin, "trial/world", json!({})).await.data();
    let second = call(admin, "trial/world", json!({})).await.data();
    for source in ["random", "urandom", "token"] {
        assert_ne!(first[source], second[source], "{source}");
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    assert!((first["now"].as_f64().unwrap() - now).abs() < 60.0, "{first}");
    assert_eq!(first["hmac"], "515aae133b435d4000956731f68ae5cf5eb85d4f0dc6a546d2bfcd3595ec1ae1");
    assert_eq!((&first["parsed"], &first["cheer"]), (&json!("2024-05-01T00:00:00"), &json!("Well done!")));
}

//! The Python SDK: the block of its template, and a module that tests the rest. The real command line builds it.

use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use blockbase_tests::{Admin, Answer, Server, blockbase, inspect, lock, made_once, on_both_engines, pack, target_directory};
use serde_json::{Value, json};

use crate::blocks::ahead;
use crate::cli_sdk::promises;

/// Handlers for functions that the template does not show, in a module beside `block.py`.
pub(crate) const TRIAL: &str = r#"
import datetime, hashlib, hmac, itertools, os, random, secrets as tokens, time
from blockbase import HandlerError, Response, action, config, data, hook, http, log
import shapes

own, chosen = random.Random(), random.Random(7)
calls = itertools.count(1)

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
    either = data.query("task", {"where": {"_or": [{"priority": 3}, {"title": "b"}]}, "sort": "title"})
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
            "either": [task["title"] for task in either["data"]], "titles": [task["title"] for task in page["data"]], "total": page["pagination"]["totalCount"], "error": error}

@action
def conditions():
    unfinished = {"done": False, "project.owner.name": {"ilike": "an"}}
    page = data.query("task", {"where": unfinished, "sort": "-created_at"})
    books = data.query("book", {"where": {"_not": {"lent": True}}})
    projects = data.query("project", {"where": {"task_by_project": {"some": {"done": True}}}})
    both = {"every": {"title": {"ilike": "a"}}, "none": {"done": True}}
    idle = data.query("project", {"where": {"task_by_project": both}})
    counted = data.aggregate("task", {"fn": "count", "where": {"project.owner.name": "Ann"}})
    return {"open": [task["title"] for task in page["data"]], "books": [book["title"] for book in books["data"]],
            "projects": [project["name"] for project in projects["data"]],
            "idle": [project["name"] for project in idle["data"]], "counted": counted["value"]}

@hook
def signed(request, context):
    expected = hmac.new(b"key", request.body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected, request.headers.get("X-Signature", "")):
        return Response(401, {"x-why": "signature"}, "no")
    if request.query == "fail":
        raise ValueError("inside")
    return None

@action
def world():
    log.info("a line", when=datetime.date(2024, 5, 1))
    return {
        "random": random.random(), "urandom": os.urandom(8).hex(), "token": tokens.token_hex(8),
        "own": own.random(), "chosen": chosen.random() == random.Random(7).random(), "calls": next(calls),
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

/// The template's manifest, with the keys that the further handlers need.
fn manifest(template: &str) -> Value {
    let mut manifest: Value = serde_json::from_str(template).expect("JSON");
    manifest["requires"]["plugins"] = json!(["data", "config", "log"]);
    manifest["permissions"]["data"] = json!([
        { "resource": "task", "actions": ["create", "read", "update", "delete"] },
        { "resource": "project", "actions": ["read"] },
        { "resource": "person", "actions": ["read"] },
        { "resource": "book", "actions": ["read"] },
    ]);
    manifest["config"] = json!({ "type": "object", "properties": { "cheer": { "type": "string", "default": "Well done!" } } });
    manifest
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

fn succeed(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The packed block. It is built once for each run.
async fn block() -> Vec<u8> {
    tokio::task::spawn_blocking(|| {
        made_once("hello-py", || {
            let parent = tempfile::tempdir().expect("a directory");
            let directory = parent.path().join("hello-py");
            let read = |name: &str| std::fs::read_to_string(directory.join(name)).expect("a file");
            let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).expect("a file");
            succeed(&command(&["block", "new", "hello-py", "--language", "python"], &directory));
            write("block.py", &format!("{}\nimport trial\n", read("block.py")));
            write("trial.py", TRIAL);
            write("shapes.py", SHAPES);
            write("block.json", &manifest(&read("block.json")).to_string());
            succeed(&command(&["block", "build"], &directory));
            std::fs::read(directory.join("hello-py.wasm")).expect("a packed block")
        })
    })
    .await
    .expect("a built block")
}

async fn call(who: &Admin<'_>, action: &str, input: Value) -> Answer {
    who.post(&format!("/api/v1/blocks/hello-py/actions/{action}"), input).await
}

/// Waits until `look` finds something, and returns it.
async fn soon<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} does not come");
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

on_both_engines! {
    #[ignore = "long: a toolchain"]
    async fn a_block_in_python_does_what_its_sdk_promises(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        promises::define_related(&admin).await;
        install(&admin, "", block().await, 201).await;
        the_template(&server, &admin).await;
        types_and_records(&admin).await;
        promises::conditions(&admin, "hello-py").await;
        errors_and_lines(&admin).await;
        a_real_world(&admin).await;
        signatures_of_hooks(&server, &admin).await;
        a_reused_instance(&admin).await;
    }
}

/// Uploads the block, and expects a status.
async fn install(admin: &Admin<'_>, query: &str, file: Vec<u8>, status: u16) {
    // A Python component takes seconds to compile, and longer if two are compiled at a time.
    let _turn = tokio::task::spawn_blocking(|| lock("compiling-python")).await.unwrap();
    let request = admin.request("POST", &format!("/api/v1/blocks{query}")).header("content-type", "application/wasm");
    let installed = admin.server.send(request.body(file).timeout(Duration::from_secs(240))).await;
    assert_eq!(installed.status, status, "{}", installed.text);
}

async fn the_template(server: &Server, admin: &Admin<'_>) {
    let greeted = call(admin, "greet", json!({ "name": "Zoë", "times": 2 })).await;
    assert_eq!(greeted.data(), json!({ "greetings": ["Hello, Zoë!", "Hello, Zoë!"] }));
    let bad = call(admin, "greet", json!({ "times": "2" })).await.expect_error(400, "validation_failed");
    assert_eq!(bad["issues"].as_array().unwrap().len(), 2);
    call(admin, "greet", json!({ "name": "Ada", "times": 11 })).await.expect_error(400, "invalid_request");

    let ping = server.request("POST", "/api/v1/hooks/hello-py/ping").header("user-agent", "a third party").body("raw bytes");
    let answer = server.send(ping).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json(), json!({ "method": "POST", "agent": "a third party", "body": "raw bytes" }));

    let other = admin.make("task", json!({ "title": "Say nothing" })).await;
    let task = admin.make("task", json!({ "title": "Say hello" })).await;
    let done = async |id: &str| admin.get(&format!("/api/v1/data/task/{id}")).await.data()["done"] == true;
    soon("the effect of the event", async || done(&task).await.then_some(())).await;
    assert!(!done(&other).await);
    // The handler accepts a record without a title.
    admin.patch("/api/v1/objects/task/fields/title", json!({ "required": false })).await.data();
    let untitled = admin.make("task", json!({})).await;
    let deliveries = "/api/v1/events/deliveries?consumer=hello-py:tasks";
    let all = soon("three settled deliveries", async || {
        let entries = admin.get(deliveries).await.data();
        let all = entries.as_array().unwrap().clone();
        (all.len() == 3 && all.iter().all(|entry| entry["status"] != "pending")).then_some(all)
    });
    assert!(all.await.iter().all(|entry| entry["status"] == "delivered"));
    for id in [other, task, untitled] {
        assert_eq!(admin.delete(&format!("/api/v1/data/task/{id}")).await.status, 204);
    }
}

async fn types_and_records(admin: &Admin<'_>) {
    let order = call(admin, "convert", json!({ "lines": [{ "product": "a" }], "note": null })).await.data();
    let expected = json!({ "lines": [{ "product": "a", "amount": 1 }], "kind": "new", "note": null });
    assert_eq!(order, json!({ "order": expected, "via": "session", "block": "hello-py" }));
    let wrong = json!({ "lines": [{ "product": "a", "amount": 0 }], "kind": "broken" });
    let issues = call(admin, "convert", wrong).await.expect_error(400, "validation_failed")["issues"].clone();
    let mut paths: Vec<&str> = issues.as_array().unwrap().iter().map(|issue| issue["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["/kind", "/lines/0/amount"]);
    // If the input's dataclass raises an error itself, it is also reported as the caller's error.
    let empty = call(admin, "convert", json!({ "lines": [], "note": "" })).await.expect_error(400, "invalid_request");
    assert_eq!(empty["message"], "/: a note says something");

    let records = call(admin, "records", json!({})).await.data();
    assert_eq!((&records["changed"], &records["sum"], &records["batch"]), (&json!(3), &json!(3), &json!(1)));
    assert_eq!(
        (&records["gone"][0], &records["gone"][1], records["gone"][2].as_array().unwrap().len()),
        (&json!(true), &json!(false), 2)
    );
    assert_eq!(records["either"], json!(["a", "b"]));
    assert_eq!((&records["titles"], &records["total"], &records["after"]), (&json!(["d"]), &json!(1), &Value::Null));
    assert_eq!(records["error"][0], "CONSTRAINT_VIOLATION", "{records}");
}

async fn errors_and_lines(admin: &Admin<'_>) {
    for (code, status, shown) in [("not_found", 404, "not_found"), ("conflict", 409, "conflict"), ("odd", 500, "action_failed")] {
        let error = call(admin, "refuse", json!({ "code": code })).await.expect_error(status, shown);
        assert_eq!(error["message"], "refused as asked");
    }
    for (action, message) in [
        ("fail", "'the reason'"),
        ("leave", "left"),
        ("recurse", "maximum recursion depth exceeded"),
        ("imports_late", "No module named 'wave'"),
        ("missing", "This block may not use `http`: add `http` to requires.plugins in block.json and build it again."),
    ] {
        let error = call(admin, action, json!({})).await.expect_error(500, "action_failed");
        assert!(error["message"].as_str().unwrap().starts_with(message), "{error}");
    }
    // The log has a printed line, and the traceback with its source.
    let lines = soon("the log", async || {
        let lines = admin.get("/api/v1/blocks/hello-py/logs?limit=100").await.data();
        let lines = lines.as_array().unwrap().clone();
        // Lines of several calls are stored in batches, so the test also waits for the last line.
        let is_there = |message: &str| lines.iter().any(|line| line["message"] == message);
        (is_there("before the fall") && is_there("KeyError in a handler")).then_some(lines)
    })
    .await;
    let traceback = lines.iter().find(|line| line["message"] == "KeyError in a handler").expect("a traceback");
    assert_eq!(traceback["level"], "error");
    let text = traceback["fields"]["traceback"].as_str().unwrap();
    assert!(text.contains("File \"trial.py\"") && text.contains("raise KeyError(\"the reason\")"), "{text}");
}

/// The members of the answer of `world` that are random.
const SOURCES: [&str; 4] = ["random", "urandom", "token", "own"];

async fn a_real_world(admin: &Admin<'_>) {
    let path = "/api/v1/blocks/hello-py/actions/world";
    let first = promises::nothing_repeats(admin, path, &SOURCES).await;
    assert_eq!(first["chosen"], true, "a generator with a seed of the author's keeps its numbers");
    assert_eq!(first["calls"], 1, "each call begins with the memory of the build");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    assert!((first["now"].as_f64().unwrap() - now).abs() < 60.0, "{first}");
    assert_eq!(first["hmac"], "515aae133b435d4000956731f68ae5cf5eb85d4f0dc6a546d2bfcd3595ec1ae1");
    assert_eq!((&first["parsed"], &first["cheer"]), (&json!("2024-05-01T00:00:00"), &json!("Well done!")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: a toolchain"]
async fn calls_of_a_hot_block_get_instances_that_were_made_ahead() {
    let server = ahead::server().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    promises::define_related(&admin).await;
    install(&admin, "", block().await, 201).await;
    let mut drawn = HashSet::new();
    ahead::are_made_ahead(&admin, "hello-py", async || {
        let answer = call(&admin, "world", json!({})).await.data();
        assert_eq!((&answer["calls"], &answer["chosen"]), (&json!(1), &json!(true)));
        for member in SOURCES {
            assert!(drawn.insert((member, answer[member].to_string())), "{member} repeats: {answer}");
        }
    })
    .await;
}

/// With reuse, variables keep their values, and no number is drawn twice either.
async fn a_reused_instance(admin: &Admin<'_>) {
    let mut manifest = inspect(block().await).await;
    manifest["version"] = json!("100.0.0");
    manifest["instances"] = json!({ "reuse": { "calls": 1000, "seconds": 300 } });
    let asking = pack(block().await, manifest).await.unwrap();
    install(admin, "?upgrade=true&allowNewPermissions=true", asking, 200).await;
    let mut drawn = HashSet::new();
    for calls in 1..=promises::DRAWS {
        let answer = call(admin, "world", json!({})).await.data();
        assert_eq!(answer["calls"], calls, "the instance is kept");
        for member in SOURCES {
            assert!(drawn.insert((member, answer[member].to_string())), "{member} repeats: {answer}");
        }
    }
}

async fn signatures_of_hooks(server: &Server, admin: &Admin<'_>) {
    let expected = call(admin, "world", json!({})).await.data()["hmac"].as_str().unwrap().to_owned();
    let send = async |query: &str, signature: &str| {
        let request = server.request("POST", &format!("/api/v1/hooks/hello-py/signed{query}"));
        server.send(request.header("x-signature", signature).body("body")).await
    };
    let wrong = send("", "0000").await;
    assert_eq!((wrong.status, wrong.text.as_str(), &wrong.headers["x-why"]), (401, "no", &"signature".parse().unwrap()));
    assert_eq!(send("", &expected).await.json(), json!({ "received": true }));
    let failed = send("?fail", &expected).await;
    assert!(failed.status == 500 && !failed.text.contains("inside"), "{}", failed.text);
}

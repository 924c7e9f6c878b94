//! The promises of every SDK: one test body for the block of its template, and one for a block that uses the other functions of
//! the SDK.

use std::collections::HashSet;

use blockbase_tests::{Admin, Answer, Engine, Receiver, Reply, Server, ServerBuilder, inspect, pack, until};
use serde_json::{Value, json};

use crate::cli_sdk::{js, python, rust};

/// The manifest of the block that `promises` calls. The rest of it comes from the code.
pub(crate) const PROBE_MANIFEST: &str = include_str!("probe/block.json");

/// Tests the block of a template: an action, a hook, a subscription.
pub(crate) async fn template(server: &Server, name: &str, file: Vec<u8>) {
    let admin = server.admin().await;
    admin.make_task_object().await;
    let installed = admin.install("", file).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    let action = format!("/api/v1/blocks/{name}/actions/greet");
    let greeted = admin.post(&action, json!({ "name": "Ada" })).await;
    assert_eq!((greeted.status, greeted.data()), (200, json!({ "message": "Hello, Ada!" })));
    for input in [json!({}), json!({ "name": 7 }), json!({ "name": "Ada", "colour": 1 })] {
        admin.post(&action, input).await.expect_error(400, "validation_failed");
    }
    admin.patch(&format!("/api/v1/blocks/{name}"), json!({ "config": { "greeting": "Hi" } })).await.data();
    assert_eq!(admin.post(&action, json!({ "name": "Zoë" })).await.data()["message"], "Hi, Zoë!");

    let request = server.request("PUT", &format!("/api/v1/hooks/{name}/ping")).body("Zoë");
    let ponged = server.send(request).await;
    assert_eq!((ponged.status, ponged.json()), (200, json!({ "method": "PUT", "bytes": 4 })));

    admin.make("task", json!({ "title": "a" })).await;
    until("the event in the block's log", async || {
        let lines = admin.get(&format!("/api/v1/blocks/{name}/logs")).await.data();
        lines.as_array().unwrap().iter().any(|line| line["message"] == "data.task.created")
    })
    .await;
}

/// Tests that the handler of a template's block accepts events of all records of an object `task`. `events` is the number of
/// events that it gets in this test.
pub(crate) async fn any_record(server: &Server, consumer: &str, file: Vec<u8>, events: usize) {
    let admin = server.admin().await;
    admin.define("task", json!([{ "name": "name", "type": "text" }])).await;
    let installed = admin.install("", file).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    // First comes a record without the field `title`, then a title that is a number, then a title whose space must be kept.
    let id = admin.make("task", json!({ "name": "a" })).await;
    admin.patch(&format!("/api/v1/data/task/{id}"), json!({ "name": "b" })).await.data();
    assert_eq!(admin.delete(&format!("/api/v1/data/task/{id}")).await.status, 204);
    for (kind, title) in [(json!({ "type": "integer" }), json!(7)), (json!({ "type": "text", "pattern": "^ " }), json!(" a "))] {
        let mut field = kind;
        field["name"] = json!("title");
        assert_eq!(admin.post("/api/v1/objects/task/fields", field).await.status, 201);
        admin.make("task", json!({ "title": title })).await;
        admin.make("task", json!({ "title": null })).await;
        assert_eq!(admin.delete("/api/v1/objects/task/fields/title").await.status, 204);
    }
    let of_block = format!("/api/v1/events/deliveries?pageSize=100&consumer={consumer}");
    let mut entries = Value::Null;
    until("every delivery is settled", async || {
        entries = admin.get(&of_block).await.data();
        let all = entries.as_array().unwrap();
        all.len() == events && all.iter().all(|entry| entry["status"] != "pending")
    })
    .await;
    let all = entries.as_array().unwrap();
    assert!(all.iter().all(|entry| entry["status"] == "delivered" && entry["attempts"] == 1), "{all:#?}");
}

/// The number of calls whose random numbers are compared.
pub(crate) const DRAWS: usize = 8;

/// Tests that each of the named members of an action's answer differs in every call. Each call has an instance of its own. Half of
/// the calls run at the same time, and the others one after the other, so that they may get the memory of an earlier one. Returns
/// the last answer.
pub(crate) async fn nothing_repeats(admin: &Admin<'_>, path: &str, members: &[&str]) -> Value {
    let draw = async || admin.post(path, json!({})).await.data();
    let mut drawn = futures_util::future::join_all((0..DRAWS / 2).map(|_| draw())).await;
    while drawn.len() < DRAWS {
        drawn.push(draw().await);
    }
    for member in members {
        let values: HashSet<String> = drawn.iter().map(|answer| answer[*member].to_string()).collect();
        assert!(values.len() == DRAWS && !values.contains("null"), "{member} repeats: {drawn:#?}");
    }
    drawn.pop().expect("an answer")
}

/// Defines what the conditions of the documents name beside `task`: its `project`, the project's owner, and a `book`.
pub(crate) async fn define_related(admin: &Admin<'_>) {
    admin.define("person", json!([{ "name": "name", "type": "text" }])).await;
    admin.define("project", json!([{ "name": "name", "type": "text" }])).await;
    admin.define("book", json!([{ "name": "title", "type": "text" }, { "name": "lent", "type": "boolean" }])).await;
    for (name, source, target) in [("owner", "project", "person"), ("project", "task", "project")] {
        admin.relate(json!({ "name": name, "kind": "many_to_one", "source": source, "target": target })).await;
    }
}

/// Tests the conditions of a block's action `conditions`: those of the documents, one with `some`, one with `every` and `none`,
/// and one of an aggregate. The objects of [`define_related`] have to be there.
pub(crate) async fn conditions(admin: &Admin<'_>, block: &str) {
    let ann = admin.make("person", json!({ "name": "Ann" })).await;
    let bob = admin.make("person", json!({ "name": "Bob" })).await;
    let moon = admin.make("project", json!({ "name": "Moon", "owner_id": ann })).await;
    let mars = admin.make("project", json!({ "name": "Mars", "owner_id": bob })).await;
    // It has no tasks. Only this project meets both `every` and `none`: each of the others meets one of them.
    admin.make("project", json!({ "name": "Venus" })).await;
    for (title, done, project) in [("Land", false, &moon), ("Launch", true, &moon), ("Dig", false, &mars)] {
        admin.make("task", json!({ "title": title, "done": done, "project_id": project })).await;
    }
    admin.make("task", json!({ "title": "Rest", "done": true })).await;
    for (title, lent) in [("Solaris", json!(true)), ("Atlas", Value::Null)] {
        admin.make("book", json!({ "title": title, "lent": lent })).await;
    }
    let found = admin.post(&format!("/api/v1/blocks/{block}/actions/conditions"), json!({})).await;
    assert_eq!(found.status, 200, "{}", found.text);
    let expected = json!({ "open": ["Land"], "books": ["Atlas"], "projects": ["Moon"], "idle": ["Venus"], "counted": 2 });
    assert_eq!(found.data(), expected);
}

/// Tests the same with a block that reads nothing else. Its manifest gets the permissions.
pub(crate) async fn conditions_in_a_new_block(server: &Server, name: &str, file: Vec<u8>) {
    let admin = server.admin().await;
    admin.make_task_object().await;
    define_related(&admin).await;
    let mut manifest = inspect(file.clone()).await;
    let read = |object: &str| json!({ "resource": object, "actions": ["read"] });
    manifest["permissions"]["data"] = json!([read("task"), read("project"), read("person"), read("book")]);
    let installed = admin.install("", pack(file, manifest).await.expect("a packed block")).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    conditions(&admin, name).await;
}

/// For each language: its name in the table of docs/filter.md, the README of its SDK, and the code of a block of these tests.
const LANGUAGES: [(&str, &str, &str); 5] = [
    ("Rust", include_str!("../../../../sdk/rust/README.md"), rust::SURROUNDINGS),
    ("TypeScript, JavaScript", include_str!("../../../../sdk/js/README.md"), js::MORE),
    ("Python", include_str!("../../../../sdk/python/README.md"), python::TRIAL),
    ("Go", include_str!("../../../../sdk/go/README.md"), include_str!("probe/main.go")),
    ("C", include_str!("../../../../sdk/c/README.md"), include_str!("probe/block.c")),
];

/// The text without the indentation of its lines.
fn unindented(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

/// The blocks of these tests contain the conditions of the documents word for word. So they compile and find their records.
#[test]
fn the_conditions_of_the_documents_are_in_the_blocks() {
    let page = include_str!("../../../../docs/filter.md");
    let (_, table) = page.split_once("| language | |\n|---|---|\n").expect("the table of languages");
    let (table, _) = table.split_once("\n\n").expect("its end");
    assert_eq!(table.lines().count(), LANGUAGES.len(), "{table}");
    for (language, readme, block) in LANGUAGES {
        let row = table.lines().find(|row| row.starts_with(&format!("| {language} | `"))).expect(language);
        let (_, snippet) = readme.split_once("([docs/filter.md](../../docs/filter.md)):\n\n```").expect("a snippet");
        let (_, snippet) = snippet.split_once('\n').expect("its first line");
        let (snippet, _) = snippet.split_once("\n```").expect("its end");
        let block = unindented(block);
        for code in [row.split('`').nth(1).expect("code"), &unindented(snippet)] {
            assert!(code.contains("where") && block.contains(code), "{language}: {code}");
        }
    }
}

async fn call(admin: &Admin<'_>, action: &str, input: Value) -> Answer {
    admin.post(&format!("/api/v1/blocks/probe/actions/{action}"), input).await
}

/// Tests a block named `probe`, whose actions use the functions of the SDK. `sources` are the members of the answer of `chance`
/// that are random. Returns the message about a handler that crashed.
pub(crate) async fn promises(engine: Engine, file: Vec<u8>, sources: &[&str]) -> String {
    let server = &ServerBuilder::new(engine).env("SVC_ALLOW_PRIVATE_NETWORK", "true").start().await;
    let receiver = Receiver::start().await;
    receiver.answer(|_, _| Reply::Text(418, "short and stout".to_owned()));
    // The manifest has to name the receiver, whose address was not known earlier.
    let mut manifest = inspect(file.clone()).await;
    manifest["permissions"]["http"] = json!([receiver.url.trim_end_matches("/hook")]);
    let file = pack(file, manifest).await.expect("a packed block");
    let admin = server.admin().await;
    admin.make_task_object().await;
    define_related(&admin).await;
    admin
        .define("seen", json!([{ "name": "source", "type": "text", "isUnique": true }, { "name": "title", "type": "text" }]))
        .await;
    let installed = admin.install("", file).await;
    assert_eq!(installed.status, 201, "{}", installed.text);

    // The values are returned unchanged: characters beyond ASCII, a number beyond 2^53, and null.
    let input =
        json!({ "text": "Zoë \u{1f980} <&>", "large": 12_345_678_901_234_567_u64, "half": 0.5, "list": [1, null, { "a": [] }] });
    let echoed = call(&admin, "echo", input.clone()).await;
    assert_eq!((echoed.status, echoed.data()), (200, input));

    for (code, status) in
        [("not_found", 404), ("invalid_request", 400), ("forbidden", 403), ("conflict", 409), ("unavailable", 503)]
    {
        let error = call(&admin, "refuse", json!({ "code": code, "message": "as asked" })).await.expect_error(status, code);
        assert_eq!(error["message"], "refused: as asked");
    }
    let error = call(&admin, "refuse", json!({ "code": "other", "message": "x" })).await.expect_error(500, "action_failed");
    assert_eq!(error["message"], "refused: x");
    let error = call(&admin, "fail", json!({})).await.expect_error(500, "action_failed");
    assert_eq!(error["message"], "it broke");
    let crash = call(&admin, "crash", json!({})).await.expect_error(500, "action_failed");

    call(&admin, "tidy", json!({ "titles": "a" })).await.expect_error(400, "validation_failed");
    let tidied = call(&admin, "tidy", json!({ "titles": ["a", "b", "c"] })).await;
    assert_eq!(tidied.status, 200, "{}", tidied.text);
    let expected = json!({
        "done": true, "open": 2, "either": 2, "all": 3, "deleted": 3, "gone": "not_found", "wrong": "CONSTRAINT_VIOLATION",
        "mark": "!", "block": "probe", "via": "session", "hasTime": true,
    });
    assert_eq!(tidied.data(), expected);
    until("the line with its fields", async || {
        let lines = admin.get("/api/v1/blocks/probe/logs").await.data();
        lines.as_array().unwrap().iter().any(|line| line["message"] == "tidied" && line["fields"]["open"] == 2)
    })
    .await;

    conditions(&admin, "probe").await;

    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let drawn = nothing_repeats(&admin, "/api/v1/blocks/probe/actions/chance", sources).await;
    assert!(drawn["seconds"].as_u64().unwrap().abs_diff(now) < 60, "{drawn}");

    // First test case 2 of RFC 4231. Then a key and a text that are longer than a block of the hash.
    let signed = call(&admin, "sign", json!({ "key": "Jefe", "text": "what do ya want for nothing?" })).await.data();
    assert_eq!(signed, json!({ "hmac": "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", "fits": true }));
    let signed = call(&admin, "sign", json!({ "key": "k".repeat(100), "text": "t".repeat(200) })).await.data();
    assert_eq!(signed["hmac"], "898ef861b65d9354dfca2f712f75fc6ce89730753aa58b053dbde13182aafa40");

    let stored = admin.post("/api/v1/blocks/probe/secrets", json!({ "name": "HOOK_KEY", "value": "Jefe" })).await;
    assert!(stored.status < 300, "{}", stored.text);
    let hook = "/api/v1/hooks/probe/signed_only?a=1";
    let signature = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    for (body, signature, status, text) in [
        ("what do ya want for nothing?", Some(signature), 201, r#"{"method":"POST","query":"a=1"}"#),
        ("what do you want for nothing?", Some(signature), 401, "wrong signature"),
        ("what do ya want for nothing?", Some("5bdc"), 401, "wrong signature"),
        ("what do ya want for nothing?", None, 401, "wrong signature"),
    ] {
        let mut request = server.request("POST", hook).body(body);
        if let Some(signature) = signature {
            request = request.header("x-signature", signature);
        }
        let answer = server.send(request).await;
        assert_eq!((answer.status, answer.text.as_str()), (status, text));
    }
    let silent = server.call("POST", "/api/v1/hooks/probe/silent", None).await;
    assert_eq!((silent.status, silent.json()), (200, json!({ "received": true })));
    let fetched = call(&admin, "fetch", json!({ "url": receiver.url })).await;
    assert_eq!((fetched.status, fetched.data()), (200, json!({ "status": 418, "body": "short and stout" })));
    let received = receiver.received();
    assert_eq!((received[0].header("x-from"), &received[0].body[..]), ("probe", &b"hello"[..]));
    // A host that the manifest does not name is refused. The handler gets the refusal as an error.
    let refused = call(&admin, "fetch", json!({ "url": "https://example.com/" })).await;
    refused.expect_error(403, "forbidden");

    let task = admin.make("task", json!({ "title": "watched" })).await;
    until("the handler's record", async || {
        let seen = admin.get(&format!("/api/v1/data/seen?source={task}")).await.data();
        seen.as_array().unwrap().iter().any(|seen| seen["title"] == "watched")
    })
    .await;
    crash["message"].as_str().unwrap().to_owned()
}

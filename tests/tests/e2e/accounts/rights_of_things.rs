//! Things have the rights that their makers have now, and a caller who changes a thing needs the rights of that thing. Things are
//! webhooks, subscriptions, tasks, blocks, and changes of the schema.

use std::path::{Path, PathBuf};
use std::time::Duration;

use blockbase_tests::{
    Admin, Answer, Engine, Receiver, Reply, Server, ServerBuilder, example_block, on_both_engines, pack, within,
};
use serde_json::{Value, json};

use crate::accounts::roles::key;
use crate::events::webhooks::{ledger, ledger_until, make, quick};

/// A user with a role of the same name and these grants. Returns a client, and the user's id.
async fn user<'a>(admin: &Admin<'a>, name: &str, grants: Value) -> (Admin<'a>, String) {
    assert_eq!(admin.post("/api/v1/roles", json!({ "name": name, "permissions": grants })).await.status, 201);
    let user = admin.server.with_token(admin.server.sign_up(name).await);
    let id = user.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
    assert_eq!(admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": name })).await.status, 200);
    (user, id)
}

async fn grant(admin: &Admin<'_>, role: &str, grants: Value) {
    let changed = admin.patch(&format!("/api/v1/roles/{role}"), json!({ "permissions": grants })).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
}

fn right(resource: &str, actions: &[&str]) -> Value {
    json!({ "resource": resource, "actions": actions })
}

fn own(resource: &str, actions: &[&str]) -> Value {
    json!({ "resource": resource, "actions": actions, "rowPolicy": "own" })
}

/// The payloads of a topic's events.
async fn told(server: &Server, topic: &str) -> Vec<Value> {
    let rows = server.sql(&format!("SELECT payload FROM svc_events WHERE topic = '{topic}' ORDER BY seq")).await;
    rows.iter().map(|row| serde_json::from_str(&row[0]).unwrap()).collect()
}

/// The files below a directory that contain these bytes.
fn files_with(directory: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let with = |path: PathBuf| match path.is_dir() {
        true => files_with(&path, bytes),
        false => {
            let content = std::fs::read(&path).unwrap_or_default();
            if content.windows(bytes.len()).any(|window| window == bytes) { vec![path] } else { Vec::new() }
        }
    };
    entries.flat_map(with).collect()
}

fn reason(answer: &Answer) -> Value {
    answer.data()["suspended"]["reason"].clone()
}

on_both_engines! {
    async fn a_webhook_stops_when_its_maker_loses_the_read_and_goes_on_when_adopted(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        let strong = json!([right("webhooks", &["manage"]), right("task", &["read"])]);
        let (editor, editor_id) = user(&admin, "editor", strong.clone()).await;
        let (id, _) = make(&editor, json!({ "url": receiver.url, "topics": ["data.task.#"] })).await;
        let path = format!("/api/v1/webhooks/{id}");
        admin.make("task", json!({ "title": "seen" })).await;
        receiver.wait_for(1).await;
        assert_eq!(admin.get(&path).await.data()["suspended"], Value::Null);

        grant(&admin, "editor", json!([right("webhooks", &["manage"])])).await;
        admin.make("task", json!({ "title": "not for them" })).await;
        let dead = ledger_until(&admin, "dead=true", |entries| entries.len() == 1).await.remove(0);
        assert!(dead["error"].as_str().unwrap().contains("suspended"), "{dead}");
        assert_eq!(receiver.count(), 1);
        let shown = admin.get(&path).await.data();
        assert_eq!((&shown["suspended"]["reason"], shown["suspended"]["since"].is_string()), (&json!("rights_lost"), true));
        assert_eq!(admin.get("/api/v1/webhooks").await.data()[0]["suspended"], shown["suspended"]);
        let events = told(&server, "webhooks.suspended").await;
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!((&events[0]["id"], &events[0]["reason"]), (&json!(id), &json!("rights_lost")));
        let retry = json!({ "eventId": dead["eventId"], "consumer": dead["consumer"] });
        let refused = admin.post("/api/v1/events/deliveries/retry", retry.clone()).await.expect_error(409, "conflict");
        assert!(refused["message"].as_str().unwrap().contains("suspended"), "{refused}");
        admin.post(&format!("{path}/test"), json!({})).await.expect_error(409, "conflict");

        // The webhook continues by itself when its maker has the right again. A caller without the right cannot adopt it.
        editor.post(&format!("{path}/adopt"), json!({})).await.expect_error(403, "forbidden");
        assert_eq!(reason(&admin.get(&path).await), "rights_lost");
        grant(&admin, "editor", strong).await;
        assert_eq!(admin.get(&path).await.data()["suspended"], Value::Null);
        admin.make("task", json!({ "title": "seen again" })).await;
        receiver.wait_for(2).await;

        // The maker is banned, and the ban is lifted.
        assert_eq!(admin.patch(&format!("/api/v1/users/{editor_id}"), json!({ "banned": true })).await.status, 200);
        assert_eq!(reason(&admin.get(&path).await), "maker_banned");
        assert_eq!(told(&server, "webhooks.suspended").await.len(), 2);
        assert_eq!(admin.patch(&format!("/api/v1/users/{editor_id}"), json!({ "banned": false })).await.status, 200);
        assert_eq!(admin.get(&path).await.data()["suspended"], Value::Null);

        // After the adoption, the admin is the webhook's maker, also after the editor is deleted.
        assert_eq!(admin.post(&format!("{path}/adopt"), json!({})).await.data()["id"], json!(id));
        assert_eq!(admin.delete(&format!("/api/v1/users/{editor_id}")).await.status, 204);
        assert_eq!(admin.post("/api/v1/events/deliveries/retry", retry).await.data()["status"], "pending");
        receiver.wait_for(3).await;
        assert_eq!(admin.get(&path).await.data()["suspended"], Value::Null);
        admin.post("/api/v1/webhooks/none/adopt", json!({})).await.expect_error(404, "not_found");
    }

    async fn a_subscription_copies_nothing_that_its_maker_may_not_read_or_write(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("copy", json!([{ "name": "record", "type": "json" }])).await;
        let events = right("events", &["manage"]);
        let whole = json!([events, right("task", &["read"]), right("copy", &["create"])]);
        let (keeper, _) = user(&admin, "keeper", whole.clone()).await;
        let config = json!({ "object": "copy", "map": { "record": "payload.after" } });
        let body = json!({ "event": "data.task.#", "consumer": "copies", "handler": "persist_event", "config": config });
        assert_eq!(keeper.post("/api/v1/events/subscriptions", body).await.status, 201);
        let copies = async || admin.get("/api/v1/data/copy").await.json()["pagination"]["totalCount"].as_i64().unwrap();
        let suspended = async || admin.get("/api/v1/events/subscriptions").await.data()[0]["suspended"].clone();
        admin.make("task", json!({ "title": "a" })).await;
        ledger_until(&admin, "status=delivered", |entries| entries.len() == 1).await;
        assert_eq!((copies().await, suspended().await), (1, Value::Null));

        for (number, lacking) in [json!([events, right("copy", &["create"])]), json!([events, right("task", &["read"])])].into_iter().enumerate() {
            grant(&admin, "keeper", lacking).await;
            admin.make("task", json!({ "title": "b" })).await;
            let dead = ledger_until(&admin, "dead=true", |entries| entries.len() == number + 1).await.remove(0);
            assert!(dead["error"].as_str().unwrap().contains("suspended"), "{dead}");
            assert_eq!((copies().await, suspended().await["reason"].clone()), (1, json!("rights_lost")));
            keeper.post("/api/v1/events/subscriptions/copies/adopt", json!({})).await.expect_error(403, "forbidden");
            keeper.delete("/api/v1/events/subscriptions/copies").await.expect_error(403, "forbidden");
            // When the maker has the rights again, the subscription continues.
            grant(&admin, "keeper", whole.clone()).await;
            assert_eq!(suspended().await, Value::Null);
        }
        assert_eq!(told(&server, "subscriptions.suspended").await.iter().filter(|event| event["id"] == "copies").count(), 2);
        grant(&admin, "keeper", json!([])).await;
        assert_eq!(suspended().await["reason"], "rights_lost");
        assert_eq!(admin.post("/api/v1/events/subscriptions/copies/adopt", json!({})).await.data()["suspended"], Value::Null);
        for entry in ledger(&admin, "dead=true").await {
            let retry = json!({ "eventId": entry["eventId"], "consumer": "copies" });
            assert_eq!(admin.post("/api/v1/events/deliveries/retry", retry).await.status, 200);
        }
        ledger_until(&admin, "status=delivered", |entries| entries.len() == 3).await;
        assert_eq!(copies().await, 3);
    }

    async fn a_block_does_what_whoever_consented_may_do_now(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let task = admin.make("task", json!({ "title": "a" })).await;
        let strong = json!([right("blocks", &["manage"]), right("task", &["manage"])]);
        let (installer, id) = user(&admin, "installer", strong.clone()).await;
        let installed = installer.install("", example_block("tasks").await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        assert_eq!(installed.data()["suspended"], Value::Null);
        let call = async || {
            server.sql("UPDATE task SET done = FALSE").await;
            admin.post("/api/v1/blocks/tasks/actions/complete", json!({ "id": task })).await
        };
        assert_eq!(call().await.status, 200);

        // The admin who calls has the right, but the block does not.
        grant(&admin, "installer", json!([right("blocks", &["manage"]), right("task", &["read"])])).await;
        let refused = call().await.expect_error(403, "forbidden");
        assert!(refused["message"].as_str().unwrap().contains("its maker has lost this permission"), "{refused}");
        assert_eq!(admin.get(&format!("/api/v1/data/task/{task}")).await.data()["done"], false);
        assert_eq!(reason(&admin.get("/api/v1/blocks/tasks").await), "rights_lost");
        assert_eq!(told(&server, "blocks.suspended").await.len(), 1);
        installer.post("/api/v1/blocks/tasks/adopt", json!({})).await.expect_error(403, "forbidden");
        grant(&admin, "installer", strong).await;
        assert_eq!(call().await.status, 200);
        assert_eq!(admin.get("/api/v1/blocks").await.data()[0]["suspended"], Value::Null);

        assert_eq!(admin.patch(&format!("/api/v1/users/{id}"), json!({ "banned": true })).await.status, 200);
        let refused = call().await.expect_error(403, "forbidden");
        assert!(refused["message"].as_str().unwrap().contains("banned"), "{refused}");
        assert_eq!(reason(&admin.get("/api/v1/blocks/tasks").await), "maker_banned");
        assert_eq!(admin.post("/api/v1/blocks/tasks/adopt", json!({})).await.data()["suspended"], Value::Null);
        assert_eq!(call().await.status, 200);
        assert_eq!(admin.delete(&format!("/api/v1/users/{id}")).await.status, 204);
        assert_eq!(call().await.status, 200);
    }

    async fn what_is_handed_over_goes_on_with_the_rights_of_the_heir(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("copy", json!([{ "name": "record", "type": "json" }])).await;
        let receiver = Receiver::start().await;
        let strong = json!([
            right("webhooks", &["manage"]), right("events", &["manage"]), right("blocks", &["manage"]), right("task", &["manage"]), right("copy", &["create"]),
        ]);
        let (maker, maker_id) = user(&admin, "maker", strong.clone()).await;
        let (_, heir_id) = user(&admin, "heir", strong).await;
        let (id, _) = make(&maker, json!({ "url": receiver.url, "topics": ["data.task.created"] })).await;
        let config = json!({ "object": "copy", "map": { "record": "payload.after" } });
        let body = json!({ "event": "data.task.created", "consumer": "copies", "handler": "persist_event", "config": config });
        assert_eq!(maker.post("/api/v1/events/subscriptions", body).await.status, 201);
        let installed = maker.install("", example_block("tasks").await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let task = admin.make("task", json!({ "title": "before" })).await;
        let complete = async || {
            server.sql("UPDATE task SET done = FALSE").await;
            admin.post("/api/v1/blocks/tasks/actions/complete", json!({ "id": task })).await
        };
        receiver.wait_for(1).await;
        ledger_until(&admin, "status=delivered&consumer=copies", |entries| entries.len() == 1).await;
        assert_eq!(complete().await.status, 200);

        assert_eq!(admin.delete(&format!("/api/v1/users/{maker_id}?handOverTo={heir_id}")).await.status, 204);
        admin.make("task", json!({ "title": "after" })).await;
        receiver.wait_for(2).await;
        ledger_until(&admin, "status=delivered&consumer=copies", |entries| entries.len() == 2).await;
        let completed = complete().await;
        assert_eq!(completed.status, 200, "{}", completed.text);
        assert!(ledger(&admin, "dead=true").await.is_empty());
        assert_eq!(admin.get(&format!("/api/v1/webhooks/{id}")).await.data()["suspended"], Value::Null);
        // From now on each thing has the rights of the heir.
        grant(&admin, "heir", json!([])).await;
        complete().await.expect_error(403, "forbidden");
        assert_eq!(reason(&admin.get(&format!("/api/v1/webhooks/{id}")).await), "rights_lost");
    }

    async fn what_a_block_declared_is_adopted_with_the_block(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        let strong = json!([right("blocks", &["manage"]), right("webhooks", &["manage"]), right("task", &["read"])]);
        let (installer, id) = user(&admin, "installer", strong).await;
        let manifest = json!({
            "name": "sender", "version": "1.0.0", "requires": { "plugins": ["log"] }, "actions": [{ "name": "echo" }],
            "webhooks": [{ "name": "out", "url": receiver.url, "topics": ["data.task.#"], "headers": { "Authorization": "Bearer of-the-manifest" } }],
            "subscriptions": [{ "event": "data.task.#", "consumer": "sender:log", "handler": "log_event" }],
        });
        let installed = installer.install("", pack(example_block("echo").await, manifest).await.unwrap()).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        // The server sends the header, but never shows it, and does not store it in plain text.
        assert_eq!(installed.data()["webhooks"][0]["headers"], json!({ "Authorization": "***" }));
        admin.make("task", json!({ "title": "a" })).await;
        assert_eq!(receiver.wait_for(1).await[0].header("authorization"), "Bearer of-the-manifest");
        for text in [admin.get("/api/v1/blocks/sender").await.text, admin.get("/api/v1/webhooks").await.text] {
            assert!(!text.contains("of-the-manifest"), "{text}");
        }
        assert!(!server.sql("SELECT manifest FROM svc_block_versions").await[0][0].contains("of-the-manifest"));
        assert!(!server.sql("SELECT headers FROM svc_webhooks").await[0][0].contains("of-the-manifest"));

        let webhook = admin.get("/api/v1/webhooks").await.data()[0]["id"].as_str().unwrap().to_owned();
        let deleted = admin.delete(&format!("/api/v1/users/{id}")).await.expect_error(409, "owns_things");
        assert_eq!(deleted["things"].as_array().unwrap().len(), 3, "{deleted}");
        assert_eq!(admin.delete(&format!("/api/v1/users/{id}?suspend=true")).await.status, 204);
        admin.make("task", json!({ "title": "b" })).await;
        ledger_until(&admin, "dead=true", |entries| entries.len() == 2).await;
        assert_eq!(receiver.count(), 1);
        admin.post("/api/v1/blocks/sender/actions/echo", json!({})).await.expect_error(403, "forbidden");
        admin.post(&format!("/api/v1/webhooks/{webhook}/adopt"), json!({})).await.expect_error(409, "conflict");
        admin.post("/api/v1/events/subscriptions/sender:log/adopt", json!({})).await.expect_error(409, "conflict");
        assert_eq!(admin.post("/api/v1/blocks/sender/adopt", json!({})).await.status, 200);
        assert_eq!(admin.get(&format!("/api/v1/webhooks/{webhook}")).await.data()["suspended"], Value::Null);
        admin.make("task", json!({ "title": "c" })).await;
        receiver.wait_for(2).await;
    }

    async fn header_values_in_the_file_of_a_block_are_sealed(engine: Engine) {
        let mut server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let receiver = Receiver::start().await;
        let file = async |version: &str| {
            let manifest = json!({
                "name": "sender", "version": version, "requires": { "plugins": ["log"] }, "actions": [{ "name": "echo" }],
                "webhooks": [{ "name": "out", "url": receiver.url, "topics": ["data.task.#"], "headers": { "X-Key": format!("hush-hush-{version}") } }],
            });
            pack(example_block("echo").await, manifest).await.unwrap()
        };
        // The number of stored files, and the number of those that contain an unsealed value. Then the server's files that
        // contain the value.
        let counts = async |server: &Server| match engine {
            Engine::Sqlite => server.sql("SELECT count(*), coalesce(sum(instr(component, CAST('hush-hush' AS BLOB)) > 0), 0) FROM svc_block_versions").await,
            Engine::Postgres => server.sql("SELECT count(*)::text, (count(*) FILTER (WHERE position('hush-hush'::bytea IN component) > 0))::text FROM svc_block_versions").await,
        };
        let leaks = |server: &Server| files_with(&server.directory(), b"hush-hush");
        let sent = async |admin: &Admin<'_>, count: usize| {
            admin.make("task", json!({ "title": "a" })).await;
            receiver.wait_for(count).await[count - 1].header("x-key").to_owned()
        };
        let first = file("1.0.0").await;
        assert!(first.windows(9).any(|window| window == b"hush-hush"));
        let installed = admin.install("", first.clone()).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let digest = installed.data()["digest"].clone();
        assert_eq!(sent(&admin, 1).await, "hush-hush-1.0.0");
        let upgraded = admin.install("?upgrade=true&allowNewPermissions=true", file("2.0.0").await).await;
        assert_eq!(upgraded.status, 200, "{}", upgraded.text);
        assert_eq!(sent(&admin, 2).await, "hush-hush-2.0.0");
        assert_eq!((counts(&server).await, leaks(&server)), (vec![vec!["2".to_owned(), "0".to_owned()]], Vec::new()));
        // A version that is active again has the value that it declared.
        let back = admin.post("/api/v1/blocks/sender/rollback", json!({})).await.data();
        assert_eq!((&back["version"], &back["digest"]), (&json!("1.0.0"), &digest));
        assert_eq!(sent(&admin, 3).await, "hush-hush-1.0.0");

        // A value that an earlier version stored unsealed is sealed at the start. Without the compiled code, the file is opened again.
        let hex: String = first.iter().map(|byte| format!("{byte:02x}")).collect();
        let literal = if engine == Engine::Sqlite { format!("X'{hex}'") } else { format!("'\\x{hex}'::bytea") };
        server.sql(&format!("UPDATE svc_block_versions SET component = {literal} WHERE version = '1.0.0'")).await;
        assert_eq!(counts(&server).await, [["2", "1"]]);
        let token = admin.token.clone();
        server.kill();
        std::fs::remove_dir_all(server.directory().join("svc-data/blocks")).expect("a cache");
        let server = server.restart().await;
        let admin = server.with_token(token);
        assert_eq!((counts(&server).await, leaks(&server)), (vec![vec!["2".to_owned(), "0".to_owned()]], Vec::new()));
        assert_eq!(admin.post("/api/v1/blocks/sender/actions/echo", json!({ "a": 1 })).await.data(), json!({ "a": 1 }));
        assert_eq!(sent(&admin, 4).await, "hush-hush-1.0.0");
        assert_eq!(admin.get("/api/v1/blocks/sender").await.data()["digest"], digest);
    }

    async fn acting_on_a_webhook_takes_the_reads_that_it_carries(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let (receiver, elsewhere) = (Receiver::start().await, Receiver::start().await);
        let headers = json!({ "Authorization": "Bearer of the receiver" });
        let (id, secret) = make(&admin, json!({ "url": receiver.url, "topics": ["data.task.#"], "headers": headers })).await;
        let (weak, _) = user(&admin, "weak", json!([right("webhooks", &["manage"]), right("events", &["manage"])])).await;
        let path = format!("/api/v1/webhooks/{id}");
        weak.post(&format!("{path}/rotate-secret"), json!({})).await.expect_error(403, "forbidden");
        weak.post(&format!("{path}/test"), json!({})).await.expect_error(403, "forbidden");
        weak.post(&format!("{path}/adopt"), json!({})).await.expect_error(403, "forbidden");
        for change in [json!({ "url": elsewhere.url }), json!({ "enabled": false }), json!({ "name": "mine" }), json!({ "topics": ["webhook.#"] })] {
            weak.patch(&path, change).await.expect_error(403, "forbidden");
        }
        weak.delete(&path).await.expect_error(403, "forbidden");
        admin.make("task", json!({ "title": "a" })).await;
        let request = receiver.wait_for(1).await.remove(0);
        let (instant, signature) = request.header("x-svc-signature").split_once(",v1=").unwrap();
        let signed = [instant.strip_prefix("t=").unwrap().as_bytes(), b".", &request.body[..]].concat();
        assert_eq!(signature, crate::events::webhooks::hmac(&secret, &signed), "the secret is another");
        assert_eq!(elsewhere.count(), 0);
    }

    async fn what_waits_for_a_webhook_is_skipped_when_it_is_not_for_it_any_more(engine: Engine) {
        let server = quick(engine).env("SVC_RETRY_BASE_MS", "2000").start().await;
        let admin = server.admin().await;
        for object in ["post", "secret"] {
            admin.define(object, json!([{ "name": "title", "type": "text" }])).await;
        }
        let (receiver, elsewhere) = (Receiver::start().await, Receiver::start().await);
        receiver.answer(|_, _| Reply::Status(500));
        // The maker may read everything. They lose that right while two events wait.
        let whole = json!([right("webhooks", &["manage"]), right("*", &["read"])]);
        let (maker, _) = user(&admin, "maker", whole).await;
        let (bob, _) = user(&admin, "bob", json!([right("webhooks", &["read", "update"]), right("post", &["read"])])).await;
        let (id, _) = make(&maker, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
        let (path, group) = (format!("/api/v1/webhooks/{id}"), format!("consumer=webhook:{id}"));
        admin.make("secret", json!({ "title": "hidden" })).await;
        admin.make("post", json!({ "title": "open" })).await;
        receiver.wait_for(2).await;
        ledger_until(&admin, &group, |entries| entries.iter().filter(|entry| entry["status"] == "failed").count() == 2).await;
        grant(&admin, "maker", json!([right("webhooks", &["manage"]), right("post", &["read"])])).await;
        for weak in [&maker, &bob] {
            weak.patch(&path, json!({ "url": elsewhere.url })).await.expect_error(403, "forbidden");
        }

        // With fewer topics, Bob has the rights for the webhook and for its waiting events.
        assert_eq!(admin.patch(&path, json!({ "topics": ["data.post.#"] })).await.status, 200);
        assert_eq!(bob.patch(&path, json!({ "url": elsewhere.url })).await.status, 200);
        let entries = ledger_until(&admin, &group, |entries| entries.iter().all(|entry| entry["status"] == "delivered")).await;
        let of = |topic: &str| entries.iter().find(|entry| entry["topic"] == topic).unwrap();
        let (skipped, sent) = (of("data.secret.created"), of("data.post.created"));
        assert_eq!((&skipped["attempts"], &skipped["skipped"], &skipped["dead"]), (&json!(0), &json!(true), &json!(false)));
        assert!(skipped["error"].as_str().unwrap().starts_with("Skipped: "), "{skipped}");
        assert_eq!((&sent["skipped"], &sent["error"]), (&json!(false), &Value::Null));
        assert!(sent["attempts"].as_i64().unwrap() >= 2, "{sent}");
        let retry = json!({ "eventId": skipped["eventId"], "consumer": skipped["consumer"] });
        admin.post("/api/v1/events/deliveries/retry", retry).await.expect_error(409, "conflict");

        // Later events are delivered, and so are tests, although no topic of the webhook matches them.
        admin.make("secret", json!({ "title": "hidden too" })).await;
        admin.make("post", json!({ "title": "open too" })).await;
        elsewhere.wait_for(2).await;
        assert_eq!(bob.post(&format!("{path}/test"), json!({})).await.status, 202);
        let received = elsewhere.wait_for(3).await;
        let topics: Vec<&str> = received.iter().map(|request| request.header("x-svc-topic")).collect();
        let test = format!("webhook.test.{id}");
        assert_eq!(topics, ["data.post.created", "data.post.created", test.as_str()]);
    }

    async fn what_waits_for_a_group_of_a_block_is_skipped_when_an_upgrade_narrows_it(engine: Engine) {
        let server = quick(engine).env("SVC_RETRY_BASE_MS", "2000").start().await;
        let admin = server.admin().await;
        for object in ["post", "secret"] {
            admin.define(object, json!([{ "name": "title", "type": "text" }])).await;
        }
        // At first no topic fits into the field.
        admin.define("copy", json!([{ "name": "topic", "type": "text", "max": 3 }])).await;
        let file = async |version: &str, topic: &str| {
            let config = json!({ "object": "copy", "map": { "topic": "event.topic" } });
            let manifest = json!({
                "name": "sender", "version": version, "requires": { "plugins": ["log"] }, "actions": [{ "name": "echo" }],
                "subscriptions": [{ "event": topic, "consumer": "sender:copy", "handler": "persist_event", "config": config }],
            });
            pack(example_block("echo").await, manifest).await.unwrap()
        };
        let installed = admin.install("", file("1.0.0", "data.#").await).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let narrowed = file("1.1.0", "data.post.#").await;
        admin.make("secret", json!({ "title": "hidden" })).await;
        admin.make("post", json!({ "title": "open" })).await;
        ledger_until(&admin, "status=failed", |entries| entries.len() == 2).await;
        let upgraded = admin.install("?upgrade=true&allowNewPermissions=true", narrowed).await;
        assert_eq!(upgraded.status, 200, "{}", upgraded.text);
        assert_eq!(admin.patch("/api/v1/objects/copy/fields/topic", json!({ "max": 100 })).await.status, 200);
        let entries = ledger_until(&admin, "status=delivered", |entries| entries.len() == 2).await;
        for entry in &entries {
            let is_secret = entry["topic"] == "data.secret.created";
            assert_eq!((&entry["skipped"], entry["attempts"] == 0), (&json!(is_secret), is_secret), "{entry}");
        }
        let copies = admin.get("/api/v1/data/copy").await.data();
        assert_eq!((copies.as_array().unwrap().len(), &copies[0]["topic"]), (1, &json!("data.post.created")));
    }

    async fn header_values_are_sealed_and_do_not_follow_a_webhook_elsewhere(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let (first, second) = (Receiver::start().await, Receiver::start().await);
        let refused = json!({ "url": first.url, "topics": ["data.#"], "headers": { "X-Tenant": "***" } });
        admin.post("/api/v1/webhooks", refused).await.expect_error(400, "invalid_value");
        let headers = json!({ "Authorization": "Bearer very-secret", "X-Tenant": "acme" });
        let (id, _) = make(&admin, json!({ "url": first.url, "topics": ["data.#"], "headers": headers })).await;
        let path = format!("/api/v1/webhooks/{id}");
        let shown = admin.get(&path).await.data();
        assert_eq!(shown["headers"], json!({ "Authorization": "***", "X-Tenant": "***" }));
        assert!(!server.sql("SELECT headers FROM svc_webhooks").await[0][0].contains("very-secret"));

        // A header that is sent back as it was shown keeps its value. A header that is left out is removed.
        let changed = admin.patch(&path, json!({ "headers": { "authorization": "***", "X-New": "n" } })).await.data();
        assert_eq!(changed["headers"], json!({ "authorization": "***", "X-New": "***" }));
        admin.make("task", json!({ "title": "a" })).await;
        let request = first.wait_for(1).await.remove(0);
        assert_eq!((request.header("authorization"), request.header("x-new")), ("Bearer very-secret", "n"));
        let unknown = admin.patch(&path, json!({ "headers": { "X-Tenant": "***" } })).await.expect_error(400, "invalid_value");
        assert!(unknown["message"].as_str().unwrap().contains("X-Tenant"), "{unknown}");

        // Another address gets none of the headers.
        let kept = json!({ "url": second.url, "headers": { "authorization": "***" } });
        let refused = admin.patch(&path, kept).await.expect_error(400, "invalid_value");
        assert!(refused["message"].as_str().unwrap().contains("authorization"), "{refused}");
        let same = admin.patch(&path, json!({ "url": first.url })).await.json();
        assert_eq!((&same["data"]["headers"]["X-New"], same.get("warnings")), (&json!("***"), None));
        let before = admin.get(&path).await.data();
        let refused = admin.patch(&path, json!({ "url": second.url, "name": "moved" })).await.expect_error(400, "invalid_value");
        assert_eq!(refused["field"], "headers", "{refused}");
        assert_eq!(admin.get(&path).await.data(), before, "it changes nothing");
        let moved = admin.patch(&path, json!({ "url": second.url, "headers": {} })).await.json();
        assert_eq!((&moved["data"]["headers"], &moved["data"]["url"], moved.get("warnings")), (&json!({}), &json!(second.url), None));
        admin.make("task", json!({ "title": "b" })).await;
        let request = second.wait_for(1).await.remove(0);
        assert!(!request.headers.iter().any(|(name, _)| name.as_str() == "authorization" || name.as_str() == "x-new"));

        // Headers that an earlier version stored unsealed are sealed once, when the server starts.
        server.sql("UPDATE svc_webhooks SET headers = '{\"X-Old\":\"plain-value\"}'").await;
        let token = admin.token.clone();
        let server = server.restart().await;
        let admin = server.with_token(token);
        let sealed = server.sql("SELECT headers FROM svc_webhooks").await;
        assert!(!sealed[0][0].contains("plain-value") && sealed[0][0].contains("X-Old"), "{sealed:?}");
        assert_eq!(admin.get(&path).await.data()["headers"], json!({ "X-Old": "***" }));
        admin.make("task", json!({ "title": "c" })).await;
        assert_eq!(second.wait_for(2).await[1].header("x-old"), "plain-value");
        let server = server.restart().await;
        assert_eq!(server.sql("SELECT headers FROM svc_webhooks").await, sealed);
    }

    async fn null_is_not_the_same_as_leaving_out(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        assert_eq!(admin.install("", example_block("tasks").await).await.status, 201);
        let (id, _) = make(&admin, json!({ "url": "https://webhook.invalid/", "topics": ["data.#"], "name": "n" })).await;
        let webhook = format!("/api/v1/webhooks/{id}");
        let (_, user_id) = user(&admin, "somebody", json!([])).await;
        let user = format!("/api/v1/users/{user_id}");
        for (path, keys) in [
            (webhook.as_str(), &["url", "topics", "headers", "enabled"][..]),
            ("/api/v1/tasks/event-retention", &["enabled", "schedule", "config"]),
            ("/api/v1/blocks/tasks", &["enabled", "config"]),
            ("/api/v1/roles/somebody", &["name", "permissions"]),
            (user.as_str(), &["name", "banned"]),
            ("/api/v1/objects/task/fields/title", &["name", "type"]),
        ] {
            for key in keys {
                let answer = admin.patch(path, json!({ (*key): null })).await;
                assert_eq!(answer.status, 400, "{path} {key}: {}", answer.text);
            }
            assert_eq!(admin.patch(path, json!({})).await.status, 200, "{path}");
        }
        assert_eq!(admin.patch(&webhook, json!({ "name": null })).await.data()["name"], Value::Null);
        assert_eq!(admin.get(&webhook).await.data()["url"], "https://webhook.invalid/");
    }

    async fn a_topic_without_its_object_is_taken_with_a_warning(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let body = |topic: &str| json!({ "url": "https://webhook.invalid/", "topics": ["data.task.#", topic] });
        let made = admin.post("/api/v1/webhooks", body("data.tsak.#")).await.json();
        assert!(made["warnings"].as_array().unwrap().len() == 1 && made["warnings"][0].as_str().unwrap().contains("`tsak`"), "{made}");
        assert_eq!(admin.post("/api/v1/webhooks", body("schema.#")).await.json().get("warnings"), None);
        let path = format!("/api/v1/webhooks/{}", made["data"]["id"].as_str().unwrap());
        assert_eq!(admin.patch(&path, json!({ "topics": ["data.task.#"] })).await.json().get("warnings"), None);
        let logged = |event: &str, consumer: &str| json!({ "event": event, "consumer": consumer, "handler": "log_event" });
        let made = admin.post("/api/v1/events/subscriptions", logged("data.nothing.created", "a")).await.json();
        assert!(made["warnings"][0].as_str().unwrap().contains("`nothing`"), "{made}");
        let made = admin.post("/api/v1/events/subscriptions", logged("data.task.created", "b")).await.json();
        assert_eq!(made.get("warnings"), None);
        let changed = admin.patch(&path, json!({ "topics": ["data.gone.#"] })).await.json();
        assert!(changed["warnings"][0].as_str().unwrap().contains("`gone`"), "{changed}");

        // The report of an install shows the webhooks that the block declares.
        let file = async |version: &str, object: &str| {
            let manifest = json!({
                "name": "sender", "version": version, "requires": { "plugins": ["log"] }, "actions": [{ "name": "echo" }],
                "webhooks": [{ "name": "out", "url": "https://webhook.invalid/", "topics": ["data.task.#", format!("data.{object}.#")] }],
                "subscriptions": [
                    { "event": format!("data.{object}.#"), "consumer": "sender:log", "handler": "log_event" },
                    { "event": "data.task.created", "consumer": "sender:new", "handler": "log_event" },
                ],
            });
            pack(example_block("echo").await, manifest).await.unwrap()
        };
        let absent = file("1.0.0", "absent").await;
        let dry = admin.install("?dryRun=true", absent.clone()).await.json();
        let installed = admin.install("", absent.clone()).await;
        let again = admin.install("?upgrade=true", absent).await.json();
        assert_eq!(installed.status, 201, "{}", installed.text);
        for report in [&dry["report"], &installed.json()["report"], &again["report"]] {
            let warnings = report["warnings"].as_array().unwrap_or_else(|| panic!("{report}"));
            assert!(warnings.len() == 1 && warnings[0].as_str().unwrap().contains("`absent`"), "{report}");
        }
        let upgraded = admin.install("?upgrade=true&allowNewPermissions=true", file("1.1.0", "task").await).await.json();
        assert_eq!((&upgraded["data"]["version"], upgraded["report"].get("warnings")), (&json!("1.1.0"), None), "{upgraded}");
    }

    async fn a_flag_that_stands_there_twice_does_nothing(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        for query in ["?dryRun=true&dryRun=false", "?dryRun=false&dryRun=true", "?dryRun&dryRun", "?dryRun=True", "?upgrade=true&upgrade=true", "?dryrun=true"] {
            admin.install(query, example_block("tasks").await).await.expect_error(400, "invalid_request");
        }
        admin.delete("/api/v1/objects/task?cascade=false&cascade=true").await.expect_error(400, "invalid_request");
        admin.get("/api/v1/events/deliveries?dead=true&dead=false").await.expect_error(400, "invalid_request");
        assert_eq!(admin.get("/api/v1/blocks").await.data(), json!([]));
        assert_eq!(admin.get("/api/v1/objects/task").await.status, 200);
    }

    async fn the_ledger_shows_each_entry_to_those_alone_who_may_read_its_event(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("note", json!([{ "name": "title", "type": "text" }])).await;
        let receiver = Receiver::start().await;
        receiver.answer(|_, request| Reply::Text(500, String::from_utf8_lossy(&request.body).into_owned()));
        let (id, _) = make(&admin, json!({ "url": receiver.url, "topics": ["#"] })).await;
        let events = right("events", &["read", "update"]);
        let (blind, _) = user(&admin, "blind", json!([events])).await;
        let (reader, _) = user(&admin, "reader", json!([events, right("note", &["read"])])).await;
        let (owner, _) = user(&admin, "owner", json!([events, own("task", &["read", "create"])])).await;
        admin.make("task", json!({ "title": "the-secret" })).await;
        admin.make("note", json!({ "title": "a note" })).await;
        owner.make("task", json!({ "title": "of the owner" })).await;
        ledger_until(&admin, "pageSize=100", |entries| entries.iter().filter(|entry| entry["dead"] == true && entry["topic"].as_str().unwrap().starts_with("data.")).count() == 3).await;
        let topics = async |who: &Admin<'_>| -> (Vec<String>, usize) {
            let page = who.get("/api/v1/events/deliveries?pageSize=100").await;
            assert!(who.token == admin.token || !page.text.contains("the-secret"), "{}", page.text);
            let page = page.json();
            let data = page["data"].as_array().unwrap();
            assert_eq!(page["pagination"]["totalCount"].as_u64().unwrap() as usize, data.len());
            let topics = data.iter().map(|entry| entry["topic"].as_str().unwrap().to_owned()).filter(|topic| topic.starts_with("data.")).collect();
            (topics, data.len())
        };
        assert_eq!(topics(&admin).await.0.len(), 3);
        let (seen, platform) = topics(&blind).await;
        assert!(seen.is_empty() && platform > 0, "{seen:?}");
        assert_eq!(topics(&reader).await, (vec!["data.note.created".to_owned()], platform + 1));
        assert_eq!(topics(&owner).await, (vec!["data.task.created".to_owned()], platform + 1));
        // The same applies to a retry by hand. For an entry that callers cannot see, they get 404. For one that they see, they need the
        // webhook's rights.
        let entries = ledger(&admin, "pageSize=100").await;
        let of = |topic: &str| entries.iter().find(|entry| entry["topic"] == topic).unwrap()["eventId"].clone();
        let retry = |event: Value| json!({ "eventId": event, "consumer": format!("webhook:{id}") });
        let path = "/api/v1/events/deliveries/retry";
        reader.post(path, retry(of("data.task.created"))).await.expect_error(404, "not_found");
        reader.post(path, retry(of("data.note.created"))).await.expect_error(403, "forbidden");
        assert_eq!(admin.post(path, retry(of("data.note.created"))).await.status, 200);
    }

    async fn the_ledger_shows_a_key_the_own_records_of_its_user_and_of_its_maker(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        admin.define("note", json!([{ "name": "title", "type": "text" }])).await;
        let receiver = Receiver::start().await;
        make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
        let carried = json!([right("events", &["read"]), right("task", &["read"]), own("note", &["read"])]);
        assert_eq!(admin.post("/api/v1/roles", json!({ "name": "carried", "permissions": carried })).await.status, 201);
        let maker_with = |tasks: Value| {
            json!([right("api_keys", &["create"]), right("users", &["update"]), right("events", &["read"]), right("note", &["read", "create"]), tasks])
        };
        let (maker, _) = user(&admin, "maker", maker_with(right("task", &["read", "create"]))).await;
        let (ann, ann_id) = user(&admin, "ann", json!([right("note", &["read", "create"])])).await;
        let (by_key, _) = key(&maker, json!({ "name": "k", "roleId": "carried", "userId": ann_id })).await;
        // From now on, the key may use the maker's own tasks, and Ann's own notes.
        grant(&admin, "maker", maker_with(own("task", &["read", "create"]))).await;
        for who in [&admin, &maker] {
            who.make("task", json!({ "title": "a" })).await;
        }
        for who in [&admin, &ann] {
            who.make("note", json!({ "title": "a" })).await;
        }
        ledger_until(&admin, "status=delivered", |entries| entries.len() == 4).await;
        let page = by_key.get("/api/v1/events/deliveries?pageSize=100").await.json();
        let topics: Vec<_> = page["data"].as_array().unwrap().iter().map(|entry| entry["topic"].as_str().unwrap()).collect();
        assert_eq!(topics, ["data.note.created", "data.task.created"]);
        assert_eq!(page["pagination"]["totalCount"], 2);
    }

    async fn consent_to_the_own_rows_of_every_caller_takes_the_right_to_all(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let grants = json!([right("blocks", &["manage"]), own("task", &["read", "update"])]);
        let (installer, _) = user(&admin, "installer", grants).await;
        let manifest = |more: Value| {
            let mut data = json!({ "resource": "task", "actions": ["read"], "rowPolicy": "own" });
            data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({
                "name": "mine", "version": "1.0.0", "requires": { "plugins": ["log"] }, "actions": [{ "name": "echo" }], "permissions": { "data": [data] },
            })
        };
        let plain = pack(example_block("echo").await, manifest(json!({}))).await.unwrap();
        let refused = installer.install("", plain.clone()).await.expect_error(403, "forbidden");
        assert!(refused["message"].as_str().unwrap().contains("own rows of every caller"), "{refused}");
        installer.install("?dryRun=true", plain.clone()).await.expect_error(403, "forbidden");
        let as_caller = pack(example_block("echo").await, manifest(json!({ "as": "caller" }))).await.unwrap();
        assert_eq!(installer.install("", as_caller).await.status, 201);
        installer.install("?upgrade=true&allowNewPermissions=true", plain.clone()).await.expect_error(403, "forbidden");
        assert_eq!(admin.install("?upgrade=true&allowNewPermissions=true", plain).await.status, 200);
        installer.post("/api/v1/blocks/mine/adopt", json!({})).await.expect_error(403, "forbidden");
    }

    async fn changes_of_the_schema_say_nothing_of_rows_to_those_who_may_not_read_them(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        let fields = json!([
            { "name": "salary", "type": "decimal", "scale": 2 }, { "name": "ssn", "type": "text" }, { "name": "level", "type": "enum", "options": ["a", "b"] },
            { "name": "note", "type": "text" },
        ]);
        admin.define("person", fields).await;
        admin.make("person", json!({ "salary": 98765.43, "ssn": "123456789", "level": "b" })).await;
        let (designer, _) = user(&admin, "designer", json!([right("objects", &["create", "read", "update"])])).await;
        let path = |field: &str| format!("/api/v1/objects/person/fields/{field}");
        let before = admin.get("/api/v1/objects/person").await.data();
        let probes = [
            ("salary", json!({ "scale": 0 })),
            ("salary", json!({ "min": 100000 })),
            ("salary", json!({ "max": 1 })),
            ("salary", json!({ "type": "text" })),
            ("ssn", json!({ "pattern": "^1" })),
            ("ssn", json!({ "pattern": "^2" })),
            ("ssn", json!({ "max": 3 })),
            ("ssn", json!({ "isUnique": true })),
            ("ssn", json!({ "required": true })),
            ("note", json!({ "required": true })),
            ("level", json!({ "options": ["a"] })),
        ];
        let refusals = async |who: &Admin<'_>| {
            let mut answers = Vec::new();
            for (field, change) in &probes {
                answers.push((format!("{field} {change}"), who.patch(&path(field), change.clone()).await));
            }
            for field in [json!({ "name": "must", "type": "text", "required": true }), json!({ "name": "one", "type": "text", "isUnique": true, "default": "x" })] {
                answers.push((field.to_string(), who.post("/api/v1/objects/person/fields", field).await));
            }
            let group = json!({ "constraints": { "uniqueTogether": [["ssn", "level"]] } });
            answers.push((group.to_string(), who.patch("/api/v1/objects/person", group).await));
            let needed = json!({ "name": "boss", "kind": "many_to_one", "source": "person", "target": "person", "required": true });
            answers.push((needed.to_string(), who.post("/api/v1/relationships", needed).await));
            answers
        };
        for (probe, answer) in refusals(&designer).await {
            assert_eq!(answer.status, 403, "{probe}: {}", answer.text);
            answer.expect_error(403, "forbidden");
        }
        designer.delete(&path("ssn")).await.expect_error(403, "forbidden");
        assert_eq!(admin.get("/api/v1/objects/person").await.data(), before);
        // A right to own rows is not a right to all rows.
        let mine = json!([right("objects", &["create", "read", "update"]), own("person", &["read"])]);
        grant(&admin, "designer", mine).await;
        designer.patch(&path("ssn"), json!({ "pattern": "^1" })).await.expect_error(403, "forbidden");

        // A change that reads no rows does not need the right to read them.
        grant(&admin, "designer", json!([right("objects", &["create", "read", "update"])])).await;
        for change in [json!({ "label": "Number" }), json!({ "indexed": false }), json!({ "default": "x" }), json!({ "name": "number" })] {
            assert_eq!(designer.patch(&path("ssn"), change).await.status, 200);
        }
        assert_eq!(designer.patch(&path("number"), json!({ "name": "ssn", "default": null, "label": null })).await.status, 200);
        assert_eq!(designer.post("/api/v1/objects/person/fields", json!({ "name": "more", "type": "text" })).await.status, 201);

        // With the right to read, the error shows how many rows violate the change, but no value.
        grant(&admin, "designer", json!([right("objects", &["manage"]), right("person", &["read"])])).await;
        for (field, change) in [("salary", json!({ "scale": 0 })), ("ssn", json!({ "pattern": "^2" })), ("level", json!({ "options": ["a"] }))] {
            let refused = designer.patch(&path(field), change).await.expect_error(400, "invalid_schema_change");
            let message = refused["message"].as_str().unwrap();
            assert!(message.contains("1 row breaks"), "{message}");
            assert!(!message.contains("98765") && !message.contains("123456789") && !message.contains("\"b\""), "{message}");
        }
        assert_eq!(designer.delete(&path("note")).await.status, 204);
    }
}

/// The longest time until the server notices a change of rights if nobody makes a request.
const NOTICED_WITHIN: Duration = Duration::from_secs(10);

on_both_engines! {
    async fn a_suspension_is_told_without_anybody_looking(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let (editor, _) = user(&admin, "editor", json!([right("webhooks", &["manage"]), right("task", &["read"])])).await;
        let (id, _) = make(&editor, json!({ "url": "https://webhook.invalid/", "topics": ["data.task.#"] })).await;
        grant(&admin, "editor", json!([])).await;
        let began = std::time::Instant::now();
        while told(&server, "webhooks.suspended").await.is_empty() {
            assert!(began.elapsed() < within(NOTICED_WITHIN), "nobody told of the suspension");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(told(&server, "webhooks.suspended").await[0]["id"], json!(id));
        assert!(!server.log().contains("suspensions could not be updated"), "{}", server.log());
    }
}

//! Erasing a person: the service deletes the data about a user, and keeps the data that others made.

use std::time::Duration;

use blockbase_tests::{Admin, Answer, Engine, Receiver, Reply, Server, ServerBuilder, on_both_engines, until};
use serde_json::{Value, json};

async fn erase(admin: &Admin<'_>, name: &str, config: Value) -> Value {
    let body = json!({ "name": name, "type": "erase_user", "schedule": "0 4 1 1 *", "config": config });
    let made = admin.post("/api/v1/tasks", body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let run = run(admin, name).await.data();
    assert_eq!(run["status"], "succeeded", "{run}");
    run["result"].clone()
}

/// Runs a task, which may take longer than other requests.
async fn run(admin: &Admin<'_>, name: &str) -> Answer {
    let request = admin.request("POST", &format!("/api/v1/tasks/{name}/run")).timeout(Duration::from_secs(600));
    admin.server.send(request.json(&json!({}))).await
}

async fn count(server: &Server, sql: &str) -> String {
    server.sql(sql).await[0][0].clone()
}

/// Makes a user who may write notes. Returns their id and token.
async fn writer(admin: &Admin<'_>, name: &str) -> (String, String) {
    let token = admin.server.sign_up(name).await;
    let id = admin.server.with_token(token.clone()).get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
    assert_eq!(admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": "writer" })).await.status, 200);
    (id, token)
}

/// Defines notes, and a role that may write them.
async fn notes(admin: &Admin<'_>) {
    admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
    let role = json!({ "name": "writer", "permissions": [{ "resource": "note", "actions": ["manage"] }] });
    assert_eq!(admin.post("/api/v1/roles", role).await.status, 201);
}

on_both_engines! {
    async fn a_person_is_erased_and_their_records_stay_without_them(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        notes(&admin).await;
        let (id, token) = writer(&admin, "gone").await;
        let theirs = server.with_token(token.clone());
        let note = theirs.make("note", json!({ "text": "of the person" })).await;
        let other = admin.make("note", json!({ "text": "of the admin" })).await;
        theirs.patch(&format!("/api/v1/data/note/{other}"), json!({ "text": "changed by the person" })).await.data();
        let wrong = json!({ "email": "gone@example.com", "password": "a wrong password" });
        assert_eq!(server.call("POST", "/api/auth/sign-in/email", Some(wrong)).await.status, 401);
        assert_ne!(count(&server, &format!("SELECT count(*) FROM svc_events WHERE payload LIKE '%{id}%'")).await, "0");
        assert_eq!(count(&server, "SELECT count(*) FROM svc_sign_in_tries").await, "2");

        let result = erase(&admin, "erase-gone", json!({ "userId": id })).await;
        assert_eq!((&result["user"], &result["recordsUnstamped"], &result["recordsDeleted"], &result["eventsWaiting"]), (&json!(true), &json!(2), &json!(0), &json!(0)));
        assert!(result["events"].as_u64().unwrap() >= 4, "{result}");
        assert_eq!(theirs.get("/api/v1/me").await.json()["authenticated"], false);
        assert_eq!(admin.get(&format!("/api/v1/users/{id}")).await.status, 404);
        for table in ["svc_users WHERE id", "svc_sessions WHERE user_id", "svc_credentials WHERE user_id", "svc_events WHERE owner", "note WHERE created_by", "note WHERE updated_by"] {
            assert_eq!(count(&server, &format!("SELECT count(*) FROM {table} = '{id}'")).await, "0", "{table}");
        }
        assert_eq!(count(&server, &format!("SELECT count(*) FROM svc_events WHERE payload LIKE '%{id}%'")).await, "0");
        assert_eq!(count(&server, "SELECT count(*) FROM svc_sign_in_tries").await, "0");
        // Their records still exist, without an owner.
        let kept = admin.get(&format!("/api/v1/data/note/{note}")).await.data();
        assert_eq!((&kept["text"], &kept["created_by"], &kept["updated_by"]), (&json!("of the person"), &json!(null), &json!(null)));
        let others = admin.get(&format!("/api/v1/data/note/{other}")).await.data();
        assert!(others["created_by"].is_string() && others["updated_by"].is_null(), "{others}");
        // Events of others stay. A second run finds nothing to delete.
        assert_ne!(count(&server, "SELECT count(*) FROM svc_events").await, "0");
        // Streams can still resume before the deleted events.
        assert_eq!(count(&server, "SELECT max(purged_to) FROM svc_outbox").await, "0");
        let again = admin.post("/api/v1/tasks/erase-gone/run", json!({})).await.data()["result"].clone();
        assert_eq!((&again["user"], &again["recordsUnstamped"]), (&json!(false), &json!(0)));
        if server.engine() == Engine::Sqlite {
            // The files no longer contain any text of the deleted rows.
            for file in ["svc.db", "svc.db-wal"] {
                let bytes = std::fs::read(server.directory().join("svc-data").join(file)).unwrap_or_default();
                assert!(!bytes.windows(16).any(|window| window == b"gone@example.com"), "{file}");
            }
        }
        assert_eq!(admin.delete("/api/v1/tasks/erase-gone").await.status, 204);
    }

    async fn their_records_go_too_where_that_is_asked_for(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ALLOW_PRIVATE_NETWORK", "true").env("SVC_RETRY_BASE_MS", "100").start().await;
        let admin = server.admin().await;
        notes(&admin).await;
        admin.define("comment", json!([{ "name": "text", "type": "text" }])).await;
        admin.relate(json!({ "name": "note", "kind": "many_to_one", "source": "comment", "target": "note" })).await;
        let (id, token) = writer(&admin, "gone").await;
        let role = json!({ "permissions": [{ "resource": "note", "actions": ["manage"] }, { "resource": "comment", "actions": ["manage"] }] });
        assert_eq!(admin.patch("/api/v1/roles/writer", role).await.status, 200);
        let theirs = server.with_token(token);
        let note = theirs.make("note", json!({ "text": "a" })).await;
        // `comment` refers to `note` and restricts its deletion, so it has to be deleted first.
        theirs.make("comment", json!({ "text": "b", "note_id": note })).await;
        let kept = admin.make("note", json!({ "text": "c" })).await;
        let receiver = Receiver::start().await;
        receiver.answer(|_, _| Reply::Status(500));
        crate::events::webhooks::make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;

        let result = erase(&admin, "erase-gone", json!({ "userId": id, "records": "delete" })).await;
        assert_eq!((&result["user"], &result["recordsDeleted"]), (&json!(true), &json!(2)), "{result}");
        assert_eq!(admin.get("/api/v1/data/note").await.json()["pagination"]["totalCount"], 1);
        admin.get(&format!("/api/v1/data/note/{kept}")).await.data();
        // A consumer that waits for the event still gets it. A later run deletes the rest.
        assert_eq!(result["eventsWaiting"], 2, "{result}");
        receiver.answer(|_, _| Reply::Status(200));
        const UNDELIVERED: &str = "SELECT count(*) FROM svc_deliveries WHERE status <> 'delivered'";
        until("all is delivered", async || count(&server, UNDELIVERED).await == "0").await;
        let again = admin.post("/api/v1/tasks/erase-gone/run", json!({})).await.data()["result"].clone();
        assert_eq!((&again["eventsWaiting"], count(&server, &format!("SELECT count(*) FROM svc_events WHERE payload LIKE '%{id}%'")).await), (&json!(0), "0".to_owned()));
    }

    async fn the_search_index_forgets_what_an_erasure_deletes(engine: Engine) {
        // Each text is one trigram of nine bytes, which the index stores unchanged.
        const DELETED: &str = "\u{3299}\u{329b}\u{329c}";
        const CHANGED: &str = "\u{3301}\u{3302}\u{3303}";
        const KEPT: &str = "\u{32d0}\u{32d1}\u{32d2}";
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        notes(&admin).await;
        let (id, token) = writer(&admin, "gone").await;
        let theirs = server.with_token(token);
        theirs.make("note", json!({ "text": format!("of the person {DELETED}") })).await;
        let changed = theirs.make("note", json!({ "text": CHANGED })).await;
        theirs.patch(&format!("/api/v1/data/note/{changed}"), json!({ "text": "something else" })).await.data();
        admin.make("note", json!({ "text": format!("of the admin {KEPT}") })).await;
        let holds = |marker: &str| ["svc.db", "svc.db-wal"].iter().any(|file| {
            let bytes = std::fs::read(server.directory().join("svc-data").join(file)).unwrap_or_default();
            bytes.windows(marker.len()).any(|window| window == marker.as_bytes())
        });
        assert!(engine == Engine::Postgres || [DELETED, CHANGED, KEPT].iter().all(|marker| holds(marker)));
        let result = erase(&admin, "erase-gone", json!({ "userId": id, "records": "delete" })).await;
        assert_eq!(result["recordsDeleted"], 2, "{result}");
        let found = async |text: &str| admin.get(&format!("/api/v1/data/note?search={text}")).await.json()["pagination"]["totalCount"].clone();
        assert_eq!([found(DELETED).await, found(CHANGED).await, found(KEPT).await], [0, 0, 1]);
        if engine == Engine::Sqlite {
            assert!(!holds(DELETED) && !holds(CHANGED) && holds(KEPT));
            // A second erasure has nothing to merge, and does not change the index.
            let object = count(&server, "SELECT id FROM svc_objects WHERE name = 'note'").await;
            let pages = async || server.sql(&format!("SELECT count(*), max(id) FROM svc_ft_{object}_data")).await;
            let before = pages().await;
            assert_eq!(admin.post("/api/v1/tasks/erase-gone/run", json!({})).await.data()["status"], "succeeded");
            assert_eq!(pages().await, before);
        }
    }

    async fn an_erasure_that_fails_has_erased_the_address(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        notes(&admin).await;
        admin.define("comment", json!([{ "name": "text", "type": "text" }])).await;
        admin.relate(json!({ "name": "note", "kind": "many_to_one", "source": "comment", "target": "note" })).await;
        let (id, token) = writer(&admin, "gone").await;
        let note = server.with_token(token).make("note", json!({ "text": "of the person" })).await;
        // The comment restricts the deletion of the note, and does not belong to the person.
        let comment = admin.make("comment", json!({ "text": "of the admin", "note_id": note })).await;
        let wrong = json!({ "email": "gone@example.com", "password": "a wrong password" });
        assert_eq!(server.call("POST", "/api/auth/sign-in/email", Some(wrong)).await.status, 401);
        assert_eq!(count(&server, "SELECT count(*) FROM svc_sign_in_tries").await, "2");

        let config = json!({ "userId": id, "records": "delete" });
        let body = json!({ "name": "erase-gone", "type": "erase_user", "schedule": "0 4 1 1 *", "config": config });
        assert_eq!(admin.post("/api/v1/tasks", body).await.status, 201);
        let run = admin.post("/api/v1/tasks/erase-gone/run", json!({})).await.data();
        assert_eq!(run["status"], "failed", "{run}");
        assert_eq!(admin.get(&format!("/api/v1/users/{id}")).await.status, 404);
        assert_eq!(count(&server, "SELECT count(*) FROM svc_sign_in_tries").await, "0");
        // A later run deletes the data that it finds by the person's id.
        assert_eq!(admin.delete(&format!("/api/v1/data/comment/{comment}")).await.status, 204);
        let again = admin.post("/api/v1/tasks/erase-gone/run", json!({})).await.data()["result"].clone();
        assert_eq!((&again["user"], &again["recordsDeleted"]), (&json!(false), &json!(1)), "{again}");
    }

    async fn an_erasure_needs_its_rights(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        notes(&admin).await;
        let (id, token) = writer(&admin, "clerk").await;
        let clerk = server.with_token(token);
        let me = admin.get("/api/v1/me").await.json()["userId"].clone();
        let body = |user: &Value, name: &str| json!({ "name": name, "type": "erase_user", "schedule": "0 4 1 1 *", "config": { "userId": user } });
        let grant = async |more: Value| {
            let mut permissions = vec![json!({ "resource": "tasks", "actions": ["manage"] })];
            permissions.extend(more.as_array().unwrap().iter().cloned());
            assert_eq!(admin.patch("/api/v1/roles/writer", json!({ "permissions": permissions })).await.status, 200);
        };
        for lacking in [json!([]), json!([{ "resource": "users", "actions": ["delete"] }]), json!([{ "resource": "events", "actions": ["delete"] }])] {
            grant(lacking).await;
            clerk.post("/api/v1/tasks", body(&me, "erase-it")).await.expect_error(403, "forbidden");
        }
        grant(json!([{ "resource": "users", "actions": ["delete"] }, { "resource": "events", "actions": ["delete"] }])).await;
        // Nobody can erase a user with more rights than they have.
        clerk.post("/api/v1/tasks", body(&me, "erase-it")).await.expect_error(403, "forbidden");
        let rising = server.with_token(server.sign_up("rising").await).get("/api/v1/me").await.json()["userId"].clone();
        assert_eq!(clerk.post("/api/v1/tasks", body(&rising, "erase-it")).await.status, 201);
        let roles = format!("/api/v1/users/{}/roles", rising.as_str().unwrap());
        assert_eq!(admin.post(&roles, json!({ "roleId": "admin" })).await.status, 200);
        clerk.post("/api/v1/tasks/erase-it/run", json!({})).await.expect_error(403, "forbidden");
        // If a stronger user runs the task, it still has the rights of its maker.
        let run = admin.post("/api/v1/tasks/erase-it/run", json!({})).await.data();
        assert_eq!((&run["status"], run["error"].as_str().unwrap().contains("that you do not have")), (&json!("failed"), true), "{run}");
        // Nobody can erase the last admin.
        assert_eq!(admin.delete(&format!("{roles}/admin")).await.status, 204);
        assert_eq!(admin.post("/api/v1/tasks", body(&me, "erase-me")).await.status, 201);
        let run = admin.post("/api/v1/tasks/erase-me/run", json!({})).await.data();
        assert_eq!((&run["status"], run["error"].as_str().unwrap().contains("last admin")), (&json!("failed"), true), "{run}");
        for config in [json!({}), json!({ "userId": "x" }), json!({ "userId": id, "records": "burn" }), json!({ "userId": id, "more": 1 })] {
            let body = json!({ "name": "wrong", "type": "erase_user", "schedule": "0 4 1 1 *", "config": config });
            admin.post("/api/v1/tasks", body).await.expect_error(400, "invalid_value");
        }
    }
}

/// Bytes of a text. Five of these texts are more than one transaction may delete.
const LARGE: usize = 7_000_000;

/// Makes a user's records: more than one transaction may delete, and one record whose deletion deletes many records of the admin.
/// Returns the user's id.
async fn estate(admin: &Admin<'_>) -> String {
    notes(admin).await;
    let text = json!([{ "name": "text", "type": "text" }]);
    admin.define("child", text.clone()).await;
    admin.define("mark", text).await;
    admin
        .relate(json!({ "name": "note", "kind": "many_to_one", "source": "child", "target": "note", "onDelete": "cascade" }))
        .await;
    admin
        .relate(json!({ "name": "parent", "kind": "many_to_one", "source": "child", "target": "child", "onDelete": "cascade" }))
        .await;
    admin
        .relate(json!({ "name": "note", "kind": "many_to_one", "source": "mark", "target": "note", "onDelete": "set_null" }))
        .await;
    let (id, token) = writer(admin, "gone").await;
    let theirs = admin.server.with_token(token);
    let large = "x".repeat(LARGE);
    for _ in 0..5 {
        theirs.make("note", json!({ "text": large })).await;
    }
    let top = theirs.make("note", json!({ "text": "top" })).await;
    for number in 0..5 {
        if number < 3 {
            let child = admin.make("child", json!({ "text": "of the top", "note_id": top })).await;
            admin.make("child", json!({ "text": "of a child", "parent_id": child })).await;
        }
        admin.make("mark", json!({ "text": large, "note_id": top })).await;
    }
    theirs.delete(&format!("/api/v1/data/note/{top}")).await.expect_error(400, "answer_too_large");
    id
}

async fn nothing_is_left(admin: &Admin<'_>, id: &str) {
    assert_eq!(count(admin.server, "SELECT count(*) FROM note").await, "0");
    assert_eq!(count(admin.server, "SELECT count(*) FROM child").await, "0");
    assert_eq!(count(admin.server, "SELECT count(*) FROM mark WHERE note_id IS NULL").await, "5");
    assert_eq!(
        count(admin.server, &format!("SELECT count(*) FROM mark WHERE created_by = '{id}' OR updated_by = '{id}'")).await,
        "0"
    );
    assert_eq!(count(admin.server, &format!("SELECT count(*) FROM svc_events WHERE owner = '{id}'")).await, "0");
}

on_both_engines! {
    #[ignore = "long: it writes a hundred megabytes"]
    async fn an_erasure_ends_whatever_the_size_of_what_it_deletes(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_MAX_TEXT_BYTES", "8000000").start().await;
        let admin = server.admin().await;
        let id = estate(&admin).await;
        let result = erase(&admin, "erase-gone", json!({ "userId": id, "records": "delete" })).await;
        assert_eq!((&result["user"], &result["recordsDeleted"]), (&json!(true), &json!(6)), "{result}");
        nothing_is_left(&admin, &id).await;
        // Each record that was deleted or changed along with others has its event, as after a single deletion.
        for (topic, events) in [("data.child.deleted", "6"), ("data.mark.updated", "5")] {
            assert_eq!(count(&server, &format!("SELECT count(*) FROM svc_events WHERE topic = '{topic}'")).await, events, "{topic}");
        }
        let again = admin.post("/api/v1/tasks/erase-gone/run", json!({})).await.data()["result"].clone();
        assert_eq!(again["recordsDeleted"], 0, "{again}");
    }

    #[ignore = "long: it writes a hundred megabytes"]
    async fn an_erasure_that_was_killed_can_be_run_again(engine: Engine) {
        let mut server = ServerBuilder::new(engine).env("SVC_MAX_TEXT_BYTES", "8000000").start().await;
        let token = server.admin().await.token;
        let id = estate(&server.with_token(token.clone())).await;
        let body = json!({ "name": "erase-gone", "type": "erase_user", "schedule": "0 4 1 1 *", "config": { "userId": id, "records": "delete" } });
        {
            let admin = server.with_token(token.clone());
            assert_eq!(admin.post("/api/v1/tasks", body).await.status, 201);
            let first = admin.request("POST", "/api/v1/tasks/erase-gone/run").json(&json!({})).send();
            let kill = async {
                until("something is gone", async || count(&server, "SELECT count(*) FROM note").await != "6").await;
                server.signal("KILL");
            };
            let _ = tokio::join!(first, kill);
        }
        server = server.restart().await;
        let admin = server.with_token(token);
        until("the task may run again", async || {
            let again = run(&admin, "erase-gone").await;
            again.status == 200 && again.data()["status"] == "succeeded"
        })
        .await;
        nothing_is_left(&admin, &id).await;
    }
}

/// The number of statements of this database that wait for a lock.
const LOCKED: &str =
    "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_goes_on_after_a_step_whose_records_others_deleted() {
    let server = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = server.admin().await;
    notes(&admin).await;
    let (ann_id, token) = writer(&admin, "ann").await;
    let ann = server.with_token(token);
    // A step takes 2,000 records, the oldest first. Somebody else deletes all records of the first step.
    for (text, counts) in [("goes", vec![1000, 1000]), ("stays", vec![3])] {
        for count in counts {
            let answer = ann.post("/api/v1/data/note/bulk", json!({ "data": vec![json!({ "text": text }); count] })).await;
            assert_eq!(answer.status, 201, "{}", answer.text);
        }
    }
    let deletion = server.lock_rows("DELETE FROM note WHERE text = 'goes'").await;
    let released = async {
        until("a step waits for the deletion", async || server.sql(LOCKED).await[0][0] != "0").await;
        deletion.release().await;
    };
    let (result, ()) = tokio::join!(erase(&admin, "erase-ann", json!({ "userId": ann_id })), released);
    assert_eq!(result["recordsUnstamped"], 3, "{result}");
    assert_eq!(count(&server, "SELECT count(*)::text FROM note WHERE created_by IS NOT NULL").await, "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_of_records_goes_on_where_others_delete_them_first() {
    let server = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = server.admin().await;
    notes(&admin).await;
    let (ann_id, token) = writer(&admin, "ann").await;
    let ann = server.with_token(token);
    for _ in 0..3 {
        ann.make("note", json!({ "text": "goes" })).await;
    }
    let deletion = server.lock_rows("DELETE FROM note").await;
    let released = async {
        until("it waits for the deletion", async || server.sql(LOCKED).await[0][0] != "0").await;
        deletion.release().await;
    };
    let (result, ()) = tokio::join!(erase(&admin, "erase-ann", json!({ "userId": ann_id, "records": "delete" })), released);
    assert_eq!(result["recordsDeleted"], 0, "{result}");
}

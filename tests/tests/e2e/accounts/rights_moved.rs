//! Rights are checked when they are used: if a caller loses a right during a request, the request loses it too.

use blockbase_tests::{Admin, Engine, HELD, ServerBuilder, on_both_engines, pack, test_block, until};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request that the server has admitted. The server waits for its body.
struct Waiting {
    connection: TcpStream,
    body: String,
}

impl Waiting {
    /// Sends the head. The server asks for the body after it has checked the caller.
    async fn begin(who: &Admin<'_>, method: &str, path: &str, body: Value) -> Waiting {
        let host = who.server.base.strip_prefix("http://").unwrap();
        let mut connection = TcpStream::connect(host).await.unwrap();
        let body = body.to_string();
        // A caller without a token sends no credential.
        let credential = if who.token.is_empty() { String::new() } else { format!("Authorization: Bearer {}\r\n", who.token) };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{credential}Content-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
            body.len()
        );
        connection.write_all(head.as_bytes()).await.unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            asked.push(connection.read_u8().await.unwrap());
        }
        let asked = String::from_utf8(asked).unwrap();
        assert!(asked.starts_with("HTTP/1.1 100"), "{method} {path}: {asked}");
        connection.write_all(&body.as_bytes()[..1]).await.unwrap();
        Waiting { connection, body }
    }

    /// Sends the rest of the body. Returns the status, and the response with its head.
    async fn end(mut self) -> (u16, String) {
        self.connection.write_all(&self.body.as_bytes()[1..]).await.unwrap();
        let mut answer = Vec::new();
        self.connection.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }
}

/// A user with a role, and the ids of both.
async fn member<'a>(admin: &Admin<'a>, name: &str, permissions: Value) -> (Admin<'a>, String, String) {
    let user = admin.server.with_token(admin.server.sign_up(name).await);
    let id = user.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
    let role = admin.post("/api/v1/roles", json!({ "name": format!("role of {name}"), "permissions": permissions })).await.data();
    let role = role["id"].as_str().unwrap().to_owned();
    assert_eq!(admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": role })).await.status, 200);
    (user, id, role)
}

fn everything() -> Value {
    json!([{ "resource": "*", "actions": ["manage"] }])
}

/// Requests that an attacker would begin before somebody notices the attack, each with the effect that it must not have.
async fn begun(who: &Admin<'_>, name: &str, own_id: &str, accomplice: &str) -> Vec<(&'static str, Waiting)> {
    let task = json!({ "title": name });
    let mutation = format!("mutation {{ create_task(input: {{ title: \"{name}\" }}) {{ id }} }}");
    let tool = json!({ "name": "bulk_create_records", "arguments": { "object_name": "task", "data": [task] } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool });
    let mut requests = Vec::new();
    for (what, method, path, body) in [
        ("a role is given", "POST", format!("/api/v1/users/{accomplice}/roles"), json!({ "roleId": "admin" })),
        ("a role is made", "POST", "/api/v1/roles".to_owned(), json!({ "name": name, "permissions": everything() })),
        ("a ban is lifted", "PATCH", format!("/api/v1/users/{own_id}"), json!({ "banned": false })),
        ("a key is made", "POST", "/api/v1/api-keys".to_owned(), json!({ "name": name, "roleId": "admin" })),
        ("a record is made", "POST", "/api/v1/data/task".to_owned(), task.clone()),
        ("records are made", "POST", "/api/v1/data/task/bulk".to_owned(), json!({ "data": [task] })),
        (
            "a webhook is made",
            "POST",
            "/api/v1/webhooks".to_owned(),
            json!({ "url": "https://example.com/", "topics": ["data.#"] }),
        ),
        ("an object is made", "POST", "/api/v1/objects".to_owned(), json!({ "name": name })),
        ("a mutation runs", "POST", "/api/v1/graphql".to_owned(), json!({ "query": mutation })),
        ("a tool is called", "POST", "/api/v1/mcp?sessions=none".to_owned(), call.clone()),
    ] {
        requests.push((what, Waiting::begin(who, method, &path, body).await));
    }
    requests
}

on_both_engines! {
    async fn a_body_that_comes_late_does_nothing_with_rights_that_are_lost(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let (_, accomplice, _) = member(&admin, "accomplice", json!([])).await;
        let counts = async || {
            let total = async |path: &str| admin.get(path).await.json()["pagination"]["totalCount"].clone();
            let length = async |path: &str| json!(admin.get(path).await.data().as_array().unwrap().len());
            let roles = admin.get(&format!("/api/v1/users/{accomplice}")).await.data()["roles"].clone();
            json!([total("/api/v1/data/task").await, length("/api/v1/roles").await, length("/api/v1/api-keys").await,
                   length("/api/v1/webhooks").await, length("/api/v1/objects").await, roles])
        };
        for loss in ["stripped", "demoted", "banned", "deleted"] {
            let name = format!("mallory_{loss}");
            let (mallory, id, role) = member(&admin, &name, everything()).await;
            let requests = begun(&mallory, &name, &id, &accomplice).await;
            let lost = match loss {
                "stripped" => admin.delete(&format!("/api/v1/users/{id}/roles/{role}")).await,
                "demoted" => admin.patch(&format!("/api/v1/roles/{role}"), json!({ "permissions": [] })).await,
                "banned" => admin.patch(&format!("/api/v1/users/{id}"), json!({ "banned": true })).await,
                _ => admin.delete(&format!("/api/v1/users/{id}")).await,
            };
            assert!(lost.status < 300, "{loss}: {}", lost.text);
            let before = counts().await;
            let expected = if ["stripped", "demoted"].contains(&loss) { 403 } else { 401 };
            for (what, request) in requests {
                let (status, answer) = request.end().await;
                match what {
                    "a mutation runs" | "a tool is called" if status == 200 => {
                        assert!(answer.contains("\"errors\"") || answer.contains("\"isError\":true"), "{loss}, {what}: {answer}");
                    }
                    _ => assert_eq!(status, expected, "{loss}, {what}: {answer}"),
                }
            }
            assert_eq!(counts().await, before, "{loss}");
            if loss == "banned" {
                assert_eq!(admin.get(&format!("/api/v1/users/{id}")).await.data()["banned"], true);
            }
        }
    }

    async fn a_body_that_comes_late_does_all_of_it_where_nothing_is_lost(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let (_, accomplice, other_role) = member(&admin, "accomplice", json!([])).await;
        let (honest, id, _) = member(&admin, "honest", everything()).await;
        let requests = begun(&honest, "honest", &id, &accomplice).await;
        // Another user's rights change, and the caller gets one more role.
        assert_eq!(admin.patch(&format!("/api/v1/roles/{other_role}"), json!({ "permissions": everything() })).await.status, 200);
        assert_eq!(admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": other_role })).await.status, 200);
        for (what, request) in requests {
            let (status, answer) = request.end().await;
            assert!((200..300).contains(&status), "{what}: {answer}");
            assert!(!answer.contains("\"errors\"") && !answer.contains("\"isError\":true"), "{what}: {answer}");
        }
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 4);
    }

    async fn a_condition_goes_by_the_values_that_its_variables_have_at_the_write(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let grants = json!([{ "resource": "task", "actions": ["create"], "where": { "title": { "in": "$user.roles" } }, "check": { "title": { "in": "$user.roles" } } }]);
        let (ann, id, _) = member(&admin, "ann", grants).await;
        let lead = admin.post("/api/v1/roles", json!({ "name": "lead", "permissions": [] })).await.data()["id"].as_str().unwrap().to_owned();
        assert_eq!(admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": lead })).await.status, 200);
        let begin = async || Waiting::begin(&ann, "POST", "/api/v1/data/task", json!({ "title": "lead" })).await;

        // Accounts change, but not her account.
        let request = begin().await;
        member(&admin, "ben", json!([])).await;
        let (status, answer) = request.end().await;
        assert_eq!(status, 201, "{answer}");
        // Her grants do not change, but their meaning does.
        let request = begin().await;
        assert_eq!(admin.delete(&format!("/api/v1/users/{id}/roles/{lead}")).await.status, 204);
        let (status, answer) = request.end().await;
        assert_eq!(status, 403, "{answer}");
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 1);
    }

    async fn a_key_without_its_maker_and_nobody_without_public_rights_do_nothing_either(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let creates = json!([{ "resource": "task", "actions": ["create"] }]);
        // The rights of everybody.
        let public = admin.get("/api/v1/roles/public").await.data()["id"].as_str().unwrap().to_owned();
        assert_eq!(admin.patch(&format!("/api/v1/roles/{public}"), json!({ "permissions": creates })).await.status, 200);
        // A key that one user made and that acts as another user.
        let (maker, maker_id, _) = member(&admin, "maker", everything()).await;
        let (_, other_id, _) = member(&admin, "other", json!([])).await;
        let key = maker.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "role of maker", "userId": other_id })).await;
        assert_eq!(key.status, 201, "{}", key.text);
        let key = server.with_token(key.json()["key"].as_str().unwrap().to_owned());
        let task = || json!({ "title": "late" });
        let by_key = Waiting::begin(&key, "POST", "/api/v1/data/task", task()).await;
        assert_eq!(admin.patch(&format!("/api/v1/users/{maker_id}"), json!({ "banned": true })).await.status, 200);
        let (status, answer) = by_key.end().await;
        assert!(status == 403 && answer.contains("key_suspended"), "{answer}");
        let nobody = Waiting::begin(&server.with_token(String::new()), "POST", "/api/v1/data/task", task()).await;
        assert_eq!(admin.patch(&format!("/api/v1/roles/{public}"), json!({ "permissions": [] })).await.status, 200);
        let (status, answer) = nobody.end().await;
        assert_eq!(status, 403, "{answer}");
        assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 0);
    }

}

on_both_engines! {
    async fn a_handler_that_runs_on_writes_nothing_more_for_who_is_gone(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ACTION_TIMEOUT_MS", "50000").start().await;
        let admin = server.admin().await;
        admin.make_task_object().await;
        let mut manifest = blockbase_tests::inspect(test_block("hostile").await).await;
        manifest["permissions"] = json!({ "data": [{ "resource": "task", "actions": ["create"], "as": "caller" }] });
        let file = pack(test_block("hostile").await, manifest).await.unwrap();
        let installed = admin.install("", file).await;
        assert_eq!(installed.status, 201, "{}", installed.text);
        let total = async || admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"].as_i64().unwrap();
        // A running call ends when its caller is banned or deleted, and also when they lose a role or the role loses rights.
        for (loss, status, code) in
            [("banned", 401, "unauthorized"), ("deleted", 401, "unauthorized"), ("stripped", 403, "forbidden"), ("changed", 403, "forbidden")]
        {
            let (mallory, id, role) = member(&admin, loss, everything()).await;
            let before = total().await;
            let writing = mallory.post("/api/v1/blocks/hostile/actions/keep_writing", json!({ "object": "task", "batch": 5 }));
            let lose = async {
                until("it writes", async || total().await > before).await;
                let lost = match loss {
                    "banned" => admin.patch(&format!("/api/v1/users/{id}"), json!({ "banned": true })).await,
                    "stripped" => admin.delete(&format!("/api/v1/users/{id}/roles/{role}")).await,
                    "changed" => {
                        let own = json!([{ "resource": "*", "actions": ["manage"], "rowPolicy": "own" }]);
                        admin.patch(&format!("/api/v1/roles/{role}"), json!({ "permissions": own })).await
                    }
                    _ => admin.delete(&format!("/api/v1/users/{id}")).await,
                };
                assert!(lost.status < 300, "{loss}: {}", lost.text);
                total().await
            };
            let (answer, at_the_loss) = tokio::join!(writing, lose);
            answer.expect_error(status, code);
            // The batch that was being committed at that moment may also have been written, but no later batch.
            let most = at_the_loss + if engine == Engine::Postgres { 5 } else { 0 };
            assert!((at_the_loss..=most).contains(&total().await), "{loss}: it wrote on");
        }
    }

}

on_both_engines! {
    async fn an_export_ends_with_the_right_to_it(server: Server) {
        let admin = server.admin().await;
        admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
        let records: Vec<Value> = (0..300).map(|number| json!({ "text": format!("{number:06} {}", "x".repeat(10_000)) })).collect();
        for _ in 0..10 {
            assert_eq!(admin.post("/api/v1/data/note/bulk", json!({ "data": records })).await.status, 201);
        }
        for loss in ["stripped", "banned"] {
            let (mallory, id, role) = member(&admin, loss, json!([{ "resource": "note", "actions": ["read"] }])).await;
            let mut export = mallory.request("GET", "/api/v1/data/note/export?format=ndjson").send().await.unwrap();
            assert_eq!(export.status(), 200);
            assert!(export.chunk().await.unwrap().is_some());
            let lost = match loss {
                "stripped" => admin.delete(&format!("/api/v1/users/{id}/roles/{role}")).await,
                _ => admin.patch(&format!("/api/v1/users/{id}"), json!({ "banned": true })).await,
            };
            assert!(lost.status < 300, "{loss}: {}", lost.text);
            // Bytes that are on their way still arrive. Then the connection breaks, so that the client does not take them for the
            // complete export.
            until("the export is cut off", async || server.log().matches("an export is cut off").count() > usize::from(loss == "banned")).await;
            let cut = loop {
                match export.chunk().await {
                    Ok(Some(_)) => {}
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
            assert!(cut, "{loss}: the client believes that it has everything");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_accounts_is_judged_in_its_transaction_on_every_instance() {
    let one = ServerBuilder::new(Engine::Postgres).start().await;
    let other = one.builder().start().await;
    let admin = one.admin().await;
    let (_, accomplice, _) = member(&admin, "accomplice", json!([])).await;
    let (mallory, id, role) = member(&admin, "mallory", everything()).await;
    // The other instance may not know of the change yet.
    let there = other.with_token(mallory.token.clone());
    let given = Waiting::begin(&there, "POST", &format!("/api/v1/users/{accomplice}/roles"), json!({ "roleId": "admin" })).await;
    let made = Waiting::begin(&there, "POST", "/api/v1/roles", json!({ "name": "late", "permissions": everything() })).await;
    assert_eq!(admin.delete(&format!("/api/v1/users/{id}/roles/{role}")).await.status, 204);
    for request in [given, made] {
        let (status, answer) = request.end().await;
        assert_eq!(status, 403, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_waits_for_others_is_judged_again_before_its_commit() {
    let server = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    let (mallory, id, _) = member(&admin, "mallory", everything()).await;
    let lock = server.hold_writes("task").await;
    let lose = async {
        until("the write waits", async || server.sql(HELD).await[0][0] == "1").await;
        assert_eq!(admin.patch(&format!("/api/v1/users/{id}"), json!({ "banned": true })).await.status, 200);
        lock.release().await;
    };
    let (answer, ()) = tokio::join!(mallory.post("/api/v1/data/task", json!({ "title": "late" })), lose);
    answer.expect_error(401, "unauthorized");
    assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_shows_nothing_to_somebody_who_lost_their_rights_while_it_ran_or_waited() {
    for (loss, status) in [("stripped", 403), ("banned", 401)] {
        let server = ServerBuilder::new(Engine::Postgres).start().await;
        let admin = server.admin().await;
        admin.define("doc", json!([{ "name": "t", "type": "text" }])).await;
        admin.make("doc", json!({ "t": "x" })).await;
        let (eve, id, role) = member(&admin, &format!("eve_{loss}"), everything()).await;
        // The scans wait until the test lets them continue: two run, and the third waits for its permit.
        let lock = server.hold_reads("doc").await;
        let list = || eve.get("/api/v1/data/doc?t[ilike]=x");
        let released = async {
            until("both scans run", async || server.sql(HELD).await[0][0] == "2").await;
            let lost = match loss {
                "stripped" => admin.delete(&format!("/api/v1/users/{id}/roles/{role}")).await,
                _ => admin.patch(&format!("/api/v1/users/{id}"), json!({ "banned": true })).await,
            };
            assert!(lost.status < 300, "{loss}: {}", lost.text);
            lock.release().await;
        };
        let (first, second, third, ()) =
            tokio::join!(list(), eve.get("/api/v1/data/doc/aggregate?fn=count&t[ilike]=x"), list(), released);
        // On a slow machine, one of them may not have got a permit in time.
        let mut statuses = [first.status, second.status, third.status];
        statuses.sort_unstable();
        assert!(statuses[..2] == [status; 2] && [status, 503].contains(&statuses[2]), "{loss}: {statuses:?}");
    }
}

/// A server with eight connections, of which callers have five. A single caller leaves one of those to others.
fn with_few_connections() -> ServerBuilder {
    ServerBuilder::new(Engine::Postgres).env("SVC_DATABASE_MAX_CONNECTIONS", "8")
}
const CALLERS_CONNECTIONS: usize = 5;
const CONNECTIONS_OF_ONE: usize = CALLERS_CONNECTIONS - 1;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn looking_one_thing_up_takes_the_callers_connections_and_none_of_the_services() {
    let server = with_few_connections().start().await;
    let admin = server.admin().await;
    admin.define("doc", json!([{ "name": "t", "type": "text" }])).await;
    let record = admin.make("doc", json!({ "t": "x" })).await;
    let webhook =
        admin.post("/api/v1/webhooks", json!({ "url": "https://example.com/", "topics": ["data.none.#"] })).await.data();
    let installed = admin.install("", test_block("hostile").await.to_vec()).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    let (eve, id, role) = member(&admin, "eve", everything()).await;
    let event = admin.get("/api/v1/events?limit=1").await.data()[0]["id"].as_str().unwrap().to_owned();
    let paths = [
        format!("/api/v1/webhooks/{}", webhook["id"].as_str().unwrap()),
        "/api/v1/tasks/event-retention".to_owned(),
        "/api/v1/tasks/event-retention/runs".to_owned(),
        format!("/api/v1/roles/{role}"),
        format!("/api/v1/roles/{role}/permissions"),
        format!("/api/v1/users/{id}"),
        "/api/v1/blocks/hostile".to_owned(),
        "/api/v1/me/preferences".to_owned(),
        format!("/api/v1/events/deliveries/{event}/nobody"),
        format!("/api/v1/events?before={event}"),
        format!("/api/v1/events/stream?since={event}"),
    ];
    for path in &paths[..8] {
        assert_eq!(eve.get(path).await.status, 200, "{path}");
    }
    let (bob, ..) = member(&admin, "bob", everything()).await;
    let lock = server.hold_reads("doc").await;
    let held = |count: usize| {
        let server = &server;
        async move { until("connections are in use", async || server.sql(HELD).await[0][0] == count.to_string()).await }
    };
    let path = format!("/api/v1/data/doc/{record}");
    let of_admin = join_all((0..CONNECTIONS_OF_ONE).map(|_| admin.get(&path)));
    // The last connection is for callers with few connections, so the caller with many has to begin first.
    let of_bob = async {
        held(CONNECTIONS_OF_ONE).await;
        bob.get(&path).await
    };
    let looked_up = async {
        held(CALLERS_CONNECTIONS).await;
        let who = &eve;
        let answers = join_all(paths.iter().map(|path| async move { (path, who.get(path).await) })).await;
        // The service has its own connections. On a machine that stands still, one of them may not be free in time.
        let known = json!({ "email": "eve@example.com", "password": "correct horse battery" });
        for (method, path, body) in [("GET", "/readyz", None), ("POST", "/api/auth/sign-in/email", Some(known))] {
            until(path, async || server.call(method, path, body.clone()).await.status == 200).await;
        }
        held(CALLERS_CONNECTIONS).await;
        lock.release().await;
        answers
    };
    let (of_admin, of_bob, answers) = tokio::join!(of_admin, of_bob, looked_up);
    for (path, answer) in answers {
        assert_eq!((answer.status, &answer.json()["error"]), (503, &json!("unavailable")), "{path}: {}", answer.text);
    }
    assert!(of_admin.iter().chain([&of_bob]).all(|answer| answer.status == 200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn looking_one_thing_up_shows_nothing_to_somebody_who_was_banned_while_it_ran_or_waited() {
    let server = with_few_connections().start().await;
    let admin = server.admin().await;
    let (eve, id, _) = member(&admin, "eve", everything()).await;
    assert_eq!(eve.patch("/api/v1/me/preferences", json!({ "secret": "s" })).await.status, 200);
    let lock = server.hold_reads("svc_preferences").await;
    let looked_up = join_all((0..CONNECTIONS_OF_ONE + 2).map(|_| eve.get("/api/v1/me/preferences")));
    let banned = async {
        until("some run, and the others wait", async || server.sql(HELD).await[0][0] == CONNECTIONS_OF_ONE.to_string()).await;
        assert_eq!(admin.patch(&format!("/api/v1/users/{id}"), json!({ "banned": true })).await.status, 200);
        lock.release().await;
    };
    let (answers, ()) = tokio::join!(looked_up, banned);
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    // On a slow machine, some of those that waited may not have got a connection in time.
    assert!(statuses[..CONNECTIONS_OF_ONE] == [401; CONNECTIONS_OF_ONE], "{statuses:?}");
    assert!(statuses[CONNECTIONS_OF_ONE..].iter().all(|status| [401, 503].contains(status)), "{statuses:?}");
}

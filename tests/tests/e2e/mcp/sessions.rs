//! Sessions and their streams: their owners, their ends, and the calls that end together with them.

use std::time::Duration;

use blockbase_tests::{Admin, Engine, ServerBuilder, inspect, on_both_engines, pack, test_block, until};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{BOTH, Client, call, initialization, make_schema, user_with};

/// Installs a block with an action that writes batches of records until it is stopped.
async fn install_writer(admin: &Admin<'_>) {
    let file = test_block("hostile").await;
    let mut manifest: Value = inspect(file.clone()).await;
    manifest["permissions"] = json!({ "data": [{ "resource": "task", "actions": ["create"] }] });
    let installed = admin.install("", pack(file, manifest).await.unwrap()).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
}

on_both_engines! {
    async fn a_session_is_that_of_who_began_it(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        let all = json!([{ "resource": "*", "actions": ["manage"] }]);
        let ann = user_with(&admin, "ann", all).await;
        let mine = Client::of(&admin).begin().await;
        let key = admin.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "admin" })).await.json()["key"].as_str().unwrap().to_owned();
        admin.patch("/api/v1/roles/public", json!({ "permissions": [{ "resource": "task", "actions": ["read"] }] })).await.data();
        for credential in [Some(ann.token.clone()), Some(key), None] {
            let other = Client { credential, ..mine.clone() };
            for answer in [other.ask("tools/list", json!({})).await, server.send(other.request("GET")).await, server.send(other.request("DELETE")).await] {
                assert_eq!((answer.status, &answer.json()["error"]["code"]), (404, &json!(-32001)), "{}", answer.text);
            }
        }
        // If another session of the same user is used, the principal is still the same.
        let body = json!({ "email": "admin@example.com", "password": "correct horse battery" });
        let again = server.call("POST", "/api/auth/sign-in/email", Some(body)).await.json()["token"].as_str().unwrap().to_owned();
        let again = Client { credential: Some(again), ..mine.clone() };
        assert_eq!(again.tool_names().await.len(), 15);
        assert_eq!(mine.ask("initialize", initialization()).await.status, 400);

        let mut stream = mine.listen().await;
        assert_eq!(server.send(mine.request("DELETE")).await.status, 204);
        stream.ends().await;
        for answer in [mine.ask("ping", json!({})).await, server.send(mine.request("GET")).await, server.send(mine.request("DELETE")).await] {
            assert_eq!(answer.status, 404, "{}", answer.text);
        }
        // A client that asks for no session gets none.
        let request = server.request("POST", "/api/v1/mcp?sessions=none").bearer_auth(&admin.token).header("accept", BOTH);
        let begun = server.send(request.json(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialization() }))).await;
        assert_eq!((begun.status, begun.headers.contains_key("mcp-session-id")), (200, false));
        let request = server.request("GET", "/api/v1/mcp?sessions=none").bearer_auth(&admin.token).header("accept", BOTH);
        assert_eq!(server.send(request).await.status, 405);
    }

    async fn streams_end_with_the_rights_of_their_caller(server: Server) {
        let admin = server.admin().await;
        make_schema(&admin).await;
        let reader = json!([{ "resource": "data", "actions": ["read"] }, { "resource": "task", "actions": ["read"] }]);
        let ann = user_with(&admin, "ann", reader.clone()).await;
        let ben = user_with(&admin, "ben", reader).await;
        let made = admin.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "ann" })).await.json();
        let by_key = Client { credential: made["key"].as_str().map(str::to_owned), ..Client::of(&admin) }.begin().await;
        let (signed_in, gated) = (Client::of(&ann).begin().await, Client::of(&ben).begin().await);
        let (mut one, mut two, mut three) = (by_key.listen().await, signed_in.listen().await, gated.listen().await);
        assert_eq!(admin.delete(&format!("/api/v1/api-keys/{}", made["data"]["id"].as_str().unwrap())).await.status, 204);
        one.ends().await;
        assert_eq!(ann.post("/api/auth/sign-out", json!({})).await.status, 200);
        two.ends().await;
        three.stays_quiet(Duration::from_millis(1500)).await;
        admin.patch("/api/v1/roles/ben", json!({ "permissions": [] })).await.data();
        three.ends().await;
    }

    async fn a_client_that_hangs_up_or_cancels_stops_the_action(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        install_writer(&admin).await;
        let client = Client::of(&admin);
        let in_session = client.clone().begin().await;
        let count = async || server.sql("SELECT count(*) FROM task").await[0][0].parse::<usize>().unwrap();
        let writing = json!({ "object": "task", "batch": 20 }).to_string();
        let body = call("hostile_keep_writing", &writing);
        for way in ["hangs up", "hangs up in a session", "cancels"] {
            let before = count().await;
            let who = if way == "hangs up" { &client } else { &in_session };
            let begun = async {
                while count().await == before {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            if way == "cancels" {
                let cancel = async {
                    begun.await;
                    let cancelled = who.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
                    assert_eq!(cancelled.status, 202);
                };
                let (answer, ()) = tokio::join!(who.send(body.clone()), cancel);
                assert_eq!((answer.status, answer.text.as_str()), (202, ""));
            } else {
                tokio::select! {
                    ended = who.send(body.clone()) => panic!("{} {}", ended.status, ended.text),
                    () = begun => {}
                }
            }
            // The batch that was about to be committed may still be committed.
            until(&format!("the call has ended after its client {way}"), async || {
                let last = count().await;
                tokio::time::sleep(Duration::from_millis(1000)).await;
                count().await == last
            })
            .await;
            assert!(count().await > before);
        }
        assert_eq!(in_session.call("query_data", json!({ "object_name": "task", "limit": 1 })).await.document()["data"].as_array().unwrap().len(), 1);
    }

    async fn many_sessions_at_once_keep_apart(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let own = json!([{ "resource": "data", "actions": ["read"] }, { "resource": "task", "actions": ["manage"], "rowPolicy": "own" }]);
        let role = admin.post("/api/v1/roles", json!({ "name": "own", "permissions": own })).await;
        assert_eq!(role.status, 201);
        let mut users = Vec::new();
        for number in 0..6 {
            let user = server.with_token(server.sign_up(&format!("user{number}")).await);
            let id = user.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
            assert_eq!(admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": "own" })).await.status, 200);
            users.push(user);
        }
        // Each user has several sessions at the same time, and each session sees only its own user's records.
        let work = users.iter().enumerate().flat_map(|(number, user)| (0..5).map(move |turn| (number, turn, Client::of(user))));
        join_all(work.map(async |(number, turn, client)| {
            let client = client.begin().await;
            let mut stream = client.listen().await;
            for round in 0..5 {
                let data = json!({ "title": format!("{number} {turn} {round}") });
                client.call("create_record", json!({ "object_name": "task", "data": data })).await.document();
            }
            let listed = client.call("query_data", json!({ "object_name": "task", "limit": 100 })).await.document();
            let titles = listed["data"].as_array().unwrap().iter().map(|row| row["title"].as_str().unwrap().to_owned());
            assert!(titles.into_iter().all(|title| title.starts_with(&format!("{number} "))), "{listed}");
            assert_eq!(server.send(client.request("DELETE")).await.status, 204);
            stream.ends().await;
        }))
        .await;
        assert_eq!(server.sql("SELECT count(*) FROM task").await[0][0], "150");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_one_session_are_bounded_and_end_when_the_server_drains() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    let client = Client::of(&admin).begin().await;
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push(client.listen().await);
    }
    let refused = server.send(client.request("GET")).await;
    assert_eq!((refused.status, &refused.json()["error"]["data"]["error"]), (429, &json!("rate_limited")), "{}", refused.text);
    server.signal("TERM");
    for mut stream in streams {
        stream.ends().await;
    }
    assert!(server.ended().await.success());
}

//! The sessions of a user, for administrators who list and end them. Also the users with a role, and the effective rights of a role.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use blockbase_tests::{Admin, Answer, Engine, Server, ServerBuilder, on_both_engines, until, within};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::accounts::roles::{key, role, user};
use crate::events::Stream;

const PASSWORD: &str = "correct horse battery";
/// Longer than it takes until a session's end applies on another instance, and shorter than identities are cached.
const FOLLOWS: Duration = Duration::from_millis(2000);

async fn sign_in<'a>(server: &'a Server, name: &str) -> Admin<'a> {
    let body = json!({ "email": format!("{name}@example.com"), "password": PASSWORD });
    let request = server.request("POST", "/api/auth/sign-in/email").header("user-agent", "a browser").json(&body);
    let answer = server.send(request).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    server.with_token(answer.json()["token"].as_str().unwrap().to_owned())
}

fn ids(answer: &Answer) -> Vec<String> {
    answer.data().as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

async fn is_signed_in(who: &Admin<'_>) -> bool {
    who.get("/api/v1/me").await.json()["authenticated"] == true
}

/// Waits until a stream has ended.
async fn ends(mut stream: Stream) {
    let end = async { while stream.frame().await.is_some() {} };
    tokio::time::timeout(blockbase_tests::WAIT_MAX / 2, end).await.expect("an end of the stream");
}

on_both_engines! {
    async fn an_administrator_sees_and_ends_sessions(server: Server) {
        let admin = server.admin().await;
        let (first, id) = user(&admin, "ann", None).await;
        let second = sign_in(&server, "ann").await;
        let path = format!("/api/v1/users/{id}/sessions");
        let listed = admin.get(&path).await;
        let sessions = listed.data();
        assert_eq!(sessions.as_array().unwrap().len(), 2);
        let newest = &sessions[0];
        assert_eq!((&newest["ipAddress"], &newest["userAgent"], &newest["current"]), (&json!("127.0.0.1"), &json!("a browser"), &json!(false)));
        assert!(newest["createdAt"].as_str().unwrap() >= sessions[1]["createdAt"].as_str().unwrap());
        assert_eq!(newest["lastSeenAt"], newest["createdAt"]);
        assert!(newest["expiresAt"].as_str().unwrap() > newest["createdAt"].as_str().unwrap());
        assert_eq!(newest.as_object().unwrap().len(), 7, "{newest}");
        // The list has neither a token nor the hash of a token.
        for token in [&first.token, &second.token] {
            assert!(!listed.text.contains(token.as_str()));
        }
        let hashes = server.sql("SELECT token_hash FROM svc_sessions").await.concat();
        assert!(hashes.len() == 3 && !hashes.iter().any(|hash| listed.text.contains(hash)));

        // A stream ends with its session. The other session continues.
        let stream = Stream::open(&second, "").await;
        let session = ids(&listed)[0].clone();
        assert_eq!(admin.delete(&format!("{path}/{session}")).await.status, 204);
        assert!(!is_signed_in(&second).await && is_signed_in(&first).await);
        second.get("/api/v1/events/stream").await.expect_error(401, "unauthorized");
        ends(stream).await;
        admin.delete(&format!("{path}/{session}")).await.expect_error(404, "not_found");

        let own = admin.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        let of_admin = ids(&admin.get(&format!("/api/v1/users/{own}/sessions")).await)[0].clone();
        assert_eq!(admin.get(&format!("/api/v1/users/{own}/sessions")).await.data()[0]["current"], true);
        // The path accepts only ids of this user's sessions: not the session of somebody else, a token or a hash.
        for foreign in [of_admin.as_str(), first.token.as_str(), hashes[0].as_str(), "nothing", "%27%20OR%201=1--", &"x".repeat(5000)] {
            admin.delete(&format!("{path}/{foreign}")).await.expect_error(404, "not_found");
        }
        assert!(is_signed_in(&first).await && is_signed_in(&admin).await);

        for _ in 0..3 {
            sign_in(&server, "ann").await;
        }
        assert_eq!(admin.delete(&path).await.data(), json!({ "count": 4 }));
        assert!(!is_signed_in(&first).await);
        assert_eq!(admin.get(&path).await.data(), json!([]));
        assert_eq!(admin.delete(&path).await.data(), json!({ "count": 0 }));
        // A user who was signed out can sign in again.
        assert!(is_signed_in(&sign_in(&server, "ann").await).await);

        let missing = "/api/v1/users/01a1fd35-a2b2-7324-8e3c-28e87a2e40f9/sessions";
        admin.get(missing).await.expect_error(404, "not_found");
        admin.delete(missing).await.expect_error(404, "not_found");
        admin.delete(&format!("{missing}/x")).await.expect_error(404, "not_found");
        admin.get("/api/v1/users/%00/sessions").await.expect_error(400, "invalid_request");
        // The last admin may be signed out, because they can sign in again.
        assert_eq!(admin.delete(&format!("/api/v1/users/{own}/sessions")).await.data(), json!({ "count": 1 }));
        admin.get("/api/v1/users").await.expect_error(401, "unauthorized");
        assert_eq!(sign_in(&server, "admin").await.get("/api/v1/users").await.status, 200);
    }

    async fn nobody_ends_sessions_of_who_is_stronger(server: Server) {
        let admin = server.admin().await;
        let own = admin.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        role(&admin, "keeper", json!([{ "resource": "users", "actions": ["read", "update"] }])).await;
        role(&admin, "writer", json!([{ "resource": "task", "actions": ["create"] }])).await;
        role(&admin, "oneself", json!([{ "resource": "users", "actions": ["read", "update"], "rowPolicy": "own" }])).await;
        role(&admin, "reader", json!([{ "resource": "users", "actions": ["read"] }])).await;
        let (keeper, keeper_id) = user(&admin, "keeper", Some("keeper")).await;
        let (plain, plain_id) = user(&admin, "plain", None).await;
        let (writer, writer_id) = user(&admin, "writer", Some("writer")).await;
        let (oneself, oneself_id) = user(&admin, "oneself", Some("oneself")).await;
        let (reader, _) = user(&admin, "reader", Some("reader")).await;
        let sessions = |id: &str| format!("/api/v1/users/{id}/sessions");
        for id in [&own, &writer_id] {
            let session = ids(&keeper.get(&sessions(id)).await)[0].clone();
            keeper.delete(&sessions(id)).await.expect_error(403, "forbidden");
            keeper.delete(&format!("{}/{session}", sessions(id))).await.expect_error(403, "forbidden");
            // A caller who may not act on the user cannot find out whether the session exists.
            keeper.delete(&format!("{}/nothing", sessions(id))).await.expect_error(403, "forbidden");
        }
        assert!(is_signed_in(&admin).await && is_signed_in(&writer).await);
        // The rights of a key that acts as a user count as that user's rights.
        key(&admin, json!({ "name": "k", "roleId": "writer", "userId": plain_id })).await;
        keeper.delete(&sessions(&plain_id)).await.expect_error(403, "forbidden");
        assert!(is_signed_in(&plain).await);
        let keys = admin.get("/api/v1/api-keys").await.data();
        assert_eq!(admin.delete(&format!("/api/v1/api-keys/{}", keys[0]["id"].as_str().unwrap())).await.status, 204);
        assert_eq!(keeper.delete(&sessions(&plain_id)).await.data(), json!({ "count": 1 }));
        assert!(!is_signed_in(&plain).await);

        // A right to oneself only covers oneself.
        assert_eq!(ids(&oneself.get(&sessions(&oneself_id)).await).len(), 1);
        for id in [&own, &keeper_id] {
            oneself.get(&sessions(id)).await.expect_error(404, "not_found");
            oneself.delete(&sessions(id)).await.expect_error(404, "not_found");
        }
        assert_eq!(oneself.delete(&sessions(&oneself_id)).await.data(), json!({ "count": 1 }));
        assert!(!is_signed_in(&oneself).await);
        reader.delete(&sessions(&keeper_id)).await.expect_error(403, "forbidden");
        writer.get(&sessions(&keeper_id)).await.expect_error(403, "forbidden");
        server.call("GET", &sessions(&own), None).await.expect_error(401, "unauthorized");
        server.call("DELETE", &sessions(&own), None).await.expect_error(401, "unauthorized");

        // A key has no session of its own. It can end its user's sessions if its role allows that.
        let (by_key, _) = key(&admin, json!({ "name": "k", "roleId": "keeper", "userId": keeper_id })).await;
        assert_eq!(by_key.get(&sessions(&keeper_id)).await.data()[0]["current"], false);
        assert_eq!(by_key.delete(&sessions(&keeper_id)).await.data(), json!({ "count": 1 }));
        assert!(!is_signed_in(&keeper).await);
    }

    async fn a_user_has_a_hundred_sessions_and_those_used_least_recently_end(server: Server) {
        let admin = server.admin().await;
        let (first, id) = user(&admin, "ann", None).await;
        let idle = sign_in(&server, "ann").await;
        let path = format!("/api/v1/users/{id}/sessions");
        let idle_id = ids(&admin.get(&path).await)[0].clone();
        // An earlier version of the server allowed more sessions. So the test adds 150 sessions, used a second apart, and an
        // expired one.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        server
            .sql(&format!(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150) \
                 INSERT INTO svc_sessions (id, token_hash, user_id, expires_at, created_at, updated_at, is_bootstrap, last_seen_at) \
                 SELECT 'old-' || i, 'hash-' || i, '{id}', {now} + 3600000, {now} - 3600000 - 1000 * i, {now} - 3600000, FALSE, \
                 {now} - 60000 - 1000 * i FROM n"
            ))
            .await;
        server.sql("UPDATE svc_sessions SET expires_at = 1 WHERE id = 'old-1'").await;
        let page = async |query: &str| admin.get(&format!("{path}{query}")).await;
        let listed = page("").await;
        assert_eq!(
            listed.json()["pagination"],
            json!({ "page": 1, "pageSize": 25, "totalCount": 151, "totalPages": 7, "hasNextPage": true, "hasPreviousPage": false })
        );
        assert_eq!((ids(&listed).len(), &ids(&listed)[0]), (25, &idle_id));
        assert_eq!(ids(&page("?limit=1000").await).len(), 100);
        let last = page("?page=7").await;
        assert_eq!((ids(&last)[0].as_str(), last.json()["pagination"]["hasNextPage"].clone()), ("old-150", json!(false)));
        assert_eq!(ids(&page("?limit=2&offset=3").await), ["old-3", "old-4"]);
        for wrong in ["?page=0", "?limit=x", "?search=a", "?current=true"] {
            page(wrong).await.expect_error(400, "invalid_request");
        }
        let own = first.get("/api/auth/list-sessions").await.json();
        assert_eq!((own.as_array().unwrap().len(), own[0]["id"].as_str()), (100, Some(idle_id.as_str())));

        // The next sign-in leaves a hundred sessions, including the new one. The others end at once, with their streams.
        assert!(is_signed_in(&idle).await);
        let stream = Stream::open(&idle, "").await;
        server.sql(&format!("UPDATE svc_sessions SET last_seen_at = 1000 WHERE id = '{idle_id}'")).await;
        let newest = sign_in(&server, "ann").await;
        assert!(!is_signed_in(&idle).await && is_signed_in(&first).await && is_signed_in(&newest).await);
        ends(stream).await;
        let kept = page("?limit=100").await;
        assert_eq!(kept.json()["pagination"]["totalCount"], 100);
        let mut old: Vec<String> = ids(&kept).into_iter().filter(|id| id.starts_with("old-")).collect();
        assert_eq!((old.len(), old.pop().as_deref()), (98, Some("old-99")));
        let stored = async || server.sql(&format!("SELECT count(*) FROM svc_sessions WHERE user_id = '{id}'")).await;
        assert_eq!(stored().await, [["100"]]);
        // Several sign-ins at the same time keep the limit.
        let newer = join_all((0..6).map(|_| sign_in(&server, "ann"))).await;
        assert_eq!(stored().await, [["100"]]);
        for who in &newer {
            assert!(is_signed_in(who).await);
        }
        // If there is room, no session ends.
        assert_eq!(admin.delete(&format!("{path}/old-2")).await.status, 204);
        sign_in(&server, "ann").await;
        assert_eq!(stored().await, [["100"]]);
        assert!(is_signed_in(&first).await);
        assert_eq!(admin.delete(&path).await.data(), json!({ "count": 100 }));
        assert!(is_signed_in(&admin).await);
    }

    async fn sessions_that_end_together_are_counted_once(server: Server) {
        let admin = server.admin().await;
        let (_, id) = user(&admin, "ann", None).await;
        join_all((0..9).map(|_| sign_in(&server, "ann"))).await;
        let path = format!("/api/v1/users/{id}/sessions");
        assert_eq!(ids(&admin.get(&path).await).len(), 10);
        let ended = join_all((0..6).map(|_| admin.delete(&path))).await;
        let counts: Vec<i64> = ended.iter().map(|answer| answer.data()["count"].as_i64().unwrap()).collect();
        assert_eq!(counts.iter().sum::<i64>(), 10, "{counts:?}");
        let session = { sign_in(&server, "ann").await; ids(&admin.get(&path).await)[0].clone() };
        let ended = join_all((0..6).map(|_| { let one = format!("{path}/{session}"); let admin = &admin; async move { admin.delete(&one).await.status } })).await;
        assert_eq!(ended.iter().filter(|status| **status == 204).count(), 1, "{ended:?}");
        assert_eq!(ended.iter().filter(|status| **status == 404).count(), 5, "{ended:?}");
    }

    async fn a_use_after_some_minutes_is_noted(server: Server) {
        let admin = server.admin().await;
        let (ann, id) = user(&admin, "ann", None).await;
        let path = format!("/api/v1/users/{id}/sessions");
        let long_ago = "UPDATE svc_sessions SET last_seen_at = 1000 WHERE user_id";
        server.sql(&format!("{long_ago} = '{id}'")).await;
        assert_eq!(admin.get(&path).await.data()[0]["lastSeenAt"], "1970-01-01T00:00:01.000Z");
        until("the use is noted", async || {
            ann.get("/api/v1/me").await;
            admin.get(&path).await.data()[0]["lastSeenAt"].as_str().unwrap() > "2000"
        })
        .await;
        server.sql(&format!("UPDATE svc_sessions SET last_seen_at = NULL WHERE user_id = '{id}'")).await;
        assert_eq!(admin.get(&path).await.data()[0]["lastSeenAt"], Value::Null);
    }

    async fn users_are_found_by_role_and_text(server: Server) {
        let admin = server.admin().await;
        let writer = role(&admin, "writer", json!([])).await;
        for name in ["ann", "ben", "annabel"] {
            user(&admin, name, (name != "ben").then_some("writer")).await;
        }
        let found = async |query: &str| -> Vec<String> {
            let answer = admin.get(&format!("/api/v1/users{query}")).await;
            let mut names: Vec<String> = answer.data().as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
            assert_eq!(answer.json()["pagination"]["totalCount"], names.len(), "{query}");
            names.sort();
            names
        };
        assert_eq!(found("?role=writer").await, ["ann", "annabel"]);
        assert_eq!(found(&format!("?role={writer}")).await, ["ann", "annabel"]);
        assert_eq!(found("?role=writer&search=ABEL").await, ["annabel"]);
        assert_eq!(found("?role=admin").await, ["admin"]);
        assert_eq!(found("?search=%25").await, [""; 0]);
        for nobody in ["?role=nobody", "?role=public", "?role=Writer", "?role=%27%20OR%201=1--"] {
            assert_eq!(found(nobody).await, [""; 0], "{nobody}");
        }
        assert_eq!(found("?role=").await.len(), 4);
        let page = admin.get("/api/v1/users?role=writer&limit=1&offset=1").await.json();
        assert_eq!((page["data"][0]["name"].as_str(), &page["pagination"]["totalCount"]), (Some("ann"), &json!(2)));
        for wrong in ["?role=%00", "?roles=writer", "?role=writer&page=0"] {
            admin.get(&format!("/api/v1/users{wrong}")).await.expect_error(400, "invalid_request");
        }
        // With a right to oneself, a caller finds only themselves.
        role(&admin, "oneself", json!([{ "resource": "users", "actions": ["read"], "rowPolicy": "own" }])).await;
        let (own, _) = user(&admin, "own", Some("oneself")).await;
        assert_eq!(own.get("/api/v1/users?role=admin").await.data(), json!([]));
        assert_eq!(own.get("/api/v1/users?role=oneself").await.data().as_array().unwrap().len(), 1);
    }

    async fn a_role_is_shown_as_it_holds(server: Server) {
        let admin = server.admin().await;
        for name in ["task", "note", "hidden"] {
            admin.define(name, json!([{ "name": "title", "type": "text" }])).await;
        }
        let grants = json!([
            { "resource": "task", "actions": ["read", "create"], "rowPolicy": "own" },
            { "resource": "note", "actions": ["manage"] },
            { "resource": "users", "actions": ["read"], "rowPolicy": "own" },
            { "resource": "webhooks", "actions": ["read"], "rowPolicy": "own" },
            { "resource": "later", "actions": ["read"], "rowPolicy": "own" },
            { "resource": "shop:orders", "actions": ["read"], "rowPolicy": "own" },
        ]);
        let id = role(&admin, "writer", grants).await;
        let public = json!([{ "resource": "task", "actions": ["read"] }, { "resource": "*", "actions": ["delete"], "rowPolicy": "own" }]);
        assert_eq!(admin.patch("/api/v1/roles/public", json!({ "permissions": public })).await.status, 200);
        let shown = admin.get("/api/v1/roles/writer/permissions").await.data();
        assert_eq!((&shown["roleId"], &shown["name"]), (&json!(id), &json!("writer")));
        assert_eq!(admin.get(&format!("/api/v1/roles/{id}/permissions")).await.data(), shown);
        let rights = |shown: &Value, resource: &str| -> String {
            let row = shown["resources"].as_array().unwrap().iter().find(|row| row["resource"] == resource).unwrap();
            ["create", "read", "update", "delete", "manage"].map(|action| row[action].as_str().unwrap_or("-").to_owned()).join(" ")
        };
        for (resource, expected) in [
            ("*", "- - - own -"),
            ("task", "own all - own -"),
            ("note", "all all all all all"),
            ("hidden", "- - - own -"),
            ("later", "- own - own -"),
            // A grant for own rows has no effect on a resource without rows.
            ("users", "- own - own -"),
            ("webhooks", "- - - - -"),
            ("settings", "- - - - -"),
            ("shop:orders", "- - - - -"),
        ] {
            assert_eq!(rights(&shown, resource), expected, "{resource}");
        }
        // The rights that are shown are the rights in effect.
        let (ann, _) = user(&admin, "ann", Some("writer")).await;
        admin.make("task", json!({ "title": "not hers" })).await;
        assert_eq!(ann.get("/api/v1/data/task").await.data().as_array().unwrap().len(), 1);
        assert_eq!(ann.post("/api/v1/data/task", json!({ "title": "x" })).await.status, 201);
        assert_eq!(ann.get("/api/v1/data/hidden").await.status, 403);
        ann.get("/api/v1/webhooks").await.expect_error(403, "forbidden");
        let all = admin.get("/api/v1/roles/admin/permissions").await.data();
        assert!(all["resources"].as_array().unwrap().iter().all(|row| row["manage"] == "all"));

        // The list has only objects that the caller may know of, and those that the role itself names.
        role(&admin, "of roles", json!([{ "resource": "roles", "actions": ["read"] }])).await;
        let (looker, _) = user(&admin, "looker", Some("of roles")).await;
        admin.patch("/api/v1/roles/public", json!({ "permissions": [] })).await.data();
        let seen = looker.get("/api/v1/roles/writer/permissions").await;
        assert!(!seen.text.contains("\"hidden\"") && seen.text.contains("\"task\""), "{}", seen.text);
        admin.get("/api/v1/roles/nobody/permissions").await.expect_error(404, "not_found");
        admin.get("/api/v1/roles/%00/permissions").await.expect_error(400, "invalid_request");
        ann.get("/api/v1/roles/writer/permissions").await.expect_error(403, "forbidden");
        server.call("GET", "/api/v1/roles/writer/permissions", None).await.expect_error(401, "unauthorized");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_of_sessions_holds_on_every_instance() {
    let one = ServerBuilder::new(Engine::Postgres).start().await;
    let other = one.builder().start().await;
    let admin = one.admin().await;
    let (ann, id) = user(&admin, "ann", None).await;
    let there = other.with_token(ann.token.clone());
    let stream = Stream::open(&there, "").await;
    assert!(is_signed_in(&there).await);
    assert_eq!(admin.delete(&format!("/api/v1/users/{id}/sessions")).await.data(), json!({ "count": 1 }));
    let began = Instant::now();
    while is_signed_in(&there).await {
        assert!(began.elapsed() < within(FOLLOWS), "an end takes {:?} to hold elsewhere", began.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    ends(stream).await;
}

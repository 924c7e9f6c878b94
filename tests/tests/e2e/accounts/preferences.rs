//! The caller's own data: their preferences and their permissions.

use blockbase_tests::{Admin, Answer, Server, ServerBuilder, on_both_engines};
use futures_util::future::join_all;
use serde_json::{Value, json};

const PREFERENCES: &str = "/api/v1/me/preferences";
const PERMISSIONS: &str = "/api/v1/me/permissions";
const BYTES_MAX: usize = 64 * 1024;

async fn guest(server: &Server) -> Admin<'_> {
    let answer = server.call("POST", "/api/auth/sign-in/anonymous", None).await;
    server.with_token(answer.json()["token"].as_str().unwrap().to_owned())
}

async fn signed(who: &Admin<'_>, way: &str, name: &str) -> String {
    let body = json!({ "name": name, "email": format!("{name}@example.com"), "password": "correct horse battery" });
    let answer = who.post(&format!("/api/auth/{way}/email"), body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["token"].as_str().unwrap().to_owned()
}

async fn id_of(who: &Admin<'_>) -> String {
    who.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned()
}

/// Sends a body without changing it.
async fn send(who: &Admin<'_>, media_type: &str, body: impl Into<Vec<u8>>) -> Answer {
    who.server.send(who.request("PATCH", PREFERENCES).header("content-type", media_type).body(body.into())).await
}

/// A body that takes `bytes` bytes when it is stored.
fn of_size(bytes: usize) -> String {
    format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8))
}

async fn rows(server: &Server) -> String {
    server.sql("SELECT count(*) FROM svc_preferences").await[0][0].clone()
}

on_both_engines! {
    async fn everybody_keeps_their_own(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let admin = server.admin().await;
        let other = server.with_token(server.sign_up("other").await);
        let guest = guest(&server).await;
        for who in [&admin, &other, &guest] {
            assert_eq!(who.get(PREFERENCES).await.text, r#"{"data":{}}"#);
        }
        let set = admin.patch(PREFERENCES, json!({ "views": { "task": [{ "sort": "-due", "size": 9_007_199_254_740_993_i64 }] }, "theme": "dark" })).await;
        assert_eq!(set.text, r#"{"data":{"views":{"task":[{"sort":"-due","size":9007199254740993}]},"theme":"dark"}}"#);
        assert_eq!(guest.patch(PREFERENCES, json!({ "theme": "light" })).await.data(), json!({ "theme": "light" }));
        // Top-level members are replaced completely. Null removes a member.
        assert_eq!(admin.patch(PREFERENCES, json!({ "views": { "note": null }, "theme": null, "gone": null })).await.text, r#"{"data":{"views":{"note":null}}}"#);
        assert_eq!(admin.patch(PREFERENCES, json!({})).await.text, r#"{"data":{"views":{"note":null}}}"#);
        assert_eq!(admin.get(PREFERENCES).await.text, r#"{"data":{"views":{"note":null}}}"#);
        assert_eq!(other.get(PREFERENCES).await.data(), json!({}));
        assert_eq!(guest.get(PREFERENCES).await.data(), json!({ "theme": "light" }));
    }

    async fn keys_and_strangers_have_none(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        admin.patch(PREFERENCES, json!({ "theme": "dark" })).await.data();
        let key = admin.post("/api/v1/api-keys", json!({ "name": "all", "roleId": "admin" })).await.json()["key"].clone();
        let key = server.with_token(key.as_str().unwrap().to_owned());
        key.get(PREFERENCES).await.expect_error(403, "forbidden");
        key.patch(PREFERENCES, json!({ "theme": "light" })).await.expect_error(403, "forbidden");
        server.call("GET", PREFERENCES, None).await.expect_error(401, "unauthorized");
        server.call("PATCH", PREFERENCES, Some(json!({ "theme": "light" }))).await.expect_error(401, "unauthorized");
        assert_eq!(admin.get(PREFERENCES).await.data(), json!({ "theme": "dark" }));
        // A browser's cookie is a session too. Writes with it have to come from the console's own origin.
        let in_body = json!({ "email": "admin@example.com", "password": "correct horse battery" });
        let signed_in = server.call("POST", "/api/auth/sign-in/email", Some(in_body)).await;
        let cookie = signed_in.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let change = || server.request("PATCH", PREFERENCES).header("cookie", &cookie).json(&json!({ "theme": "blue" }));
        assert_eq!(server.send(change()).await.status, 403);
        assert_eq!(server.send(change().header("origin", "https://evil.example")).await.status, 403);
        assert_eq!(server.send(change().header("origin", &server.base)).await.data(), json!({ "theme": "blue" }));
    }

    async fn hostile_bodies_change_nothing(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        server.admin().await;
        let who = guest(&server).await;
        who.patch(PREFERENCES, json!({ "kept": 1 })).await.data();
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(50_000), "]".repeat(50_000));
        let many = format!("{{{}}}", (0..1001).map(|number| format!("\"k{number}\":0")).collect::<Vec<_>>().join(","));
        for body in [
            "", "null", "[]", "1", "\"a\"", "{", "{\"a\":}", "{\"a\":1,\"a\":2}", "{\"a\":\"\\ud800\"}", "{\"a\":\"\\u0000\"}",
            "{\"\\u0000\":1}", "{\"a\":NaN}", "{\"a\":1} {}", deep.as_str(), many.as_str(),
        ] {
            send(&who, "application/json", body).await.expect_error(400, "invalid_request");
        }
        send(&who, "application/json", vec![b'{', b'"', 0xff, b'"', b':', b'1', b'}']).await.expect_error(400, "invalid_request");
        send(&who, "text/plain", "{}").await.expect_error(415, "unsupported_media_type");
        send(&who, "application/json", of_size(BYTES_MAX + 1)).await.expect_error(413, "payload_too_large");
        send(&who, "application/json", of_size(300 * 1024)).await.expect_error(413, "payload_too_large");
        assert_eq!(who.get(PREFERENCES).await.data(), json!({ "kept": 1 }));
        // Names with a special meaning in JavaScript or elsewhere are ordinary names here.
        let odd = r#"{"kept":null,"__proto__":{"a":1},"constructor":"</script><script>alert(1)</script>","":"'; DROP TABLE svc_users; --","💥":"é"}"#;
        let stored = send(&who, "application/json", odd).await;
        assert_eq!(stored.text, format!(r#"{{"data":{}}}"#, odd.replace(r#""kept":null,"#, "")));
        assert_eq!(who.get(PREFERENCES).await.text, stored.text);
    }

    async fn all_of_it_has_a_bound(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let who = server.admin().await;
        // Spaces do not count towards the limit.
        let full = of_size(BYTES_MAX).replace(':', "  :\n ");
        assert_eq!(send(&who, "application/json", full).await.status, 200);
        // Stored members count towards the limit.
        let more = who.patch(PREFERENCES, json!({ "b": 1 })).await.expect_error(413, "payload_too_large");
        assert!(more["message"].as_str().unwrap().contains("65536"), "{more}");
        assert_eq!(who.get(PREFERENCES).await.data().as_object().unwrap().len(), 1);
        assert_eq!(who.patch(PREFERENCES, json!({ "a": null, "b": 1 })).await.data(), json!({ "b": 1 }));
        let keys = |from: usize, to: usize| Value::Object((from..to).map(|number| (format!("k{number}"), json!(0))).collect());
        assert_eq!(who.patch(PREFERENCES, keys(0, 999)).await.status, 200);
        who.patch(PREFERENCES, keys(999, 1001)).await.expect_error(413, "payload_too_large");
        assert_eq!(who.get(PREFERENCES).await.data().as_object().unwrap().len(), 1000);
    }

    async fn a_guest_keeps_little(engine: Engine) {
        const GUEST_BYTES_MAX: usize = 4 * 1024;
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        server.admin().await;
        let who = guest(&server).await;
        assert_eq!(send(&who, "application/json", of_size(GUEST_BYTES_MAX)).await.status, 200);
        for more in [of_size(GUEST_BYTES_MAX + 1), r#"{"b":1}"#.to_owned()] {
            let refused = send(&who, "application/json", more).await.expect_error(413, "payload_too_large");
            assert!(refused["message"].as_str().unwrap().contains("of a guest have 4096 bytes"), "{refused}");
        }
        let kept = who.get(PREFERENCES).await.data();
        assert_eq!((kept["a"].as_str().unwrap().len(), kept.as_object().unwrap().len()), (GUEST_BYTES_MAX - 8, 1));
        // A guest who signs up becomes a user.
        let ann = server.with_token(signed(&who, "sign-up", "ann").await);
        assert_eq!(ann.get(PREFERENCES).await.data(), kept);
        assert_eq!(send(&ann, "application/json", of_size(BYTES_MAX)).await.status, 200);
    }

    async fn changes_at_the_same_time_are_all_kept(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let who = server.admin().await;
        let changes = (0..30).map(|number| {
            let who = &who;
            async move { who.patch(PREFERENCES, json!({ format!("k{number}"): number })).await }
        });
        for answer in join_all(changes).await {
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
        let kept = who.get(PREFERENCES).await.data();
        assert!((0..30).all(|number| kept[format!("k{number}")] == number), "{kept}");
    }

    async fn they_go_along_with_a_guest_and_end_with_their_user(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let admin = server.admin().await;
        // A guest who signs up keeps their preferences.
        let first = guest(&server).await;
        first.patch(PREFERENCES, json!({ "from": "guest" })).await.data();
        let ann = server.with_token(signed(&first, "sign-up", "ann").await);
        assert_eq!(ann.get(PREFERENCES).await.data(), json!({ "from": "guest" }));
        first.get(PREFERENCES).await.expect_error(401, "unauthorized");
        // A user who signs in keeps their own preferences. The guest's preferences are taken over only if the user had none.
        let second = guest(&server).await;
        second.patch(PREFERENCES, json!({ "from": "another guest" })).await.data();
        let ann = server.with_token(signed(&second, "sign-in", "ann").await);
        assert_eq!(ann.get(PREFERENCES).await.data(), json!({ "from": "guest" }));
        let third = guest(&server).await;
        third.patch(PREFERENCES, json!({ "from": "a third guest" })).await.data();
        let also_admin = server.with_token(signed(&third, "sign-in", "admin").await);
        assert_eq!(also_admin.get(PREFERENCES).await.data(), json!({ "from": "a third guest" }));
        assert_eq!(rows(&server).await, "2");

        // Users who are deleted or erased leave no preferences.
        assert_eq!(admin.delete(&format!("/api/v1/users/{}", id_of(&ann).await)).await.status, 204);
        assert_eq!(rows(&server).await, "1");
        let bob = server.with_token(server.sign_up("bob").await);
        bob.patch(PREFERENCES, json!({ "secret": "of-bob" })).await.data();
        let erasure = json!({ "name": "erase", "type": "erase_user", "schedule": "0 4 1 1 *", "config": { "userId": id_of(&bob).await } });
        assert_eq!(admin.post("/api/v1/tasks", erasure).await.status, 201);
        assert_eq!(admin.post("/api/v1/tasks/erase/run", json!({})).await.data()["status"], "succeeded");
        assert_eq!(rows(&server).await, "1");
        bob.get(PREFERENCES).await.expect_error(401, "unauthorized");
        bob.patch(PREFERENCES, json!({ "secret": 1 })).await.expect_error(401, "unauthorized");
    }

    async fn permissions_are_those_of_all_roles_together(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let admin = server.admin().await;
        let all = json!([{ "resource": "*", "actions": ["manage"] }]);
        assert_eq!(admin.get(PERMISSIONS).await.data(), json!({ "enforced": true, "permissions": all }));
        server.call("GET", PERMISSIONS, None).await.expect_error(401, "unauthorized");
        let ann = server.with_token(server.sign_up("ann").await);
        assert_eq!(ann.get(PERMISSIONS).await.data(), json!({ "enforced": true, "permissions": [] }));
        for (name, grants) in [
            ("reader", json!([{ "resource": "*", "actions": ["read"] }])),
            ("writer", json!([
                { "resource": "task", "actions": ["create", "update", "read"], "rowPolicy": "own" },
                { "resource": "webhooks", "actions": ["create", "read", "update", "delete", "manage"] },
            ])),
        ] {
            assert_eq!(admin.post("/api/v1/roles", json!({ "name": name, "permissions": grants })).await.status, 201);
            let given = admin.post(&format!("/api/v1/users/{}/roles", id_of(&ann).await), json!({ "roleId": name })).await;
            assert_eq!(given.status, 200, "{}", given.text);
        }
        let grants = json!([{ "resource": "note", "actions": ["read"], "rowPolicy": "own" }, { "resource": "open", "actions": ["create"] }]);
        assert_eq!(admin.patch("/api/v1/roles/public", json!({ "permissions": grants })).await.status, 200);
        let merged = json!([
            { "resource": "*", "actions": ["read"] },
            // The grant for all rows includes own rows.
            { "resource": "note", "actions": ["read"] },
            { "resource": "open", "actions": ["create", "read"] },
            { "resource": "task", "actions": ["read"] },
            { "resource": "task", "actions": ["create", "update"], "rowPolicy": "own" },
            { "resource": "webhooks", "actions": ["manage"] },
        ]);
        assert_eq!(ann.get(PERMISSIONS).await.data()["permissions"], merged);
        // A guest has the rights of `public`, and a user keeps them after signing in.
        let public = json!([
            { "resource": "note", "actions": ["read"], "rowPolicy": "own" },
            { "resource": "open", "actions": ["create"] },
        ]);
        assert_eq!(guest(&server).await.get(PERMISSIONS).await.data()["permissions"], public);

        // A key has at most the rights of its maker.
        let grants = json!([{ "resource": "api_keys", "actions": ["create"] }, { "resource": "task", "actions": ["read"] }]);
        assert_eq!(admin.post("/api/v1/roles", json!({ "name": "maker", "permissions": grants })).await.status, 201);
        let key = admin.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "maker" })).await.json()["key"].clone();
        let key = server.with_token(key.as_str().unwrap().to_owned());
        let of_key = json!([{ "resource": "api_keys", "actions": ["create"] }, { "resource": "task", "actions": ["read"] }]);
        assert_eq!(key.get(PERMISSIONS).await.data()["permissions"], of_key);
        let inner = key.post("/api/v1/api-keys", json!({ "name": "inner", "roleId": "maker" })).await;
        assert_eq!(inner.status, 201, "{}", inner.text);
        let inner = server.with_token(inner.json()["key"].as_str().unwrap().to_owned());
        assert_eq!(inner.get(PERMISSIONS).await.data()["permissions"], of_key);
        let fewer = json!([{ "resource": "task", "actions": ["read"] }]);
        assert_eq!(admin.patch("/api/v1/roles/maker", json!({ "permissions": fewer })).await.status, 200);
        assert_eq!(inner.get(PERMISSIONS).await.data()["permissions"], fewer);
    }

    async fn without_enforcement_everybody_may_do_everything(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_REQUIRE_AUTH", "false").start().await;
        let everything = json!({ "enforced": false, "permissions": [{ "resource": "*", "actions": ["manage"] }] });
        assert_eq!(server.call("GET", PERMISSIONS, None).await.data(), everything);
        let ann = server.with_token(server.sign_up("ann").await);
        assert_eq!(ann.get(PERMISSIONS).await.data(), everything);
        // A request without a caller has no preferences.
        server.call("GET", PREFERENCES, None).await.expect_error(401, "unauthorized");
        assert_eq!(ann.patch(PREFERENCES, json!({ "a": 1 })).await.data(), json!({ "a": 1 }));
    }
}

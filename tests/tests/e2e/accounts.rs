//! Sign-up, sign-in, sign-out, and what callers may do by their roles.

pub(crate) mod adoption;
pub(crate) mod audit;
pub(crate) mod better_auth;
pub(crate) mod bootstrap;
pub(crate) mod borrowed_rights;
pub(crate) mod erasure;
pub(crate) mod guests;
pub(crate) mod mail;
pub(crate) mod mail_attacks;
pub(crate) mod mail_delivery;
pub(crate) mod people;
pub(crate) mod people_docs;
pub(crate) mod policies;
pub(crate) mod preferences;
pub(crate) mod recorded;
pub(crate) mod rights_moved;
pub(crate) mod rights_of_keys;
pub(crate) mod rights_of_things;
pub(crate) mod roles;
pub(crate) mod sessions;
pub(crate) mod sign_in_delays;
pub(crate) mod user_sessions;
pub(crate) mod view_as;

use blockbase_tests::{Engine, Server, ServerBuilder, on_both_engines};
use serde_json::{Value, json};

/// Starts a server on which everybody who signs up gets a role with these grants.
async fn server_with_role(engine: Engine, permissions: Value) -> Server {
    let server = ServerBuilder::new(engine).env("SVC_SIGNUP_ROLE", "member").start().await;
    let insert = format!("INSERT INTO svc_roles VALUES ('r-member', 'member', NULL, '{permissions}', 0, 0)");
    server.sql(&insert).await;
    server
}

on_both_engines! {
    async fn the_first_user_is_admin_and_no_other(server: Server) {
        assert_eq!(server.call("GET", "/api/v1/me", None).await.json(), json!({ "authenticated": false }));
        let admin = server.admin().await;
        let me = admin.get("/api/v1/me").await.json();
        assert_eq!((&me["authenticated"], &me["roles"], &me["user"]["isAnonymous"]), (&json!(true), &json!(["admin"]), &json!(false)));
        admin.make_task_object().await;

        let second = server.with_token(server.sign_up("second").await);
        assert_eq!(second.get("/api/v1/me").await.json()["roles"], json!([]));
        second.get("/api/v1/data/task").await.expect_error(403, "forbidden");
        second.get("/api/v1/data/nothing").await.expect_error(403, "forbidden");
        second.post("/api/v1/objects", json!({ "name": "x" })).await.expect_error(403, "forbidden");
        second.get("/api/v1/blocks").await.expect_error(403, "forbidden");
        assert_eq!(second.get("/api/v1/data").await.data(), json!([]));
        server.call("GET", "/api/v1/data/task", None).await.expect_error(401, "unauthorized");
        server.call("POST", "/api/v1/data/task", Some(json!({ "title": "x" }))).await.expect_error(401, "unauthorized");
    }

    async fn sign_up_and_sign_in_refuse_in_the_protocols_words(server: Server) {
        let post = async |path: &str, body: Value| server.call("POST", path, Some(body)).await;
        server.sign_up("ann").await;
        for (body, status, code) in [
            (json!({ "name": "x", "email": "ANN@example.com", "password": "long enough" }), 422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"),
            (json!({ "name": "x", "email": "b@example.com", "password": "short" }), 400, "PASSWORD_TOO_SHORT"),
            (json!({ "name": "x", "email": "b@example.com", "password": "x".repeat(129) }), 400, "PASSWORD_TOO_LONG"),
            (json!({ "name": "x", "email": "nobody", "password": "long enough" }), 400, "VALIDATION_ERROR"),
            (json!({ "name": "x", "email": "b@example.com" }), 400, "VALIDATION_ERROR"),
            (json!({ "name": 1, "email": "b@example.com", "password": "long enough" }), 400, "VALIDATION_ERROR"),
        ] {
            let answer = post("/api/auth/sign-up/email", body).await;
            assert_eq!((answer.status, answer.json()["code"].as_str()), (status, Some(code)), "{}", answer.text);
            assert_eq!(answer.json()["error"], code);
        }
        let wrong = post("/api/auth/sign-in/email", json!({ "email": "ann@example.com", "password": "wrong password" })).await;
        let unknown = post("/api/auth/sign-in/email", json!({ "email": "bob@example.com", "password": "wrong password" })).await;
        assert_eq!((wrong.status, &wrong.text), (401, &unknown.text));
        assert_eq!(wrong.json()["code"], "INVALID_EMAIL_OR_PASSWORD");

        // Roles and ids in the body have no effect.
        let body = json!({ "name": "m", "email": "m@example.com", "password": "long enough", "role": "admin", "isAnonymous": true, "id": "x" });
        let mallory = post("/api/auth/sign-up/email", body).await.json();
        assert_ne!(mallory["user"]["id"], "x");
        let me = server.with_token(mallory["token"].as_str().unwrap().to_owned()).get("/api/v1/me").await.json();
        assert_eq!((&me["roles"], &me["user"]["isAnonymous"]), (&json!([]), &json!(false)));
    }

    async fn a_session_is_shown_in_three_ways_and_ends_at_once(server: Server) {
        server.sign_up("ann").await;
        let body = json!({ "email": "ann@example.com", "password": "correct horse battery" });
        let answer = server.call("POST", "/api/auth/sign-in/email", Some(body)).await;
        assert_eq!((answer.status, &answer.json()["redirect"]), (200, &json!(false)));
        let token = answer.json()["token"].as_str().unwrap().to_owned();
        assert_eq!(answer.headers["set-auth-token"], token.as_str());
        let cookie = answer.headers["set-cookie"].to_str().unwrap().to_owned();
        assert!(cookie.starts_with("svc.session_token=") && cookie.contains("Max-Age=604800; Path=/; HttpOnly; SameSite=Lax"), "{cookie}");
        let pair = cookie.split(';').next().unwrap().to_owned();
        let is_known = async |request: reqwest::RequestBuilder| server.send(request).await.json()["authenticated"] == true;
        let me = || server.request("GET", "/api/v1/me");
        assert!(is_known(me().header("cookie", &pair)).await);
        assert!(is_known(me().header("authorization", format!("bearer {token}"))).await);
        assert!(is_known(me().bearer_auth(pair.split_once('=').unwrap().1)).await);
        let forged = format!("{}x", pair.trim_end_matches("%3D"));
        assert!(!is_known(me().header("cookie", forged)).await);
        assert!(!is_known(me().bearer_auth("nonsense")).await);
        // An invalid bearer value is an error if the route needs a caller.
        server.send(server.request("GET", "/api/v1/data").bearer_auth("nonsense")).await.expect_error(401, "unauthorized");
        server.send(server.request("GET", "/api/v1/data").header("x-api-key", "svc_x")).await.expect_error(401, "unauthorized");

        // A cookie can write only from the service's own origin.
        let post = || server.request("POST", "/api/v1/objects").header("cookie", &pair).json(&json!({ "name": "x" }));
        assert_eq!(server.send(post()).await.json()["code"], "MISSING_OR_NULL_ORIGIN");
        assert_eq!(server.send(post().header("origin", "http://evil.example")).await.json()["code"], "INVALID_ORIGIN");
        assert_eq!(server.send(post().header("origin", &server.base)).await.status, 201);

        let out = server.send(server.request("POST", "/api/auth/sign-out").bearer_auth(&token)).await;
        assert_eq!(out.json(), json!({ "success": true }));
        assert!(out.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
        assert!(!is_known(me().bearer_auth(&token)).await);
        assert_eq!(server.send(server.request("GET", "/api/auth/get-session").bearer_auth(&token)).await.text, "null");
        assert!(server.sql("SELECT token_hash FROM svc_sessions").await.iter().all(|row| row[0] != token));
    }
}

async fn own_rows(engine: Engine) {
    let grants = json!([{ "resource": "task", "actions": ["create", "read", "update", "delete"], "rowPolicy": "own" }]);
    let server = server_with_role(engine, grants).await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    let ann = server.with_token(server.sign_up("ann").await);
    let bob = server.with_token(server.sign_up("bob").await);
    let make = async |who: &blockbase_tests::Admin<'_>, title: &str| {
        let made = who.post("/api/v1/data/task", json!({ "title": title })).await.data();
        format!("/api/v1/data/task/{}", made["id"].as_str().unwrap())
    };
    let (of_ann, of_bob) = (make(&ann, "of ann").await, make(&bob, "of bob").await);

    let seen = ann.get("/api/v1/data/task?search=of").await.json();
    assert_eq!((&seen["data"].as_array().unwrap().len(), &seen["pagination"]["totalCount"]), (&1, &json!(1)));
    assert_eq!(ann.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 1);
    assert_eq!(admin.get("/api/v1/data/task").await.json()["pagination"]["totalCount"], 2);
    assert_eq!(ann.get(&of_ann).await.status, 200);
    ann.get(&of_bob).await.expect_error(404, "not_found");
    ann.patch(&of_bob, json!({ "done": true })).await.expect_error(404, "not_found");
    ann.delete(&of_bob).await.expect_error(404, "not_found");
    assert_eq!(bob.get(&of_bob).await.data()["done"], false);
    assert_eq!(ann.patch(&of_ann, json!({ "done": true, "created_by": "bob" })).await.status, 200);
    assert_eq!(ann.delete(&of_ann).await.status, 204);
}

#[tokio::test]
async fn a_row_policy_hides_the_rows_of_others_on_sqlite() {
    own_rows(Engine::Sqlite).await;
}

#[tokio::test]
async fn a_row_policy_hides_the_rows_of_others_on_postgres() {
    own_rows(Engine::Postgres).await;
}

#[tokio::test]
async fn the_rate_limit_of_sign_in_answers_when_to_try_again() {
    let server = ServerBuilder::new(Engine::Sqlite).env("SVC_AUTH_RATE_LIMIT_RPM", "3").start().await;
    let body = json!({ "email": "a@example.com", "password": "wrong password" });
    let mut last = 0;
    for _ in 0..5 {
        let answer = server.call("POST", "/api/auth/sign-in/email", Some(body.clone())).await;
        last = answer.status;
        if last == 429 {
            assert!(answer.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
            answer.expect_error(429, "rate_limited");
        }
    }
    assert_eq!(last, 429);
    assert_eq!(server.call("GET", "/api/v1/me", None).await.status, 200);
}

#[tokio::test]
async fn the_rate_limit_counts_all_routes_but_health() {
    let server = ServerBuilder::new(Engine::Sqlite).env("SVC_RATE_LIMIT_RPM", "4").start().await;
    let statuses = async |method: &'static str, path: &'static str| {
        let mut statuses = Vec::new();
        for _ in 0..6 {
            statuses.push(server.send(server.request(method, path).header("origin", &server.base)).await.status);
        }
        statuses
    };
    assert_eq!(statuses("GET", "/healthz").await, [200; 6]);
    // Preflights count as well, and all routes share one limit.
    assert_eq!(statuses("OPTIONS", "/api/v1/data").await[4..], [429, 429]);
    let refused = server.call("GET", "/api/v1/me", None).await;
    refused.expect_error(429, "rate_limited");
    let of_protocol = server.call("GET", "/api/auth/get-session", None).await.json();
    assert_eq!((&of_protocol["code"], &of_protocol["error"]), (&json!("rate_limited"), &json!("rate_limited")));
    assert_eq!(server.call("GET", "/readyz", None).await.status, 200);
}

#[tokio::test]
async fn without_enforcement_everybody_may_do_everything() {
    let server = ServerBuilder::new(Engine::Sqlite).env("SVC_REQUIRE_AUTH", "false").start().await;
    assert_eq!(server.call("POST", "/api/v1/objects", Some(json!({ "name": "note" }))).await.status, 201);
    let made = server.call("POST", "/api/v1/data/note", Some(json!({}))).await.data();
    assert_eq!(made["created_by"], Value::Null);
    server.log_with("SVC_REQUIRE_AUTH=false").await;
}

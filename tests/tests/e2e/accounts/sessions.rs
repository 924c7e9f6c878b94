//! Sessions: how they are shown, extended, listed and ended, and attacks on them.

use blockbase_tests::{Admin, Answer, Engine, Server, ServerBuilder, on_both_engines};
use serde_json::{Value, json};

const PASSWORD: &str = "correct horse battery";
const DAY_MS: i64 = 24 * 3_600_000;

async fn post(server: &Server, path: &str, body: Value) -> Answer {
    server.call("POST", path, Some(body)).await
}

async fn sign_in(server: &Server, more: Value) -> Answer {
    let mut body = json!({ "email": "ann@example.com", "password": PASSWORD });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    post(server, "/api/auth/sign-in/email", body).await
}

fn token_of(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["token"].as_str().unwrap().to_owned()
}

/// `name=value` of the cookie that a response sets.
fn cookie_of(answer: &Answer) -> String {
    answer.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

async fn is_in(server: &Server, token: &str) -> bool {
    server.with_token(token.to_owned()).get("/api/v1/me").await.json()["authenticated"] == true
}

#[track_caller]
fn expect_code(answer: &Answer, status: u16, code: &str) {
    let body = answer.json();
    assert_eq!((answer.status, &body["code"], &body["error"]), (status, &json!(code), &json!(code)), "{}", answer.text);
    assert!(body["message"].as_str().is_some_and(|message| !message.is_empty()));
}

on_both_engines! {
    async fn a_session_is_extended_by_use_and_the_client_is_told(server: Server) {
        server.admin().await.make_task_object().await;
        server.sign_up("ann").await;
        let remembered = sign_in(&server, json!({})).await;
        let (token, cookie) = (token_of(&remembered), cookie_of(&remembered));
        let short = sign_in(&server, json!({ "rememberMe": false })).await;
        let attributes = short.headers["set-cookie"].to_str().unwrap();
        assert!(!attributes.contains("Max-Age") && attributes.contains("; Path=/; HttpOnly; SameSite=Lax"), "{attributes}");
        let age = |by: i64| format!("UPDATE svc_sessions SET created_at = created_at - {by}, updated_at = updated_at - {by}, expires_at = expires_at - {by}");
        let get = |cookie: &str| server.send(server.request("GET", "/api/auth/get-session").header("cookie", cookie));

        // Within the first day nothing is extended.
        assert!(!get(&cookie).await.headers.contains_key("set-cookie"));
        server.sql(&age(DAY_MS - 60_000)).await;
        tokio::time::sleep(std::time::Duration::from_millis(3100)).await;
        let quiet = get(&cookie).await;
        assert!(quiet.text.contains(&token) && !quiet.headers.contains_key("set-cookie"));
        assert_eq!(quiet.headers["cache-control"], "no-store");
        // After a day, the session and its cookie are extended by a week.
        server.sql(&age(120_000)).await;
        tokio::time::sleep(std::time::Duration::from_millis(3100)).await;
        let renewed = get(&cookie).await;
        let set = renewed.headers["set-cookie"].to_str().unwrap();
        assert!(set.starts_with(&cookie) && set.contains("Max-Age=604800"), "{set}");
        assert_eq!(renewed.headers["set-auth-token"], token.as_str());
        assert!(renewed.headers["access-control-expose-headers"].to_str().unwrap().contains("set-auth-token"));
        let session = renewed.json()["session"].clone();
        let ends = server.sql(&format!("SELECT expires_at - updated_at FROM svc_sessions WHERE id = '{}'", session["id"].as_str().unwrap())).await;
        assert_eq!(ends[0][0], (7 * DAY_MS).to_string());
        assert!(!get(&cookie).await.headers.contains_key("set-cookie"));
        // The short session has ended. Its cookie is removed, unless the request did not check the cookie.
        assert!(!is_in(&server, &token_of(&short)).await);
        let ended = get(&cookie_of(&short)).await;
        let set = ended.headers["set-cookie"].to_str().unwrap();
        assert!(ended.text == "null" && set.starts_with("svc.session_token=; Max-Age=0"), "{set}");
        let request = server.request("GET", "/api/auth/get-session").header("cookie", &cookie).bearer_auth(token_of(&short));
        assert!(!server.send(request).await.headers.contains_key("set-cookie"));
        // Any request extends the session. A client with a bearer token gets the token in a header, without a cookie.
        server.sql(&age(2 * DAY_MS)).await;
        tokio::time::sleep(std::time::Duration::from_millis(3100)).await;
        let by_bearer = server.with_token(token.clone()).get("/api/v1/data").await;
        assert_eq!(by_bearer.headers["set-auth-token"], token.as_str());
        assert!(!by_bearer.headers.contains_key("set-cookie"));
        // A session that was not used for a week is invalid, and the next cleanup deletes it.
        server.sql(&age(8 * DAY_MS)).await;
        tokio::time::sleep(std::time::Duration::from_millis(3100)).await;
        assert_eq!(get(&cookie).await.text, "null");
        let server = server.restart().await;
        for _ in 0..600 {
            if server.sql("SELECT id FROM svc_sessions").await.is_empty() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        panic!("expired sessions are still there");
    }

    async fn sessions_are_listed_and_ended(server: Server) {
        let first = server.sign_up("ann").await;
        let second = token_of(&sign_in(&server, json!({})).await);
        let third = token_of(&sign_in(&server, json!({})).await);
        let stranger = server.with_token(server.sign_up("bob").await);
        let ann = server.with_token(first.clone());
        let list = ann.get("/api/auth/list-sessions").await.json();
        let list = list.as_array().unwrap();
        assert_eq!(list.len(), 3);
        assert_eq!(list.iter().filter(|session| session["current"] == true).count(), 1);
        assert_eq!(list[2]["current"], true);
        assert!(list.iter().all(|session| session["token"].is_null() && session["userId"].is_string()));
        expect_code(&server.call("GET", "/api/auth/list-sessions", None).await, 401, "UNAUTHORIZED");

        // Nobody can end the session of another user, or find out whether it exists.
        let id = list[1]["id"].as_str().unwrap();
        for body in [json!({ "id": id }), json!({ "token": second }), json!({ "id": "nothing" })] {
            assert_eq!(stranger.post("/api/auth/revoke-session", body).await.json(), json!({ "status": true }));
        }
        assert!(is_in(&server, &second).await);
        expect_code(&ann.post("/api/auth/revoke-session", json!({})).await, 400, "VALIDATION_ERROR");
        expect_code(&ann.post("/api/auth/revoke-session", json!({ "id": 5 })).await, 400, "VALIDATION_ERROR");
        assert_eq!(ann.post("/api/auth/revoke-session", json!({ "id": id })).await.json(), json!({ "status": true }));
        assert!(!is_in(&server, &second).await && is_in(&server, &third).await);
        assert_eq!(ann.post("/api/auth/revoke-session", json!({ "token": third })).await.status, 200);
        assert!(!is_in(&server, &third).await);
        let fourth = token_of(&sign_in(&server, json!({})).await);
        assert_eq!(ann.post("/api/auth/revoke-other-sessions", json!({})).await.json(), json!({ "status": true }));
        assert!(!is_in(&server, &fourth).await && is_in(&server, &first).await);
        let request = server.request("POST", "/api/auth/revoke-sessions").bearer_auth(&first);
        assert_eq!(server.send(request).await.json(), json!({ "status": true }));
        assert!(!is_in(&server, &first).await);
    }

    async fn a_password_is_changed_by_who_knows_it(server: Server) {
        let first = server.sign_up("ann").await;
        let second = token_of(&sign_in(&server, json!({})).await);
        let ann = server.with_token(first.clone());
        let change = |current: &str, new: &str| json!({ "currentPassword": current, "newPassword": new });
        let path = "/api/auth/change-password";
        expect_code(&post(&server, path, change(PASSWORD, "another one, long")).await, 401, "UNAUTHORIZED");
        for (body, code) in [
            (change("wrong password", "another one, long"), "INVALID_PASSWORD"),
            (change(PASSWORD, "short"), "PASSWORD_TOO_SHORT"),
            (change(PASSWORD, &"x".repeat(129)), "PASSWORD_TOO_LONG"),
            (change(PASSWORD, "password1"), "PASSWORD_COMPROMISED"),
            (change(PASSWORD, "ann@example.com"), "PASSWORD_COMPROMISED"),
            (json!({ "newPassword": "another one, long" }), "VALIDATION_ERROR"),
            (json!({ "currentPassword": [PASSWORD], "newPassword": "another one, long" }), "VALIDATION_ERROR"),
        ] {
            expect_code(&ann.post(path, body).await, 400, code);
        }
        let kept = ann.post(path, change(PASSWORD, "another one, long")).await;
        assert_eq!((kept.status, &kept.json()["token"], &kept.json()["user"]["email"]), (200, &Value::Null, &json!("ann@example.com")));
        assert!(is_in(&server, &second).await);
        assert_eq!(sign_in(&server, json!({})).await.status, 401);
        let mut body = change("another one, long", PASSWORD);
        body["revokeOtherSessions"] = json!(true);
        let revoked = ann.post(path, body).await;
        let fresh = token_of(&revoked);
        assert_eq!(revoked.headers["set-auth-token"], fresh.as_str());
        assert!(!is_in(&server, &first).await && !is_in(&server, &second).await && is_in(&server, &fresh).await);

        // If several changes run at the same time, only one succeeds.
        let fresh = server.with_token(fresh);
        let bodies: Vec<Value> = (0..8).map(|number| change(PASSWORD, &format!("another one, long {number}"))).collect();
        let answers = futures_util::future::join_all(bodies.iter().map(|body| fresh.post(path, body.clone()))).await;
        let won: Vec<usize> = (0..8).filter(|number| answers[*number].status == 200).collect();
        assert_eq!(won.len(), 1);
        let password = format!("another one, long {}", won[0]);
        assert_eq!(sign_in(&server, json!({ "password": password })).await.status, 200);
    }

    async fn users_change_their_name_and_image_and_nothing_else(server: Server) {
        let ann = server.with_token(server.sign_up("ann").await);
        let path = "/api/auth/update-user";
        let body = json!({ "name": "Anna", "image": "https://example.com/a.png", "role": "admin", "isAnonymous": true, "id": "x", "emailVerified": true });
        assert_eq!(ann.post(path, body).await.json(), json!({ "status": true }));
        let user = ann.get("/api/v1/me").await.json()["user"].clone();
        assert_eq!((&user["name"], &user["image"]), (&json!("Anna"), &json!("https://example.com/a.png")));
        assert_eq!((&user["isAnonymous"], &user["emailVerified"]), (&json!(false), &json!(false)));
        assert_eq!(ann.post(path, json!({ "image": null })).await.status, 200);
        assert_eq!(ann.get("/api/v1/me").await.json()["user"]["image"], Value::Null);
        expect_code(&ann.post(path, json!({ "email": "x@example.com" })).await, 400, "EMAIL_CAN_NOT_BE_UPDATED");
        expect_code(&ann.post(path, json!({})).await, 400, "NO_FIELDS_TO_UPDATE");
        expect_code(&ann.post(path, json!({ "name": 5 })).await, 400, "VALIDATION_ERROR");
        expect_code(&ann.post(path, json!({ "name": "x".repeat(201) })).await, 400, "VALIDATION_ERROR");
        expect_code(&post(&server, path, json!({ "name": "x" })).await, 401, "UNAUTHORIZED");
    }

    async fn credentials_are_not_confused(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let ann_token = server.sign_up("ann").await;
        let made = admin.post("/api/v1/roles", json!({ "name": "reader", "permissions": [{ "resource": "task", "actions": ["read"] }] }));
        assert_eq!(made.await.status, 201);
        let key = admin.post("/api/v1/api-keys", json!({ "name": "k", "roleId": "reader" })).await.json()["key"].as_str().unwrap().to_owned();
        let cookie = cookie_of(&sign_in(&server, json!({})).await);
        let tasks = || server.request("GET", "/api/v1/data/task");
        let me = || server.request("GET", "/api/v1/me");
        let is_known = async |request: reqwest::RequestBuilder| server.send(request).await.json()["authenticated"] == true;

        // A key as a session token, a session token as a key, and values that only have the form of one of them.
        let key_hash = server.sql("SELECT key_hash FROM svc_api_keys").await[0][0].clone();
        let token_hash = server.sql("SELECT token_hash FROM svc_sessions").await[0][0].clone();
        for nonsense in ["svc_", "svc_x", &format!("svc_{ann_token}"), &key_hash, &token_hash, &key[..key.len() - 1], &format!("{key}x"), "null", "%00"] {
            assert!(!is_known(me().bearer_auth(nonsense)).await, "{nonsense}");
            assert!(!is_known(me().header("x-api-key", nonsense)).await, "{nonsense}");
            server.send(tasks().header("x-api-key", nonsense)).await.expect_error(401, "unauthorized");
        }
        server.send(tasks().header("x-api-key", &ann_token)).await.expect_error(401, "unauthorized");
        server.send(tasks().header("x-api-key", "")).await.expect_error(401, "unauthorized");
        assert!(!is_known(me().header("cookie", format!("svc.session_token={key}"))).await);
        assert_eq!(server.send(server.request("GET", "/api/auth/get-session").bearer_auth(&key)).await.text, "null");
        for (method, path) in [
            ("POST", "/api/auth/change-password"),
            ("POST", "/api/auth/update-user"),
            ("POST", "/api/auth/revoke-sessions"),
            ("GET", "/api/auth/list-sessions"),
        ] {
            let body = json!({ "currentPassword": PASSWORD, "newPassword": "another one, long", "name": "x" });
            let request = server.request(method, path).bearer_auth(&key).json(&body);
            expect_code(&server.send(request).await, 401, "UNAUTHORIZED");
            // If the request also has a session, the key takes precedence.
            let request = server.request(method, path).header("x-api-key", &key).header("cookie", &cookie);
            expect_code(&server.send(request.header("origin", &server.base).json(&body)).await, 401, "UNAUTHORIZED");
        }
        // With two credentials, the key takes precedence, even if it is invalid.
        let both = server.send(me().header("x-api-key", &key).bearer_auth(&ann_token)).await.json();
        assert_eq!(both["roles"], json!(["reader"]));
        let both = server.send(me().header("cookie", &cookie).bearer_auth(&key)).await.json();
        assert_eq!(both["roles"], json!(["reader"]));
        assert!(!is_known(me().header("x-api-key", "svc_x").bearer_auth(&ann_token)).await);
        // A token takes precedence over a cookie.
        let both = server.send(me().header("cookie", &cookie).bearer_auth(&admin.token)).await.json();
        assert_eq!(both["roles"], json!(["admin"]));

        // Forged and truncated cookies, cookies with other names, and several of them.
        let (name, value) = cookie.split_once('=').unwrap();
        for cookie in [
            format!("{name}={}", &value[..value.len() - 8]),
            format!("{name}={}", value.replacen(&value[..1], if value.starts_with('A') { "B" } else { "A" }, 1)),
            format!("{name}={}", value.split("%").next().unwrap()),
            format!("{name}={ann_token}."),
            format!("{name}={ann_token}"),
            format!("{name}=.{}", value.split_once('.').unwrap().1),
            format!("x{name}={value}"),
            format!("{name}=\"{value}\""),
            format!("{name}="),
            "=".to_owned(),
            ";;;".to_owned(),
        ] {
            assert!(!is_known(me().header("cookie", &cookie)).await, "{cookie}");
            // An invalid cookie counts as no credential, not as an error.
            server.send(tasks().header("cookie", &cookie)).await.expect_error(401, "unauthorized");
        }
        assert!(is_known(me().header("cookie", format!("a=b; {cookie}; c=d"))).await);

        // Sign-in never reuses an earlier session. It always makes another token, even if the request has one.
        let request = server.request("POST", "/api/auth/sign-in/email").header("cookie", &cookie).header("origin", &server.base);
        let again = server.send(request.json(&json!({ "email": "ann@example.com", "password": PASSWORD, "token": ann_token, "id": "x" }))).await;
        assert!(![ann_token.as_str()].contains(&token_of(&again).as_str()) && cookie_of(&again) != cookie);
    }

    async fn sign_out_ends_what_the_client_loses(server: Server) {
        server.sign_up("ann").await;
        let by_cookie = sign_in(&server, json!({})).await;
        let by_token = token_of(&sign_in(&server, json!({})).await);
        let request = server.request("POST", "/api/auth/sign-out").header("origin", &server.base).bearer_auth(&by_token);
        let out = server.send(request.header("cookie", cookie_of(&by_cookie))).await;
        assert_eq!(out.json(), json!({ "success": true }));
        assert!(!is_in(&server, &by_token).await && !is_in(&server, &token_of(&by_cookie)).await);
    }

    async fn a_forced_cookie_hides_nobody(server: Server) {
        server.sign_up("ann").await;
        let cookie = cookie_of(&sign_in(&server, json!({})).await);
        let is_known = async |value: reqwest::header::HeaderValue| {
            server.send(server.request("GET", "/api/v1/me").header("cookie", value)).await.json()["authenticated"] == true
        };
        let header = |bytes: &[u8]| reqwest::header::HeaderValue::from_bytes(bytes).unwrap();
        let name = cookie.split_once('=').unwrap().0;
        assert!(is_known(header(format!("{name}=planted; {cookie}").as_bytes())).await);
        assert!(is_known(header(&[b"other=\xff\xfe; ".as_slice(), cookie.as_bytes()].concat())).await);
    }

    async fn errors_of_the_protocol_have_their_code_in_both_spellings(server: Server) {
        for (method, path, status, code) in [
            ("POST", "/api/auth/nothing", 404, "not_found"),
            ("GET", "/api/auth/sign-up/email", 405, "method_not_allowed"),
            ("GET", "/api/auth/list-sessions", 401, "UNAUTHORIZED"),
            ("POST", "/api/auth/sign-in/anonymous", 404, "not_found"),
        ] {
            expect_code(&server.call(method, path, None).await, status, code);
        }
        let large = json!({ "email": "x".repeat(70_000), "password": PASSWORD });
        expect_code(&post(&server, "/api/auth/sign-in/email", large).await, 413, "payload_too_large");
        let form = server.request("POST", "/api/auth/sign-in/email").header("content-type", "application/x-www-form-urlencoded");
        expect_code(&server.send(form.body("email=a%40b.cd&password=%FF%FE")).await, 400, "invalid_request");
    }

    async fn a_stream_that_nobody_reads_ends_with_its_session(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let ann = server.sign_up("ann").await;
        let role = json!({ "name": "reader", "permissions": [{ "resource": "task", "actions": ["read"] }] });
        assert_eq!(admin.post("/api/v1/roles", role).await.status, 201);
        let me = server.with_token(ann.clone()).get("/api/v1/me").await.json();
        let id = me["userId"].as_str().unwrap();
        assert_eq!(admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": "reader" })).await.status, 200);
        let mut stream = server.with_token(ann.clone()).request("GET", "/api/v1/events/stream").send().await.unwrap();
        admin.make("task", json!({ "title": "before" })).await;
        // Frames stay unread until the server has to wait. Then the session ends, and more events follow.
        let text = "x".repeat(190);
        let records: Vec<Value> = (0..900).map(|_| json!({ "title": text })).collect();
        for _ in 0..8 {
            assert_eq!(admin.post("/api/v1/data/task/bulk", json!({ "data": records })).await.status, 201);
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert_eq!(server.with_token(ann).post("/api/auth/sign-out", json!({})).await.status, 200);
        tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
        admin.make("task", json!({ "title": "after the session" })).await;
        let mut seen = Vec::new();
        let read = async {
            while let Ok(Some(chunk)) = stream.chunk().await {
                seen.extend_from_slice(&chunk);
            }
        };
        tokio::time::timeout(blockbase_tests::WAIT_MAX, read).await.expect("an end of the stream");
        let seen = String::from_utf8_lossy(&seen);
        assert!(seen.contains("before") && !seen.contains("after the session"));
    }

    async fn bodies_are_json_or_forms_and_of_the_right_types(server: Server) {
        server.sign_up("ann").await;
        let path = "/api/auth/sign-in/email";
        let send = async |content_type: &str, body: &'static str| {
            server.send(server.request("POST", path).header("content-type", content_type).body(body)).await
        };
        let form = "email=ann%40example.com&password=correct+horse+battery&rememberMe=false";
        let by_form = send("application/x-www-form-urlencoded", form).await;
        assert!(by_form.status == 200 && !by_form.headers["set-cookie"].to_str().unwrap().contains("Max-Age"), "{}", by_form.text);
        expect_code(&send("text/plain", "{}").await, 415, "unsupported_media_type");
        expect_code(&send("application/json", "{\"email\": ").await, 400, "invalid_request");
        expect_code(&send("application/json", "[]").await, 400, "invalid_request");
        expect_code(&send("application/json", "").await, 400, "VALIDATION_ERROR");
        expect_code(&send("application/json", "{\"email\":\"a@b.c\",\"email\":\"b@b.c\",\"password\":\"x\"}").await, 400, "invalid_request");
        for body in [
            json!({ "email": ["ann@example.com"], "password": PASSWORD }),
            json!({ "email": { "$ne": null }, "password": PASSWORD }),
            json!({ "email": "ann@example.com", "password": { "$ne": null } }),
            json!({ "email": "ann@example.com", "password": 12345678 }),
            json!({ "email": "ann@example.com", "password": true }),
            json!({ "email": null, "password": null }),
            json!({ "email": "ann@example.com", "password": PASSWORD, "rememberMe": "no" }),
        ] {
            expect_code(&post(&server, path, body).await, 400, "VALIDATION_ERROR");
        }
        expect_code(&post(&server, path, json!({ "email": "ann@", "password": PASSWORD })).await, 400, "INVALID_EMAIL");
        // A password that no account can have is just a wrong password.
        expect_code(&post(&server, path, json!({ "email": "ann@example.com", "password": "" })).await, 401, "INVALID_EMAIL_OR_PASSWORD");
        let sign_up = |email: &str| json!({ "name": "", "email": email, "password": "long enough, that" });
        assert_eq!(post(&server, "/api/auth/sign-up/email", sign_up("NoName@Example.com")).await.json()["user"]["email"], "noname@example.com");
        for email in ["x", "x@y", "@example.com", "x@@example.com", "x y@example.com", "x@example.com, y@example.com", "x\u{0}@example.com"] {
            expect_code(&post(&server, "/api/auth/sign-up/email", sign_up(email)).await, 400, "VALIDATION_ERROR");
        }
        // Requests that need no body may have one.
        assert_eq!(server.call("POST", "/api/auth/sign-out", None).await.json(), json!({ "success": true }));
        assert_eq!(post(&server, "/api/auth/sign-out", json!({})).await.json(), json!({ "success": true }));
        server.call("GET", "/api/auth/sign-out", None).await.expect_error(405, "method_not_allowed");
        server.call("POST", "/api/auth/forget-password", None).await.expect_error(404, "not_found");
    }

    async fn nobody_is_sent_to_where_the_configuration_does_not_trust(server: Server) {
        server.sign_up("ann").await;
        let own = format!("{}/welcome", server.base);
        for good in ["/welcome?from=%2Fx", own.as_str()] {
            let answer = sign_in(&server, json!({ "callbackURL": good })).await;
            assert_eq!((answer.status, &answer.json()["redirect"], &answer.json()["url"]), (200, &json!(true), &json!(good)));
            assert_eq!(answer.headers["location"], good);
        }
        assert_eq!(sign_in(&server, json!({ "callbackURL": "" })).await.json()["redirect"], false);
        for bad in ["https://evil.example/", "//evil.example", "/\\evil.example", "/%2f/evil.example", "javascript:alert(1)", "evil"] {
            expect_code(&sign_in(&server, json!({ "callbackURL": bad })).await, 403, "INVALID_CALLBACK_URL");
            let body = json!({ "name": "x", "email": "new@example.com", "password": "long enough, that", "callbackURL": bad });
            expect_code(&post(&server, "/api/auth/sign-up/email", body).await, 403, "INVALID_CALLBACK_URL");
        }
        expect_code(&sign_in(&server, json!({ "callbackURL": ["/"] })).await, 400, "VALIDATION_ERROR");
        assert!(server.sql("SELECT id FROM svc_users WHERE email = 'new@example.com'").await.is_empty());
    }

    async fn errors_tell_the_same_of_what_exists_and_what_does_not(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        let made = admin.make("task", json!({ "title": "x" })).await;
        let ann = server.with_token(server.sign_up("ann").await);
        let anonymous = server.with_token(String::new());
        let same = async |who: &Admin<'_>, method: &str, there: &str, missing: &str, body: Value| {
            let send = async |path: &str| {
                let request = server.request(method, path).json(&body);
                let request = if who.token.is_empty() { request } else { request.bearer_auth(&who.token) };
                server.send(request).await
            };
            let (there_answer, missing_answer) = (send(there).await, send(missing).await);
            assert_eq!(there_answer.status, missing_answer.status, "{method} {there}");
            let names = |text: &str, path: &str| path.split('/').fold(text.to_owned(), |text, part| match part.len() > 3 {
                true => text.replace(part, "…"),
                false => text,
            });
            assert_eq!(names(&there_answer.text, there), names(&missing_answer.text, missing), "{method} {there}");
        };
        let nobody = "00000000-0000-7000-8000-00000000ffff";
        let admin_id = admin.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        for who in [&ann, &anonymous] {
            for (method, there, missing) in [
                ("GET", "/api/v1/data/task".to_owned(), "/api/v1/data/none".to_owned()),
                ("POST", "/api/v1/data/task".to_owned(), "/api/v1/data/none".to_owned()),
                ("GET", format!("/api/v1/data/task/{made}"), format!("/api/v1/data/task/{nobody}")),
                ("PATCH", format!("/api/v1/data/task/{made}"), format!("/api/v1/data/none/{made}")),
                ("DELETE", format!("/api/v1/data/task/{made}"), format!("/api/v1/data/task/{nobody}")),
                ("GET", "/api/v1/objects/task".to_owned(), "/api/v1/objects/none".to_owned()),
                ("DELETE", "/api/v1/objects/task".to_owned(), "/api/v1/objects/none".to_owned()),
                ("GET", "/api/v1/roles/admin".to_owned(), "/api/v1/roles/none".to_owned()),
                ("PATCH", "/api/v1/roles/admin".to_owned(), "/api/v1/roles/none".to_owned()),
                ("GET", format!("/api/v1/users/{admin_id}"), format!("/api/v1/users/{nobody}")),
                ("DELETE", format!("/api/v1/users/{admin_id}"), format!("/api/v1/users/{nobody}")),
                ("POST", "/api/v1/tasks/event-retention/run".to_owned(), "/api/v1/tasks/none/run".to_owned()),
            ] {
                same(who, method, &there, &missing, json!({})).await;
            }
        }
    }
}

async fn cross_origin(engine: Engine) {
    let server = ServerBuilder::new(engine)
        .env("SVC_PUBLIC_URL", "https://api.example.com")
        .env("SVC_TRUSTED_ORIGINS", "https://app.example.com, https://other.example.com")
        .start()
        .await;
    let preflight = |origin: &'static str| {
        let request = server.request("OPTIONS", "/api/v1/data/task").header("origin", origin);
        request
            .header("access-control-request-method", "PATCH")
            .header("access-control-request-headers", "authorization,content-type")
    };
    let allowed = server.send(preflight("https://app.example.com")).await;
    assert_eq!(allowed.status, 200);
    assert_eq!(allowed.headers["access-control-allow-origin"], "https://app.example.com");
    assert_eq!(allowed.headers["access-control-allow-credentials"], "true");
    assert!(allowed.headers["access-control-allow-methods"].to_str().unwrap().contains("PATCH"));
    assert!(allowed.headers["access-control-allow-headers"].to_str().unwrap().contains("authorization"));
    assert!(allowed.headers.contains_key("x-request-id"));
    assert!(!server.send(preflight("https://evil.example")).await.headers.contains_key("access-control-allow-origin"));
    assert!(!server.send(preflight("null")).await.headers.contains_key("access-control-allow-origin"));

    // With https, the cookie is Secure, and its name shows this. Scripts of trusted origins can read errors too.
    let body = json!({ "name": "x", "email": "x@example.com", "password": PASSWORD });
    let sign_up = server.request("POST", "/api/auth/sign-up/email").header("origin", "https://app.example.com").json(&body);
    let answer = server.send(sign_up).await;
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.starts_with("__Secure-svc.session_token=") && cookie.contains("; Secure"), "{cookie}");
    assert!(answer.headers["access-control-expose-headers"].to_str().unwrap().contains("set-auth-token"));
    let refused = server.send(server.request("GET", "/api/v1/roles").header("origin", "https://app.example.com")).await;
    assert_eq!(
        (refused.status, &refused.headers["access-control-allow-origin"]),
        (401, &"https://app.example.com".parse().unwrap())
    );

    // On every surface, writes with a cookie have to come from a trusted origin.
    let pair = cookie_of(&answer);
    for (method, path) in
        [("POST", "/api/v1/objects"), ("POST", "/api/auth/sign-out"), ("DELETE", "/api/v1/roles/x"), ("PATCH", "/api/v1/users/x")]
    {
        let send = async |headers: &[(&str, &str)]| {
            let request = server.request(method, path).header("cookie", &pair).json(&json!({}));
            server.send(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
        };
        expect_code(&send(&[]).await, 403, "MISSING_OR_NULL_ORIGIN");
        expect_code(&send(&[("origin", "null")]).await, 403, "MISSING_OR_NULL_ORIGIN");
        for origin in [
            "https://evil.example",
            "https://app.example.com.evil.example",
            "http://app.example.com",
            "https://app.example.com:8443",
        ] {
            expect_code(&send(&[("origin", origin)]).await, 403, "INVALID_ORIGIN");
            expect_code(&send(&[("referer", &format!("{origin}/page"))]).await, 403, "INVALID_ORIGIN");
        }
        assert_ne!(send(&[("origin", "https://app.example.com")]).await.status, 403);
        if path == "/api/v1/objects" {
            assert_ne!(send(&[("referer", "https://other.example.com/page")]).await.status, 403);
        }
    }
    // Sign-in from a foreign origin is refused even without a cookie. A sign-in without an origin is allowed, because clients
    // outside browsers (servers, curl) send none.
    let sign_in =
        || server.request("POST", "/api/auth/sign-in/email").json(&json!({ "email": "x@example.com", "password": PASSWORD }));
    expect_code(&server.send(sign_in().header("origin", "https://evil.example")).await, 403, "INVALID_ORIGIN");
    assert_eq!(server.send(sign_in()).await.status, 200);
    assert_eq!(server.send(sign_in().header("referer", "https://evil.example/")).await.status, 200);
    // The public URL's own origin is always trusted.
    assert_eq!(server.send(sign_in().header("origin", "https://api.example.com")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_of_trusted_origins_may_call_and_others_may_not() {
    cross_origin(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forwarding_headers_are_believed_of_proxies_alone() {
    let limited = |proxies: &str| {
        ServerBuilder::new(Engine::Sqlite).env("SVC_AUTH_RATE_LIMIT_RPM", "5").env("SVC_TRUSTED_PROXIES", proxies)
    };
    let statuses = async |server: &Server| {
        let mut statuses = Vec::new();
        for number in 0..20 {
            let request = server.request("GET", "/api/auth/get-session").header("x-forwarded-for", format!("192.0.2.{number}"));
            statuses.push(server.send(request).await.status);
        }
        statuses
    };
    // The server trusts no proxy, so it uses the socket's address and ignores the header.
    let server = limited("").start().await;
    assert!(statuses(&server).await.ends_with(&[429; 10]));
    // The test is a trusted proxy, so each address has its own limit.
    let server = limited("127.0.0.0/8").start().await;
    assert_eq!(statuses(&server).await, [200; 20]);
    let spoofed = async || {
        server.send(server.request("GET", "/api/auth/get-session").header("x-forwarded-for", "10.9.8.7, 198.51.100.1")).await
    };
    let mut last = 0;
    for _ in 0..10 {
        let answer = spoofed().await;
        last = answer.status;
        if last == 429 {
            assert_eq!(answer.headers["retry-after"], answer.headers["x-retry-after"]);
        }
    }
    assert_eq!(last, 429);
}

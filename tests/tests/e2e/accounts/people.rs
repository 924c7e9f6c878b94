//! Accounts that somebody makes for another person, and links to set a password: the rights to make them, and their effects.

use blockbase_tests::{Admin, Answer, Engine, Server, ServerBuilder, on_both_engines, until};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::accounts::roles::{key, role, user, within_five_seconds};

const PASSWORD: &str = "correct horse battery";
const NEW_PASSWORD: &str = "another horse battery";
const HOUR_MS: i64 = 3_600_000;

/// Makes an account with this body.
async fn invite(who: &Admin<'_>, body: Value) -> Answer {
    who.post("/api/v1/users", body).await
}

async fn invited(who: &Admin<'_>, name: &str, roles: Value) -> (String, String) {
    let answer = invite(who, json!({ "email": format!("{name}@example.com"), "roles": roles })).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    (answer.data()["id"].as_str().unwrap().to_owned(), token_of(&answer.json()["link"]))
}

/// Makes a link for a user, and returns its token.
async fn link(who: &Admin<'_>, id: &str) -> String {
    let answer = ask_for_link(who, id).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    token_of(&answer.data()["link"])
}

async fn ask_for_link(who: &Admin<'_>, id: &str) -> Answer {
    who.server.send(who.request("POST", &format!("/api/v1/users/{id}/password-link"))).await
}

fn token_of(link: &Value) -> String {
    link.as_str().unwrap().split_once("#token=").unwrap().1.to_owned()
}

async fn reset(server: &Server, token: &str, password: &str) -> Answer {
    server.call("POST", "/api/auth/reset-password", Some(json!({ "newPassword": password, "token": token }))).await
}

async fn sign_in(server: &Server, name: &str, password: &str) -> Answer {
    let body = json!({ "email": format!("{name}@example.com"), "password": password });
    server.call("POST", "/api/auth/sign-in/email", Some(body)).await
}

async fn has_session(who: &Admin<'_>) -> bool {
    who.get("/api/v1/me").await.json()["authenticated"] == true
}

#[track_caller]
fn expect_code(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.json()["code"].as_str()), (status, Some(code)), "{}", answer.text);
    assert_eq!(answer.json()["error"], code);
}

/// The milliseconds of an instant since the year 0. The test only compares these numbers with each other.
fn instant(text: &Value) -> i64 {
    let text = text.as_str().unwrap();
    let number = |from: usize, to: usize| text[from..to].parse::<i64>().unwrap();
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let years: i64 = (0..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum();
    let months: i64 = lengths.iter().take(usize::try_from(month).unwrap() - 1).sum();
    let hours = (years + months + day - 1) * 24 + number(11, 13);
    (hours * 60 + number(14, 16)) * 60_000 + number(17, 19) * 1000 + number(20, 23)
}

on_both_engines! {
    async fn somebody_is_invited_while_sign_up_is_closed(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_DISABLE_SIGNUP", "true").start().await;
        let admin = server.admin().await;
        role(&admin, "helper", json!([])).await;
        let answer = invite(&admin, json!({ "email": " Ann@Example.com ", "name": "Ann", "roles": ["helper"] })).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let made = answer.json();
        assert_eq!(made.as_object().unwrap().len(), 3, "{made}");
        let ann = &made["data"];
        assert_eq!((&ann["email"], &ann["name"]), (&json!("ann@example.com"), &json!("Ann")));
        assert_eq!((&ann["emailVerified"], &ann["banned"], &ann["isAnonymous"]), (&json!(false), &json!(false), &json!(false)));
        assert_eq!(ann["roles"][0]["name"], "helper");
        let path = format!("/api/v1/users/{}", ann["id"].as_str().unwrap());
        assert_eq!(admin.get(&path).await.data(), *ann);
        assert_eq!(instant(&made["linkExpiresAt"]) - instant(&ann["createdAt"]), 7 * 24 * HOUR_MS);
        let token = token_of(&made["link"]);
        assert_eq!(made["link"], format!("{}/admin/set-password#token={token}", server.base));
        assert!(token.len() == 43 && token.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{token}");

        // Until the link is used, the account has no password. It does not count as a guest either.
        assert_eq!(sign_in(&server, "ann", "").await.status, 401);
        let sign_up = json!({ "name": "x", "email": "ann@example.com", "password": PASSWORD });
        assert_ne!(server.call("POST", "/api/auth/sign-up/email", Some(sign_up)).await.status, 200);
        let used = reset(&server, &token, NEW_PASSWORD).await;
        assert_eq!((used.status, used.json()), (200, json!({ "status": true })));
        assert!(!used.headers.contains_key("set-cookie"), "{:?}", used.headers);
        let signed_in = sign_in(&server, "ann", NEW_PASSWORD).await;
        assert_eq!(signed_in.status, 200, "{}", signed_in.text);
        let client = server.with_token(signed_in.json()["token"].as_str().unwrap().to_owned());
        let me = client.get("/api/v1/me").await.json();
        // The server does not know who got the link, so using it does not verify the email address.
        assert_eq!((&me["roles"], &me["user"]["emailVerified"]), (&json!(["helper"]), &json!(false)));
        expect_code(&reset(&server, &token, PASSWORD).await, 400, "INVALID_TOKEN");

        // Only the answer contains the token.
        let stored = server.sql("SELECT token_hash FROM svc_account_tokens").await;
        assert!(stored.is_empty(), "{stored:?}");
        let created = server.sql("SELECT payload FROM svc_events WHERE topic = 'auth.user.created' ORDER BY seq").await;
        let created: Value = serde_json::from_str(&created[1][0]).unwrap();
        assert_eq!((&created["userId"], &created["actor"]["userId"]), (&ann["id"], &admin.get("/api/v1/me").await.json()["userId"]));
        for rows in [server.sql("SELECT payload FROM svc_events").await, vec![vec![server.log(), server.printed()]]] {
            assert!(!rows.concat().iter().any(|text| text.contains(&token)));
        }
        let (_, waiting) = invited(&admin, "bob", json!([])).await;
        let stored = server.sql("SELECT token_hash FROM svc_account_tokens").await.concat();
        assert!(stored.len() == 1 && stored[0] != waiting && stored[0].len() == 64, "{stored:?}");
    }

    async fn nobody_is_invited_with_more_than_the_caller_has(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        let reads = json!({ "resource": "task", "actions": ["read"] });
        let creates = json!({ "resource": "users", "actions": ["create"] });
        let tells = json!({ "resource": "roles", "actions": ["read"] });
        role(&admin, "reader", json!([reads])).await;
        role(&admin, "writer", json!([{ "resource": "task", "actions": ["manage"] }])).await;
        role(&admin, "inviter", json!([reads, creates])).await;
        role(&admin, "telling", json!([reads, creates, tells])).await;
        let (inviter, _) = user(&admin, "inviter", Some("inviter")).await;
        let (telling, _) = user(&admin, "telling", Some("telling")).await;
        let (stranger, _) = user(&admin, "stranger", None).await;
        let users = server.sql("SELECT id FROM svc_users").await.len();

        let email = "new@example.com";
        stranger.post("/api/v1/users", json!({ "email": email })).await.expect_error(403, "forbidden");
        server.call("POST", "/api/v1/users", Some(json!({ "email": email }))).await.expect_error(401, "unauthorized");
        for (body, status, code, field) in [
            (json!({ "email": "nobody" }), 400, "invalid_value", Some("email")),
            (json!({ "email": "" }), 400, "invalid_value", Some("email")),
            (json!({ "email": "INVITER@example.com" }), 409, "unique_violation", Some("email")),
            (json!({ "email": email, "name": "x".repeat(201) }), 400, "invalid_value", Some("name")),
            (json!({ "email": email, "roles": ["reader", "nothing"] }), 400, "invalid_value", Some("roles")),
            (json!({ "email": email, "roles": vec!["reader"; 101] }), 400, "invalid_value", Some("roles")),
            (json!({ "email": email, "roles": ["reader", "writer"] }), 403, "forbidden", Some("roles")),
            (json!({ "email": email, "roles": ["admin"] }), 403, "forbidden", Some("roles")),
            (json!({ "email": email, "roles": "reader" }), 400, "invalid_request", None),
            (json!({ "email": email, "roles": null }), 400, "invalid_request", None),
            (json!({ "email": email, "name": null }), 400, "invalid_request", None),
            (json!({ "email": email, "password": PASSWORD }), 400, "invalid_request", None),
            (json!({ "email": email, "emailVerified": true }), 400, "invalid_request", None),
            (json!({ "name": "x" }), 400, "invalid_request", None),
            (json!([email]), 400, "invalid_request", None),
        ] {
            let error = invite(&telling, body.clone()).await.expect_error(status, code);
            assert_eq!(error["field"].as_str(), field, "{body}: {error}");
        }
        // Callers who may not read roles cannot find out which roles exist.
        let refused = |name: &'static str| invite(&inviter, json!({ "email": email, "roles": [name] }));
        let (unknown, stronger) = (refused("nothing").await, refused("writer").await);
        unknown.expect_error(403, "forbidden");
        assert_eq!(unknown.text, stronger.text);
        assert_eq!(server.sql("SELECT id FROM svc_users").await.len(), users);
        assert!(server.sql("SELECT token_hash FROM svc_account_tokens").await.is_empty());

        let (_, token) = invited(&inviter, "new", json!(["reader"])).await;
        assert_eq!(reset(&server, &token, NEW_PASSWORD).await.status, 200);
        assert_eq!(sign_in(&server, "new", NEW_PASSWORD).await.status, 200);
        // An invited admin without a password does not count as an admin of the service.
        let (_, token) = invited(&admin, "root", json!(["admin", "reader"])).await;
        let own = admin.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        admin.delete(&format!("/api/v1/users/{own}/roles/admin")).await.expect_error(409, "conflict");
        assert_eq!(reset(&server, &token, NEW_PASSWORD).await.status, 200);
        assert_eq!(admin.delete(&format!("/api/v1/users/{own}/roles/admin")).await.status, 204);
    }

    async fn while_there_is_no_admin_nobody_is_invited(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_REQUIRE_AUTH", "false").env("SVC_SIGNUP_ROLE", "member").start().await;
        let body = || Some(json!({ "email": "ann@example.com" }));
        server.call("POST", "/api/v1/users", body()).await.expect_error(403, "setup_required");
        assert!(server.sql("SELECT id FROM svc_users").await.is_empty());
        let admin = server.admin().await;
        role(&admin, "member", json!([])).await;
        let made = server.call("POST", "/api/v1/users", body()).await;
        assert_eq!(made.status, 201, "{}", made.text);
        // Every new account gets this role, also an account that somebody else made.
        assert_eq!(made.data()["roles"][0]["name"], "member");
        // If the other accounts have lost their passwords, nobody can use a link to become the first account that can sign in.
        let token = token_of(&made.json()["link"]);
        server.sql("DELETE FROM svc_credentials").await;
        let refused = reset(&server, &token, NEW_PASSWORD).await;
        expect_code(&refused, 403, "setup_required");
        assert!(server.sql("SELECT user_id FROM svc_credentials").await.is_empty());
    }

    async fn nobody_chooses_a_breached_password(engine: Engine) {
        const BREACHED: &str = "a breached password";
        // The SHA-1 of the password, in the file with its prefix.
        let (file, line) = ("0E865", "9A4A24AF245D7F9CCB25AB6C7F9CC66632B");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(file), format!("{line}:42
")).unwrap();
        let server = ServerBuilder::new(engine).env("SVC_BREACHED_PASSWORDS", folder.path().to_str().unwrap()).start().await;
        let admin = server.admin().await;
        let sign_up = json!({ "name": "Ann", "email": "ann@example.com", "password": BREACHED });
        expect_code(&server.call("POST", "/api/auth/sign-up/email", Some(sign_up)).await, 400, "PASSWORD_COMPROMISED");
        let change = json!({ "currentPassword": PASSWORD, "newPassword": BREACHED });
        expect_code(&admin.post("/api/auth/change-password", change).await, 400, "PASSWORD_COMPROMISED");
        // The link can still be used.
        let (_, token) = invited(&admin, "bob", json!([])).await;
        expect_code(&reset(&server, &token, BREACHED).await, 400, "PASSWORD_COMPROMISED");
        let set = server.run(&["user", "set-password", "bob@example.com"], &format!("{BREACHED}
")).await;
        set.expect_error(1, &["data breach"]);
        assert_eq!(reset(&server, &token, NEW_PASSWORD).await.status, 200);
    }

    async fn a_link_gives_somebody_another_password(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        role(&admin, "empty", json!([])).await;
        let (ann, id) = user(&admin, "ann", None).await;
        let (by_key, _) = key(&admin, json!({ "name": "k", "roleId": "empty", "userId": id })).await;
        let answer = ask_for_link(&admin, &id).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let made = answer.data();
        assert_eq!(made.as_object().unwrap().len(), 2, "{made}");
        let expires_at: i64 = server.sql("SELECT expires_at FROM svc_account_tokens").await[0][0].parse().unwrap();
        let created_at: i64 = server.sql("SELECT created_at FROM svc_account_tokens").await[0][0].parse().unwrap();
        assert_eq!(expires_at - created_at, HOUR_MS);
        let shown = instant(&made["expiresAt"]) - instant(&json!("1970-01-01T00:00:00.000Z"));
        assert_eq!(shown, expires_at);
        // A new link does not change the account yet, and makes the earlier link invalid.
        assert!(has_session(&ann).await);
        let token = link(&admin, &id).await;
        let former = reset(&server, &token_of(&made["link"]), NEW_PASSWORD).await;
        expect_code(&former, 400, "INVALID_TOKEN");

        // If a password is refused, the link can still be used.
        for (password, code) in [
            ("short", "PASSWORD_TOO_SHORT"),
            (&"x".repeat(129), "PASSWORD_TOO_LONG"),
            ("password1", "PASSWORD_COMPROMISED"),
            ("ann@example.com", "PASSWORD_COMPROMISED"),
        ] {
            expect_code(&reset(&server, &token, password).await, 400, code);
        }
        let post = async |body: Value| server.call("POST", "/api/auth/reset-password", Some(body)).await;
        expect_code(&post(json!({ "token": token })).await, 400, "VALIDATION_ERROR");
        expect_code(&post(json!({ "token": token, "newPassword": 12345678 })).await, 400, "VALIDATION_ERROR");
        expect_code(&post(json!({ "newPassword": NEW_PASSWORD })).await, 400, "INVALID_TOKEN");
        expect_code(&post(json!({ "newPassword": NEW_PASSWORD, "token": "" })).await, 400, "INVALID_TOKEN");
        assert!(has_session(&ann).await);
        assert_eq!(reset(&server, &token, NEW_PASSWORD).await.status, 200);
        // All sessions have ended. The API key still works, because a program uses it.
        assert!(!has_session(&ann).await && has_session(&by_key).await);
        assert_eq!(sign_in(&server, "ann", PASSWORD).await.status, 401);
        let again = sign_in(&server, "ann", NEW_PASSWORD).await;
        assert_eq!((again.status, &again.json()["user"]["emailVerified"]), (200, &json!(false)));

        // The token may also be in the query.
        let token = link(&admin, &id).await;
        let path = format!("/api/auth/reset-password?token={token}");
        assert_eq!(server.call("POST", &path, Some(json!({ "newPassword": PASSWORD }))).await.json(), json!({ "status": true }));
        assert_eq!(sign_in(&server, "ann", PASSWORD).await.status, 200);

        // The server sends no mail, so users cannot request a link themselves.
        let body = json!({ "email": "ann@example.com", "redirectTo": "/" });
        expect_code(&server.call("POST", "/api/auth/request-password-reset", Some(body)).await, 404, "not_found");
    }

    async fn every_wrong_token_gets_the_same_answer(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        let (_, id) = user(&admin, "ann", None).await;
        let unknown = reset(&server, "no such token", NEW_PASSWORD).await;
        expect_code(&unknown, 400, "INVALID_TOKEN");
        assert_eq!(unknown.json(), json!({ "code": "INVALID_TOKEN", "error": "INVALID_TOKEN", "message": "Invalid token" }));
        let same = async |token: &str| {
            let answer = reset(&server, token, NEW_PASSWORD).await;
            assert_eq!((answer.status, &answer.text), (400, &unknown.text));
        };
        let token = link(&admin, &id).await;
        let altered = format!("{}{}", &token[..42], if token.ends_with('0') { '1' } else { '0' });
        same(&altered).await;
        same(&token.to_uppercase()).await;
        let hash = server.sql("SELECT token_hash FROM svc_account_tokens").await.concat();
        same(&hash[0]).await;
        server.sql("UPDATE svc_account_tokens SET expires_at = 1").await;
        same(&token).await;
        let token = link(&admin, &id).await;
        assert_eq!(reset(&server, &token, NEW_PASSWORD).await.status, 200);
        same(&token).await;
        // A ban makes the link invalid. It stays invalid after the ban is lifted.
        let token = link(&admin, &id).await;
        let path = format!("/api/v1/users/{id}");
        assert_eq!(admin.patch(&path, json!({ "banned": true })).await.status, 200);
        same(&token).await;
        ask_for_link(&admin, &id).await.expect_error(409, "conflict");
        assert_eq!(admin.patch(&path, json!({ "banned": false })).await.status, 200);
        same(&token).await;
        // A change of the password also makes the link invalid.
        let ann = server.with_token(sign_in(&server, "ann", NEW_PASSWORD).await.json()["token"].as_str().unwrap().to_owned());
        let token = link(&admin, &id).await;
        let change = json!({ "currentPassword": NEW_PASSWORD, "newPassword": PASSWORD });
        assert_eq!(ann.post("/api/auth/change-password", change).await.status, 200);
        same(&token).await;
        // When the account is deleted, so is the link.
        let token = link(&admin, &id).await;
        assert_eq!(admin.delete(&path).await.status, 204);
        assert!(server.sql("SELECT token_hash FROM svc_account_tokens").await.is_empty());
        same(&token).await;
        ask_for_link(&admin, &id).await.expect_error(404, "not_found");
        let log = server.log();
        assert!(log.contains("a link of an account was not valid") && !log.contains(&token) && !log.contains(&hash[0]), "{log}");
    }

    async fn links_lead_to_no_stronger_account(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let admin = server.admin().await;
        let own = admin.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
        let manages = json!([{ "resource": "users", "actions": ["manage"] }]);
        role(&admin, "helpdesk", manages).await;
        role(&admin, "own", json!([{ "resource": "users", "actions": ["manage"], "rowPolicy": "own" }])).await;
        role(&admin, "reader", json!([{ "resource": "task", "actions": ["read"] }])).await;
        let (helper, helper_id) = user(&admin, "helper", Some("helpdesk")).await;
        let (ann, id) = user(&admin, "ann", Some("own")).await;

        ask_for_link(&helper, &own).await.expect_error(403, "forbidden");
        // A grant for one's own row is not enough. Otherwise a session alone could replace the password without the current one.
        ask_for_link(&ann, &id).await.expect_error(403, "forbidden");
        assert_eq!(admin.delete(&format!("/api/v1/users/{id}/roles/own")).await.status, 204);
        ask_for_link(&ann, &id).await.expect_error(403, "forbidden");
        // The rights of the user's keys count too.
        let (_, of_ann) = key(&admin, json!({ "name": "k", "roleId": "admin", "userId": id })).await;
        ask_for_link(&helper, &id).await.expect_error(403, "forbidden");
        assert_eq!(admin.delete(&format!("/api/v1/api-keys/{}", of_ann["id"].as_str().unwrap())).await.status, 204);
        let guest = server.call("POST", "/api/auth/sign-in/anonymous", None).await.json();
        ask_for_link(&helper, guest["user"]["id"].as_str().unwrap()).await.expect_error(409, "conflict");

        // If an account gets more rights than the maker of a link has, the link does not work.
        let token = link(&helper, &id).await;
        let (invited_id, invitation) = invited(&helper, "bob", json!([])).await;
        for user in [&id, &invited_id] {
            assert_eq!(admin.post(&format!("/api/v1/users/{user}/roles"), json!({ "roleId": "reader" })).await.status, 200);
        }
        expect_code(&reset(&server, &token, NEW_PASSWORD).await, 400, "INVALID_TOKEN");
        expect_code(&reset(&server, &invitation, NEW_PASSWORD).await, 400, "INVALID_TOKEN");
        for user in [&id, &invited_id] {
            assert_eq!(admin.delete(&format!("/api/v1/users/{user}/roles/reader")).await.status, 204);
        }
        assert_eq!(reset(&server, &token, NEW_PASSWORD).await.status, 200);
        // If a maker loses the right to manage users, their links do not work.
        let path = format!("/api/v1/users/{helper_id}/roles");
        assert_eq!(admin.delete(&format!("{path}/helpdesk")).await.status, 204);
        expect_code(&reset(&server, &invitation, NEW_PASSWORD).await, 400, "INVALID_TOKEN");
        assert_eq!(admin.post(&path, json!({ "roleId": "helpdesk" })).await.status, 200);
        assert_eq!(admin.patch(&format!("/api/v1/users/{helper_id}"), json!({ "banned": true })).await.status, 200);
        expect_code(&reset(&server, &invitation, NEW_PASSWORD).await, 400, "INVALID_TOKEN");
        assert_eq!(admin.delete(&format!("/api/v1/users/{helper_id}")).await.status, 204);
        assert!(server.sql("SELECT token_hash FROM svc_account_tokens").await.is_empty());
        // The admin makes another link for the same account.
        let answer = ask_for_link(&admin, &invited_id).await.data();
        let stored = server.sql("SELECT kind FROM svc_account_tokens").await;
        assert_eq!(stored, [["invitation"]]);
        assert_eq!(reset(&server, &token_of(&answer["link"]), NEW_PASSWORD).await.status, 200);
        assert_eq!(sign_in(&server, "bob", NEW_PASSWORD).await.status, 200);
    }

    async fn of_many_uses_of_a_link_one_wins(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        let other = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(server.builder().start().await),
        };
        let (ann, id) = user(&admin, "ann", None).await;
        let elsewhere = other.as_ref().map(|other| other.with_token(ann.token.clone()));
        if let Some(elsewhere) = &elsewhere {
            assert!(has_session(elsewhere).await);
        }
        let token = link(&admin, &id).await;
        let password = |number: usize| format!("{NEW_PASSWORD} {number}");
        // The number of requests equals the number of tries without a delay, because requests that do not succeed count as tries
        // with a wrong token.
        let answers = join_all((0..8).map(|number| {
            let server = other.as_ref().filter(|_| number % 2 == 1).unwrap_or(&server);
            let (token, password) = (&token, password(number));
            async move { reset(server, token, &password).await }
        }))
        .await;
        let won: Vec<usize> = (0..8).filter(|number| answers[*number].status == 200).collect();
        assert_eq!(won.len(), 1, "{answers:?}");
        for answer in answers.iter().filter(|answer| answer.status != 200) {
            expect_code(answer, 400, "INVALID_TOKEN");
        }
        assert_eq!(sign_in(&server, "ann", &password(won[0])).await.status, 200);
        // The sessions have ended on every instance.
        within_five_seconds(async || {
            !has_session(&ann).await && match &elsewhere {
                Some(elsewhere) => !has_session(elsewhere).await,
                None => true,
            }
        })
        .await;
    }

    async fn a_request_does_not_choose_where_a_link_leads(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_PUBLIC_URL", "https://api.example.com").env("SVC_TRUSTED_PROXIES", "127.0.0.1").start().await;
        let admin = server.admin().await;
        let (_, id) = user(&admin, "ann", None).await;
        let (link, page) = (format!("/api/v1/users/{id}/password-link"), "https://api.example.com/admin/set-password#token=");
        // The server answers requests for any IP address, but no link contains one of these addresses.
        for host in ["192.0.2.7", "127.0.0.1:1", "[2001:db8::1]:4000"] {
            for (name, value) in [("x-forwarded-host", "evil.example"), ("forwarded", "host=evil.example;proto=https"), ("x-forwarded-for", "192.0.2.9")] {
                let request = admin.request("POST", &link).header("host", host).header(name, value).header("x-forwarded-proto", "http");
                let answer = server.send(request).await;
                assert_eq!(answer.status, 201, "{}", answer.text);
                assert!(answer.data()["link"].as_str().unwrap().starts_with(page), "{}", answer.text);
            }
        }
        let body = json!({ "email": "bob@example.com" });
        let invited = server.send(admin.request("POST", "/api/v1/users").header("host", "192.0.2.7").json(&body)).await;
        assert!(invited.json()["link"].as_str().unwrap().starts_with(page), "{}", invited.text);
        server.send(admin.request("POST", &link).header("host", "evil.example")).await.expect_error(403, "forbidden");
    }

    async fn the_protocols_link_leads_to_a_trusted_page_alone(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_TRUSTED_ORIGINS", "https://app.example").start().await;
        let admin = server.admin().await;
        let (ann, id) = user(&admin, "ann", None).await;
        let token = link(&admin, &id).await;
        let open = async |token: &str, page: &str| {
            let page: String = form_urlencoded(page);
            server.call("GET", &format!("/api/auth/reset-password/{token}?callbackURL={page}"), None).await
        };
        for (page, location) in [
            ("/welcome", "/welcome?"),
            ("/welcome?a=b#c", "/welcome?a=b&"),
            ("https://app.example/x", "https://app.example/x?"),
            ("/.//evil.example", "/.//evil.example?"),
        ] {
            let end = page.split_once('#').map(|(_, end)| format!("#{end}")).unwrap_or_default();
            let known = open(&token, page).await;
            assert_eq!((known.status, &*known.text), (302, ""));
            assert_eq!(known.headers["location"], format!("{location}token={token}{end}"));
            assert_eq!(known.headers["cache-control"], "no-store");
            assert_eq!(known.headers["referrer-policy"], "no-referrer");
            let unknown = open("unknown", page).await;
            assert_eq!(unknown.status, 302);
            assert_eq!(unknown.headers["location"], format!("{location}error=INVALID_TOKEN{end}"));
        }
        for page in ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "evil", "https://app.example.evil.example"] {
            expect_code(&open(&token, page).await, 403, "INVALID_CALLBACK_URL");
        }
        expect_code(&open(&token, "").await, 400, "VALIDATION_ERROR");
        expect_code(&server.call("GET", &format!("/api/auth/reset-password/{token}"), None).await, 400, "VALIDATION_ERROR");
        expect_code(&server.call("GET", "/api/auth/reset-password/%00?callbackURL=/", None).await, 400, "invalid_request");
        // Opening the link has not used it up, and has changed nothing.
        assert!(has_session(&ann).await);
        assert_eq!(reset(&server, &token, NEW_PASSWORD).await.status, 200);
        let used = open(&token, "/welcome").await;
        assert_eq!(used.headers["location"], "/welcome?error=INVALID_TOKEN");
        // A page of another site cannot set a password.
        let body = json!({ "newPassword": PASSWORD, "token": link(&admin, &id).await });
        let foreign = server.request("POST", "/api/auth/reset-password").header("origin", "https://evil.example").json(&body);
        assert_eq!(server.send(foreign).await.json()["code"], "INVALID_ORIGIN");
        assert_eq!(server.call("POST", "/api/auth/reset-password", Some(body)).await.status, 200);
    }

    async fn tokens_are_guessed_as_slowly_as_passwords(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_TRUSTED_PROXIES", "127.0.0.1").start().await;
        let admin = server.admin().await;
        let (_, id) = user(&admin, "ann", None).await;
        let token = link(&admin, &id).await;
        let from = async |address: &str, token: &str| {
            let body = json!({ "newPassword": NEW_PASSWORD, "token": token });
            let request = server.request("POST", "/api/auth/reset-password").header("x-forwarded-for", address);
            server.send(request.json(&body)).await
        };
        let mut tries = 0;
        let refused = loop {
            // Tries through all routes of links count.
            let open = async |path: &str| server.send(server.request("GET", path).header("x-forwarded-for", "192.0.2.1")).await;
            let answer = match tries % 3 {
                0 => from("192.0.2.1", &format!("guess{tries}")).await,
                1 => open(&format!("/api/auth/reset-password/guess{tries}?callbackURL=/")).await,
                _ => open(&format!("/api/auth/verify-email?token=guess{tries}")).await,
            };
            if answer.status == 429 {
                break answer;
            }
            tries += 1;
            assert!(tries < 30, "thirty wrong tokens");
        };
        // On a slow machine, the first waits may end before the next try.
        assert!((10..=13).contains(&tries), "{tries}");
        assert!(refused.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
        // From another network the link works at once.
        assert_eq!(from("192.0.2.2", &token).await.status, 200);
    }

    async fn expired_links_are_deleted(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        let (_, id) = user(&admin, "ann", None).await;
        link(&admin, &id).await;
        invited(&admin, "bob", json!([])).await;
        server.sql("UPDATE svc_account_tokens SET expires_at = 1 WHERE kind = 'reset'").await;
        let server = server.restart().await;
        until("the expired link is gone", async || {
            server.sql("SELECT kind FROM svc_account_tokens").await == [["invitation"]]
        })
        .await;
    }
}

/// Encodes a value for a query string.
fn form_urlencoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

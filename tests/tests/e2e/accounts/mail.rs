//! Mail: links to set a new password, to prove an address and to accept an invitation.

use blockbase_tests::{Admin, Answer, Engine, MailServer, Server, ServerBuilder, on_both_engines, until};
use serde_json::{Value, json};

pub(super) const PASSWORD: &str = "correct horse battery";
pub(super) const NEW_PASSWORD: &str = "another horse battery";

/// A server that sends mail to `mails`. It retries failed deliveries at once.
pub(super) fn sending_to(engine: Engine, mails: &MailServer) -> ServerBuilder {
    ServerBuilder::new(engine)
        .env("SVC_SMTP_URL", &format!("smtp://127.0.0.1:{}", mails.port()))
        .env("SVC_MAIL_FROM", "Shop <shop@example.com>")
        .env("SVC_RETRY_BASE_MS", "1")
        .env("SVC_EVENTS_POLL_INTERVAL_MS", "50")
}

pub(super) async fn post(server: &Server, path: &str, body: Value) -> Answer {
    server.call("POST", &format!("/api/auth/{path}"), Some(body)).await
}

pub(super) async fn sign_in(server: &Server, name: &str, password: &str) -> Answer {
    post(server, "sign-in/email", json!({ "email": format!("{name}@example.com"), "password": password })).await
}

pub(super) async fn request_reset(server: &Server, name: &str) -> Answer {
    post(server, "request-password-reset", json!({ "email": format!("{name}@example.com") })).await
}

pub(super) async fn reset(server: &Server, token: &str, password: &str) -> Answer {
    post(server, "reset-password", json!({ "newPassword": password, "token": token })).await
}

/// The link in a mail.
fn link(mail: &Value) -> String {
    let text = mail["text"].as_str().unwrap();
    text.lines().find(|line| line.starts_with("http")).unwrap_or_else(|| panic!("no link: {text}")).to_owned()
}

/// The token in a link to the console, or to the protocol's routes.
pub(super) fn token(mail: &Value) -> String {
    let link = link(mail);
    let after = |mark: &str| link.split_once(mark).map(|(_, rest)| rest.to_owned());
    let rest = after("#token=").or_else(|| after("?token=")).or_else(|| after("/reset-password/")).unwrap();
    rest.split(['&', '?']).next().unwrap().to_owned()
}

/// The path and the query of a link of the server.
pub(super) fn path_of(server: &Server, mail: &Value) -> String {
    let link = link(mail);
    link.strip_prefix(&server.base).unwrap_or_else(|| panic!("{link} does not lead to {}", server.base)).to_owned()
}

/// The consumer group of mail in the ledger.
async fn deliveries(admin: &Admin<'_>) -> Vec<Value> {
    let page = admin.get("/api/v1/events/deliveries?consumer=svc:mail&limit=100").await;
    page.data().as_array().unwrap().clone()
}

#[track_caller]
fn expect_status(answer: &Answer, status: u16) {
    assert_eq!(answer.status, status, "{}", answer.text);
}

#[track_caller]
pub(super) fn expect_code(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.json()["code"].as_str()), (status, Some(code)), "{}", answer.text);
}

on_both_engines! {
    async fn a_forgotten_password_is_reset_with_a_mailed_link(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).start().await;
        let admin = server.admin().await;
        let ann = server.sign_up("ann").await;
        let of_ann = server.with_token(ann.clone());
        let made = admin.post("/api/v1/api-keys", json!({
            "name": "ci", "roleId": "anonymous", "userId": of_ann.get("/api/v1/me").await.json()["user"]["id"],
        })).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let key = made.json()["key"].as_str().unwrap().to_owned();

        // If nobody has the address, the answer is the same.
        let (known, unknown) = (request_reset(&server, "ann").await, request_reset(&server, "nobody").await);
        assert_eq!((known.status, &known.text), (200, &unknown.text), "{}", unknown.status);
        assert_eq!(known.json()["status"], true);
        let mail = mails.mails(1).await.remove(0);
        assert_eq!((&mail["from"], &mail["to"]), (&json!("shop@example.com"), &json!(["ann@example.com"])), "{mail}");
        assert!(mail["subject"].as_str().unwrap().contains("127.0.0.1"), "{mail}");
        assert!(link(&mail).starts_with(&format!("{}/admin/set-password#token=", server.base)), "{mail}");
        let token = token(&mail);

        // The token is not in the event, the ledger, the database or the log. The event and the ledger do not have the address
        // either.
        until("both deliveries ended", async || {
            deliveries(&admin).await.iter().filter(|delivery| delivery["status"] == "delivered").count() == 2
        }).await;
        let events = admin.get("/api/v1/events?topic=auth.mail.requested").await.text;
        let ledger = serde_json::to_string(&deliveries(&admin).await).unwrap();
        assert!(events.contains("\"kind\":\"reset\""), "{events}");
        for text in [&events, &ledger] {
            assert!(!text.contains(&token) && !text.contains("ann@example.com") && !text.contains("nobody@"), "{text}");
        }
        assert!(!server.log().contains(&token));
        assert!(server.sql("SELECT id FROM svc_mails").await.is_empty(), "nothing waits any more");
        let stored = server.sql("SELECT token_hash, kind FROM svc_account_tokens").await;
        assert_eq!(stored.len(), 1);
        assert!(!stored.concat().contains(&token), "{stored:?}");

        // The link is the first proof of the address, and it is used in a browser without a session. So sessions and keys
        // end.
        expect_code(&reset(&server, "wrong", NEW_PASSWORD).await, 400, "INVALID_TOKEN");
        expect_code(&reset(&server, &token, "short").await, 400, "PASSWORD_TOO_SHORT");
        assert_eq!(reset(&server, &token, NEW_PASSWORD).await.status, 200);
        expect_code(&reset(&server, &token, NEW_PASSWORD).await, 400, "INVALID_TOKEN");
        assert_eq!(sign_in(&server, "ann", PASSWORD).await.status, 401);
        let signed_in = sign_in(&server, "ann", NEW_PASSWORD).await.json();
        assert_eq!(signed_in["user"]["emailVerified"], true, "{signed_in}");
        until("the session ends", async || of_ann.get("/api/v1/me").await.json()["authenticated"] == false).await;
        until("the key ends", async || server.with_token(key.clone()).get("/api/v1/data").await.status == 401).await;

        // A second reset does not end the keys, because the address is already proved.
        let id = signed_in["user"]["id"].clone();
        let made = admin.post("/api/v1/api-keys", json!({ "name": "ci", "roleId": "anonymous", "userId": id })).await;
        let key = made.json()["key"].as_str().unwrap().to_owned();
        request_reset(&server, "ann").await;
        let mail = mails.mails(2).await.remove(1);
        assert_eq!(reset(&server, &self::token(&mail), PASSWORD).await.status, 200);
        assert_eq!(server.with_token(key).get("/api/v1/me").await.json()["authenticated"], true);

        // The keys of another admin end at the first proof, like those of every user.
        let bob = server.with_token(server.sign_up("bob").await);
        let id = bob.get("/api/v1/me").await.json()["user"]["id"].as_str().unwrap().to_owned();
        expect_status(&admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": "admin" })).await, 200);
        let made = admin.post("/api/v1/api-keys", json!({ "name": "ci", "roleId": "admin", "userId": id })).await;
        let key = made.json()["key"].as_str().unwrap().to_owned();
        request_reset(&server, "bob").await;
        let mail = mails.mails(3).await.remove(2);
        assert_eq!(reset(&server, &self::token(&mail), NEW_PASSWORD).await.status, 200);
        until("the key ends", async || server.with_token(key.clone()).get("/api/v1/data").await.status == 401).await;

        // The first admin keeps keys and webhooks, also at the first proof.
        let id = admin.get("/api/v1/me").await.json()["user"]["id"].clone();
        let made = admin.post("/api/v1/api-keys", json!({ "name": "ci", "roleId": "admin", "userId": id })).await;
        let key = made.json()["key"].as_str().unwrap().to_owned();
        let hook = json!({ "name": "out", "url": "https://out.example.com/", "topics": ["auth.user.created"] });
        expect_status(&admin.post("/api/v1/webhooks", hook).await, 201);
        request_reset(&server, "admin").await;
        let mail = mails.mails(4).await.remove(3);
        assert_eq!(reset(&server, &self::token(&mail), NEW_PASSWORD).await.status, 200);
        until("the session ends", async || admin.get("/api/v1/me").await.json()["authenticated"] == false).await;
        let hooks = server.with_token(key).get("/api/v1/webhooks").await;
        assert_eq!(hooks.data()[0]["suspended"], Value::Null, "{}", hooks.text);
    }

    async fn an_address_is_proved_with_a_mailed_link(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).env("SVC_TRUSTED_ORIGINS", "https://app.example.com").start().await;
        let admin = server.admin().await;
        let ann = server.with_token(server.sign_up("ann").await);
        let ask = async |who: Option<&str>, body: Value| {
            server.call_as(who, "POST", "/api/auth/send-verification-email", Some(body)).await
        };
        // With a session, a user can ask for a mail to their own address until it is proved. Without a session, the answer is
        // the same for every address.
        expect_code(&ask(Some(&ann.token), json!({ "email": "admin@example.com" })).await, 400, "EMAIL_MISMATCH");
        expect_code(&ask(None, json!({ "email": "nonsense" })).await, 400, "VALIDATION_ERROR");
        let foreign = json!({ "email": "ann@example.com", "callbackURL": "https://evil.example/x" });
        let refused = ask(None, foreign).await;
        expect_code(&refused, 403, "INVALID_CALLBACK_URL");
        assert!(refused.text.contains("SVC_TRUSTED_ORIGINS"), "{}", refused.text);
        let unknown = ask(None, json!({ "email": "nobody@example.com" })).await;
        let own = ask(Some(&ann.token), json!({ "email": "Ann@example.com", "callbackURL": "/welcome?step=2" })).await;
        assert_eq!((own.status, &own.text), (200, &unknown.text));
        let mail = mails.mails(1).await.remove(0);
        let path = path_of(&server, &mail);
        assert!(path.ends_with("&callbackURL=%2Fwelcome%3Fstep%3D2"), "{path}");

        // The browser of the account opens the link, so nothing ends.
        let opened = ann.get(&path).await;
        assert_eq!((opened.status, opened.headers["location"].to_str().unwrap()), (302, "/welcome?step=2"), "{}", opened.text);
        assert_eq!(opened.headers["referrer-policy"], "no-referrer");
        assert!(!opened.headers.contains_key("set-cookie"));
        assert_eq!(ann.get("/api/v1/me").await.json()["user"]["emailVerified"], true);
        expect_code(&ask(Some(&ann.token), json!({ "email": "ann@example.com" })).await, 400, "EMAIL_ALREADY_VERIFIED");
        // A link that was already used is an error.
        let again = server.call("GET", &path, None).await;
        assert_eq!(again.headers["location"].to_str().unwrap(), "/welcome?step=2&error=INVALID_TOKEN");
        assert_eq!(again.headers["referrer-policy"], "no-referrer");
        let without_page = path.split("&callbackURL").next().unwrap();
        expect_code(&server.call("GET", without_page, None).await, 401, "INVALID_TOKEN");
        expect_code(&server.call("GET", "/api/auth/verify-email", None).await, 400, "VALIDATION_ERROR");
        let evil = format!("{without_page}&callbackURL=https%3A%2F%2Fevil.example");
        expect_code(&server.call("GET", &evil, None).await, 403, "INVALID_CALLBACK_URL");

        // Somebody has signed up with Bob's address, and waits. Bob proves the address in his own browser.
        let squatter = server.with_token(server.sign_up("bob").await);
        // The response says that the link has expired.
        assert_eq!(ask(None, json!({ "email": "bob@example.com", "callbackURL": "/welcome" })).await.status, 200);
        let path = path_of(&server, &mails.mails(2).await[1]);
        server.sql("UPDATE svc_account_tokens SET expires_at = 1").await;
        assert_eq!(server.call("POST", &path, None).await.headers["location"], "/welcome?error=TOKEN_EXPIRED");
        expect_code(&server.call("GET", path.split("&callbackURL").next().unwrap(), None).await, 401, "TOKEN_EXPIRED");
        admin.make_task_object().await;
        let hooks = json!([{ "resource": "webhooks", "actions": ["manage"] }, { "resource": "task", "actions": ["read"] }]);
        expect_status(&admin.post("/api/v1/roles", json!({ "name": "hooks", "permissions": hooks })).await, 201);
        let bob = squatter.get("/api/v1/me").await.json()["user"]["id"].as_str().unwrap().to_owned();
        expect_status(&admin.post(&format!("/api/v1/users/{bob}/roles"), json!({ "roleId": "hooks" })).await, 200);
        let hook = json!({ "name": "spy", "url": "https://spy.example.com/", "topics": ["data.task.#"] });
        expect_status(&squatter.post("/api/v1/webhooks", hook).await, 201);
        assert_eq!(ask(None, json!({ "email": "bob@example.com" })).await.status, 200);
        let mail = mails.mails(3).await.remove(2);
        let path = path_of(&server, &mail).replace("%2F", "https%3A%2F%2Fapp.example.com");
        // A program that opens links in mails gets a page with a button. Bob gets the same page. Nothing has happened yet.
        for mode in [None, Some("navigate")] {
            let mut request = server.request("GET", &path);
            if let Some(mode) = mode {
                request = request.header("sec-fetch-mode", mode);
            }
            let asked = server.send(request).await;
            assert_eq!((asked.status, &asked.headers["cache-control"], &asked.headers["referrer-policy"]),
                (200, &"no-store".parse().unwrap(), &"same-origin".parse().unwrap()));
            assert!(asked.text.contains("<form method=\"post\">") && asked.text.contains("bob@example.com"), "{}", asked.text);
        }
        assert_eq!(squatter.get("/api/v1/me").await.json()["user"]["emailVerified"], false);
        let pressed = server.request("POST", &path).header("origin", &server.base);
        let pressed = server.send(pressed.header("content-type", "application/x-www-form-urlencoded")).await;
        assert_eq!(pressed.status, 303, "{}", pressed.text);
        assert_eq!(pressed.headers["location"].to_str().unwrap(), "https://app.example.com");
        until("the squatter is out", async || squatter.get("/api/v1/me").await.json()["authenticated"] == false).await;
        let told = "the first proof of an address came from another browser";
        let log = server.log_with(told).await;
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(told)).collect();
        assert!(lines.len() == 1 && lines[0].contains(&bob) && !lines[0].contains("bob@example.com"), "{lines:?}");
        // What the squatter made stops.
        let hook = admin.get("/api/v1/webhooks").await.data()[0].clone();
        assert_eq!(hook["suspended"]["reason"], "maker_gone", "{hook}");
        assert_eq!(sign_in(&server, "bob", PASSWORD).await.status, 401);
        // This does not make anybody an admin.
        assert_eq!(server.call("GET", "/api/v1/instance", None).await.json()["needsAdmin"], false);
        assert_eq!(admin.get("/api/v1/users").await.json()["pagination"]["totalCount"], 3);

        // A link of one kind cannot be used as a link of another kind.
        request_reset(&server, "bob").await;
        let of_reset = token(&mails.mails(4).await[3]);
        expect_code(&server.call("GET", &format!("/api/auth/verify-email?token={of_reset}"), None).await, 401, "INVALID_TOKEN");
        assert_eq!(reset(&server, &of_reset, NEW_PASSWORD).await.status, 200);
    }

    async fn sign_in_waits_for_the_proof_where_it_is_required(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails)
            .env("SVC_REQUIRE_EMAIL_VERIFICATION", "true")
            .env("SVC_ANONYMOUS_AUTH", "true")
            .env("SVC_SIGNUP_ROLE", "member")
            .start()
            .await;
        // The first admin need not prove the address. So a wrong mail server cannot keep everybody from signing in.
        let admin = server.admin().await;
        assert_eq!(sign_in(&server, "admin", PASSWORD).await.status, 200);
        let instance = server.call("GET", "/api/v1/instance", None).await.json();
        assert_eq!((&instance["mail"], &instance["emailVerification"]), (&json!(true), &json!(true)));
        expect_status(&admin.post("/api/v1/roles", json!({ "name": "member", "permissions": [] })).await, 201);

        let body = json!({ "name": "Ann", "email": "ann@example.com", "password": PASSWORD, "callbackURL": "/welcome" });
        let signed_up = post(&server, "sign-up/email", body.clone()).await;
        assert_eq!((signed_up.status, &signed_up.json()["token"]), (200, &Value::Null), "{}", signed_up.text);
        assert!(!signed_up.headers.contains_key("set-auth-token"));
        let cookie = signed_up.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let mail = mails.mails(1).await.remove(0);
        // For a taken address, the response looks the same. Its account gets a mail as long as the address still has to be
        // proved.
        let taken = post(&server, "sign-up/email", json!({ "name": "Eve", "email": "ann@example.com", "password": NEW_PASSWORD })).await;
        let members = |answer: &Answer| answer.json()["user"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!((taken.status, members(&taken)), (200, members(&signed_up)), "{}", taken.text);
        assert_eq!(taken.json()["user"]["name"], "Eve");
        let of_taken = taken.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        assert_eq!(of_taken.split('=').next(), cookie.split('=').next());
        // If a browser signs up twice, its cookie still shows the first account.
        let again = server.request("POST", "/api/auth/sign-up/email").header("cookie", &cookie).header("origin", &server.base);
        let again = server.send(again.json(&body)).await;
        let cookie = again.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        mails.mails(3).await;

        // With a wrong password, the response does not reveal whether the address is proved.
        assert_eq!(sign_in(&server, "ann", NEW_PASSWORD).await.status, 401);
        expect_code(&sign_in(&server, "ann", PASSWORD).await, 403, "EMAIL_NOT_VERIFIED");
        let newest = mails.mails(4).await.remove(3);
        // A scanner of mails sends a HEAD request.
        assert_eq!(server.call("HEAD", &path_of(&server, &newest), None).await.status, 204);
        // The browser that signed up is signed in, and keeps its password.
        let opened = server.send(server.request("GET", &path_of(&server, &newest)).header("cookie", &cookie)).await;
        assert_eq!(opened.status, 302, "{}", opened.text);
        let ann = server.with_token(opened.headers["set-auth-token"].to_str().unwrap().to_owned());
        assert_eq!(ann.get("/api/v1/me").await.json()["roles"], json!(["member"]));
        assert_eq!(sign_in(&server, "ann", PASSWORD).await.status, 200);
        // The use of a link ends the other links of its kind.
        assert_eq!(server.call("GET", &path_of(&server, &mail), None).await.headers["location"], "/welcome?error=INVALID_TOKEN");
        // The cookie that belongs to a taken address gives no access.
        assert_eq!(admin.get("/api/v1/users").await.json()["pagination"]["totalCount"], 2);

        // A guest stays a guest until the link is used in the guest's browser.
        let guest = post(&server, "sign-in/anonymous", json!({})).await.json()["token"].as_str().unwrap().to_owned();
        let body = json!({ "name": "Bob", "email": "bob@example.com", "password": PASSWORD });
        let signed_up = server.call_as(Some(&guest), "POST", "/api/auth/sign-up/email", Some(body)).await;
        let cookie = signed_up.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        assert_eq!(server.with_token(guest.clone()).get("/api/v1/me").await.json()["user"]["isAnonymous"], true);
        let mail = mails.mails(5).await.remove(4);
        let request = server.request("GET", &path_of(&server, &mail)).header("cookie", &cookie).bearer_auth(&guest);
        let opened = server.send(request).await;
        let bob = opened.headers["set-auth-token"].to_str().unwrap().to_owned();
        let bob = server.with_token(bob).get("/api/v1/me").await.json();
        // A guest who signs up does not get the role of sign-ups.
        assert_eq!((&bob["user"]["email"], &bob["roles"]), (&json!("bob@example.com"), &json!([])), "{bob}");
        until("the guest is gone", async || server.with_token(guest.clone()).get("/api/v1/me").await.json()["authenticated"] == false).await;
    }

    async fn only_the_first_admin_signs_in_without_a_proof(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).env("SVC_REQUIRE_EMAIL_VERIFICATION", "true").start().await;
        let admin = server.admin().await;
        let mut others = Vec::new();
        for name in ["bob", "carl"] {
            let body = json!({ "name": name, "email": format!("{name}@example.com"), "password": PASSWORD });
            assert_eq!(post(&server, "sign-up/email", body).await.status, 200);
            let id = admin.get(&format!("/api/v1/users?search={name}")).await.data()[0]["id"].as_str().unwrap().to_owned();
            expect_status(&admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": "admin" })).await, 200);
            others.push(id);
        }
        for name in ["bob", "carl"] {
            expect_code(&sign_in(&server, name, PASSWORD).await, 403, "EMAIL_NOT_VERIFIED");
        }
        assert_eq!(sign_in(&server, "admin", PASSWORD).await.status, 200);

        // If the first admin cannot sign in any more, the next one can. Otherwise nobody could without mail.
        expect_status(&admin.patch(&format!("/api/v1/users/{}", others[0]), json!({ "banned": true })).await, 200);
        let first = admin.get("/api/v1/me").await.json()["user"]["id"].as_str().unwrap().to_owned();
        expect_status(&admin.delete(&format!("/api/v1/users/{first}/roles/admin")).await, 204);
        expect_code(&sign_in(&server, "admin", PASSWORD).await, 403, "EMAIL_NOT_VERIFIED");
        let carl = sign_in(&server, "carl", PASSWORD).await;
        assert_eq!(carl.status, 200, "{}", carl.text);
        // The lift of the ban makes the older account the first again.
        let carl = server.with_token(carl.json()["token"].as_str().unwrap().to_owned());
        expect_status(&carl.patch(&format!("/api/v1/users/{}", others[0]), json!({ "banned": false })).await, 200);
        expect_code(&sign_in(&server, "carl", PASSWORD).await, 403, "EMAIL_NOT_VERIFIED");
        assert_eq!(sign_in(&server, "bob", PASSWORD).await.status, 200);
    }

    async fn an_address_changes_when_the_new_one_confirms(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).start().await;
        let admin = server.admin().await;
        let ann = server.with_token(server.sign_up("ann").await);
        let ask = async |who: &Admin<'_>, address: &str| {
            server.call_as(Some(&who.token), "POST", "/api/auth/change-email", Some(json!({ "newEmail": address }))).await
        };
        assert_eq!(post(&server, "change-email", json!({ "newEmail": "new@example.com" })).await.status, 401);
        expect_code(&ask(&ann, "Ann@Example.com").await, 400, "EMAIL_IS_THE_SAME");
        expect_code(&ask(&ann, "nonsense").await, 400, "VALIDATION_ERROR");
        // For a taken address, the answer is the same, but no mail is sent.
        let (taken, free) = (ask(&ann, "admin@example.com").await, ask(&ann, "new@example.com").await);
        assert_eq!((free.status, &free.text), (200, &taken.text));
        let mail = mails.mails(1).await.remove(0);
        assert_eq!(mail["to"], json!(["new@example.com"]), "{mail}");
        // Nothing has changed yet, and a browser of somebody else changes nothing.
        assert_eq!(sign_in(&server, "ann", PASSWORD).await.status, 200);
        let path = path_of(&server, &mail);
        let by_admin = admin.get(path.split("&callbackURL").next().unwrap()).await;
        expect_code(&by_admin, 401, "INVALID_USER");
        // The owner of the new address cannot change anything either, because they may not know the account.
        let by_nobody = server.call("GET", path.split("&callbackURL").next().unwrap(), None).await;
        expect_code(&by_nobody, 401, "INVALID_USER");
        request_reset(&server, "ann").await;
        let of_reset = token(&mails.mails(2).await[1]);
        let opened = ann.get(path.split("&callbackURL").next().unwrap()).await.json();
        assert_eq!((&opened["user"]["email"], &opened["user"]["emailVerified"]), (&json!("new@example.com"), &json!(true)), "{opened}");
        // The earlier address gets a notice, and the account's links end. The sessions continue.
        let notice = mails.mails(3).await.remove(2);
        assert_eq!(notice["to"], json!(["ann@example.com"]), "{notice}");
        assert!(!notice["text"].as_str().unwrap().contains("http"), "{notice}");
        expect_code(&reset(&server, &of_reset, NEW_PASSWORD).await, 400, "INVALID_TOKEN");
        assert_eq!(sign_in(&server, "ann", PASSWORD).await.status, 401);
        assert_eq!(sign_in(&server, "new", PASSWORD).await.status, 200);
        assert_eq!(ann.get("/api/v1/me").await.json()["user"]["email"], "new@example.com");
        expect_code(&ann.get(path.split("&callbackURL").next().unwrap()).await, 401, "INVALID_TOKEN");
        // The address was taken between the mail and the click.
        ask(&ann, "late@example.com").await;
        let mail = mails.mails(4).await.remove(3);
        server.sign_up("late").await;
        expect_code(&ann.get(path_of(&server, &mail).split("&callbackURL").next().unwrap()).await, 401, "INVALID_TOKEN");
        // A guest has no address to change.
        assert_eq!(admin.get("/api/v1/users").await.json()["pagination"]["totalCount"], 3);
    }

    async fn users_delete_themselves_where_they_may(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).env("SVC_DELETE_USER", "true").start().await;
        let of_admin = server.admin().await.token;
        let delete = async |token: &str, body: Value| {
            server.call_as(Some(token), "POST", "/api/auth/delete-user", Some(body)).await
        };
        // The password is checked even if the session is new.
        let ann = server.sign_up("ann").await;
        let check = async |password: &str| {
            server.call_as(Some(&ann), "POST", "/api/auth/verify-password", Some(json!({ "password": password }))).await
        };
        expect_code(&check("wrong").await, 400, "INVALID_PASSWORD");
        assert_eq!(check(PASSWORD).await.json(), json!({ "status": true }));
        expect_code(&delete(&ann, json!({ "password": "wrong" })).await, 400, "INVALID_PASSWORD");
        let gone = delete(&ann, json!({ "password": PASSWORD })).await;
        assert_eq!((gone.status, &gone.json()["message"]), (200, &json!("User deleted")), "{}", gone.text);
        assert!(gone.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
        assert_eq!(sign_in(&server, "ann", PASSWORD).await.status, 401);
        // An empty request does not delete an account.
        let empty = server.send(server.request("POST", "/api/auth/delete-user").bearer_auth(&of_admin)).await;
        expect_code(&empty, 400, "VALIDATION_ERROR");
        // A new session is enough to delete the account.
        let bob = server.sign_up("bob").await;
        assert_eq!(delete(&bob, json!({})).await.json()["message"], "User deleted");
        // An old session is not enough. The server mails a link, which only works in a browser of the account.
        let eve = server.sign_up("eve").await;
        server.sql("UPDATE svc_sessions SET created_at = created_at - 90000000").await;
        let server = server.restart().await;
        let admin = server.with_token(of_admin);
        let delete = async |token: &str, body: Value| {
            server.call_as(Some(token), "POST", "/api/auth/delete-user", Some(body)).await
        };
        let mailed = delete(&eve, json!({ "callbackURL": "/bye" })).await;
        assert_eq!((mailed.status, &mailed.json()["message"]), (200, &json!("Verification email sent")), "{}", mailed.text);
        let mail = mails.mails(1).await.remove(0);
        let path = path_of(&server, &mail);
        expect_code(&server.call("GET", &path, None).await, 404, "FAILED_TO_GET_USER_INFO");
        expect_code(&admin.get(&path).await, 404, "INVALID_TOKEN");
        expect_code(&delete(&eve, json!({ "token": "wrong" })).await, 404, "INVALID_TOKEN");
        let gone = server.with_token(eve.clone()).get(&path).await;
        assert_eq!((gone.status, gone.headers["location"].to_str().unwrap()), (302, "/bye"), "{}", gone.text);
        assert_eq!(gone.headers["referrer-policy"], "no-referrer");
        until("eve is gone", async || admin.get("/api/v1/users").await.json()["pagination"]["totalCount"] == 1).await;
        // The last admin cannot be deleted.
        let last = delete(&admin.token, json!({ "password": PASSWORD })).await;
        assert_eq!(last.status, 409, "{}", last.text);
        assert_eq!(admin.get("/api/v1/me").await.json()["authenticated"], true);
    }

    async fn an_invitation_is_mailed(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).start().await;
        let admin = server.admin().await;
        let invited = admin.post("/api/v1/users", json!({ "email": "ann@example.com" })).await;
        assert_eq!(invited.status, 201, "{}", invited.text);
        let members: Vec<String> = invited.json().as_object().unwrap().keys().cloned().collect();
        assert_eq!(members, ["data"], "the link is in the mail alone");
        let mail = mails.mails(1).await.remove(0);
        assert!(mail["text"].as_str().unwrap().contains("within 7 days"), "{mail}");
        assert_eq!(reset(&server, &token(&mail), PASSWORD).await.status, 200);
        assert_eq!(sign_in(&server, "ann", PASSWORD).await.json()["user"]["emailVerified"], true);
        // The operator of the server gets the link.
        let made = server.run(&["user", "create", "bob@example.com"], "").await;
        assert!(made.out().contains("#token="), "{made:?}");
        // An invitation has the rights of the user who sent it, even if it waits in the outbox.
        admin.post("/api/v1/roles", json!({ "name": "inviter", "permissions": [
            { "resource": "users", "actions": ["create", "read"] },
        ] })).await.data();
        let eve = server.with_token(server.sign_up("eve").await);
        let id = eve.get("/api/v1/me").await.json()["user"]["id"].as_str().unwrap().to_owned();
        admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": "inviter" })).await.data();
        until("eve may invite", async || {
            eve.post("/api/v1/users", json!({ "email": "mallory@example.com" })).await.status == 201
        }).await;
        let mail = mails.mails(2).await.remove(1);
        assert_eq!(admin.patch(&format!("/api/v1/users/{id}"), json!({ "banned": true })).await.status, 200);
        expect_code(&reset(&server, &token(&mail), PASSWORD).await, 400, "INVALID_TOKEN");
        // If the address has had its five mails, the answer has the link.
        for _ in 0..5 {
            expect_status(&request_reset(&server, "carl").await, 200);
        }
        let invited = admin.post("/api/v1/users", json!({ "email": "carl@example.com" })).await;
        expect_status(&invited, 201);
        let invited = invited.json();
        let link = invited["link"].as_str().unwrap_or_else(|| panic!("no link: {invited}"));
        assert_eq!(reset(&server, link.split_once("#token=").unwrap().1, PASSWORD).await.status, 200);
    }

    async fn one_address_gets_five_mails_an_hour(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).start().await;
        let admin = server.admin().await;
        server.sign_up("ann").await;
        // The requests run at the same time, so that a race would show.
        let asked = futures_util::future::join_all((0..20).map(|_| request_reset(&server, "ann"))).await;
        assert!(asked.iter().all(|answer| answer.status == 200));
        let nobody = futures_util::future::join_all((0..20).map(|_| request_reset(&server, "nobody"))).await;
        assert!(nobody.iter().all(|answer| answer.text == asked[0].text));
        until("all that may be sent is sent", async || {
            let ended = deliveries(&admin).await;
            ended.len() == 10 && ended.iter().all(|delivery| delivery["status"] == "delivered")
        }).await;
        assert_eq!(mails.events("mail").len(), 5);
        // Each link works until one of them is used.
        let sent = mails.mails(5).await;
        let works = async |mail: &Value| {
            let path = format!("/api/auth/reset-password/{}?callbackURL=/x", token(mail));
            server.call("GET", &path, None).await.headers["location"].to_str().unwrap().starts_with("/x?token=")
        };
        for mail in &sent {
            assert!(works(mail).await);
        }
        assert_eq!(reset(&server, &token(&sent[2]), NEW_PASSWORD).await.status, 200);
        for mail in &sent {
            assert!(!works(mail).await);
        }
        // After an hour, more mails are allowed.
        server.sql("UPDATE svc_window_counts SET since = since - 3600001").await;
        request_reset(&server, "ann").await;
        mails.mails(6).await;
    }

    async fn the_newest_ten_links_of_a_kind_are_valid(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).start().await;
        server.admin().await;
        server.sign_up("ann").await;
        for sent in 1..=11 {
            request_reset(&server, "ann").await;
            mails.mails(sent).await;
            server.sql("UPDATE svc_window_counts SET since = since - 3600001").await;
        }
        until("all are sent", async || server.sql("SELECT id FROM svc_mails").await.is_empty()).await;
        let sent = mails.mails(11).await;
        expect_code(&reset(&server, &token(&sent[0]), NEW_PASSWORD).await, 400, "INVALID_TOKEN");
        assert_eq!(reset(&server, &token(&sent[1]), NEW_PASSWORD).await.status, 200);
    }

    async fn accounts_and_networks_ask_for_so_many_mails(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).env("SVC_MAILS_PER_NETWORK", "24").start().await;
        let admin = server.admin().await;
        let ann = server.with_token(server.sign_up("ann").await);
        let change = async |index: usize| {
            let body = json!({ "newEmail": format!("new-{index}@example.com") });
            ann.post("/api/auth/change-email", body).await
        };
        for index in 0..20 {
            assert_eq!(change(index).await.status, 200);
        }
        let refused = change(20).await;
        let seconds: u32 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!(refused.status == 429 && (1..=3601).contains(&seconds), "{} {seconds}", refused.text);
        // The limit applies to everybody in the network, and to known and unknown addresses alike.
        for name in ["ann", "nobody-1", "nobody-2", "nobody-3"] {
            assert_eq!(request_reset(&server, name).await.status, 200);
        }
        for name in ["ann", "nobody-4"] {
            assert_eq!(request_reset(&server, name).await.status, 429);
        }
        // A user who manages users can send more invitations.
        expect_status(&admin.post("/api/v1/users", json!({ "email": "bob@example.com" })).await, 201);
        server.sql("UPDATE svc_window_counts SET since = since - 3600001").await;
        assert_eq!(change(20).await.status, 200);
    }

    async fn a_network_without_mails_left_signs_up_and_in(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).env("SVC_REQUIRE_EMAIL_VERIFICATION", "true").env("SVC_MAILS_PER_NETWORK", "1").start().await;
        server.admin().await;
        for name in ["ann", "bob"] {
            let body = json!({ "name": name, "email": format!("{name}@example.com"), "password": PASSWORD });
            let signed_up = post(&server, "sign-up/email", body).await;
            assert_eq!((signed_up.status, &signed_up.json()["token"]), (200, &Value::Null), "{}", signed_up.text);
        }
        // They are two sign-ups of the network, one mail to Ann, and no mail to Bob.
        assert_eq!(server.sql("SELECT times FROM svc_window_counts ORDER BY times").await.concat(), ["0", "1", "2"]);
        // The right password is no failed try, however often.
        for _ in 0..12 {
            expect_code(&sign_in(&server, "bob", PASSWORD).await, 403, "EMAIL_NOT_VERIFIED");
        }
        assert_eq!(mails.mails(1).await.len(), 1);
        server.sql("UPDATE svc_window_counts SET since = since - 3600001").await;
        expect_code(&sign_in(&server, "bob", PASSWORD).await, 403, "EMAIL_NOT_VERIFIED");
        assert_eq!(mails.mails(2).await[1]["to"], json!(["bob@example.com"]));
    }

    async fn passwords_are_checked_ten_times_in_a_quarter_of_an_hour(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).start().await;
        server.admin().await;
        let ann = server.with_token(server.sign_up("ann").await);
        let check = async |password: &str| ann.post("/api/auth/verify-password", json!({ "password": password })).await;
        for _ in 0..9 {
            expect_code(&check("wrong").await, 400, "INVALID_PASSWORD");
        }
        // Passwords that are too long are not checked, and do not count.
        expect_code(&check(&"x".repeat(129)).await, 400, "PASSWORD_TOO_LONG");
        // Correct passwords do not count.
        for _ in 0..3 {
            assert_eq!(check(PASSWORD).await.status, 200);
        }
        expect_code(&check("wrong").await, 400, "INVALID_PASSWORD");
        for password in ["wrong", PASSWORD] {
            let refused = check(password).await;
            assert!(refused.status == 429 && refused.headers.contains_key("retry-after"), "{}", refused.text);
        }
        server.sql("UPDATE svc_window_counts SET since = since - 900001").await;
        server.sql("DELETE FROM svc_sign_in_tries").await;
        assert_eq!(check(PASSWORD).await.status, 200);
    }

    async fn a_mail_survives_a_mail_server_that_is_away_and_a_kill(engine: Engine) {
        let mut mails = MailServer::start(&["--fail", "1"]).await;
        let mut server = sending_to(engine, &mails).start().await;
        let token_of_admin = server.admin().await.token;
        server.sign_up("ann").await;
        request_reset(&server, "ann").await;
        let first = mails.mails(1).await.remove(0);
        assert_eq!(mails.events("failed").len(), 1);
        // The ledger shows the attempt, but not the link.
        let admin = server.with_token(token_of_admin.clone());
        until("the delivery ended", async || {
            deliveries(&admin).await.first().is_some_and(|delivery| delivery["status"] == "delivered")
        }).await;
        let event = deliveries(&admin).await[0]["eventId"].as_str().unwrap().to_owned();
        let history = admin.get(&format!("/api/v1/events/deliveries/{event}/svc:mail")).await.text;
        assert!(history.contains("451") && !history.contains(&token(&first)), "{history}");

        // A mail server that hangs does not delay requests, and after a kill no mail is lost.
        mails.behave(json!({ "hang": true })).await;
        server.sql("DELETE FROM svc_window_counts").await;
        assert_eq!(request_reset(&server, "ann").await.status, 200);
        until("the mail hangs", async || !mails.events("hung").is_empty()).await;
        server.kill();
        mails.behave(json!({ "hang": false })).await;
        // The claim of the killed process ends like that of any delivery.
        server.sql("UPDATE svc_deliveries SET lease_until = 0 WHERE lease_until IS NOT NULL").await;
        let server = server.builder().start().await;
        let second = mails.mails(2).await.remove(1);
        assert_ne!(token(&first), token(&second));
        assert_eq!(reset(&server, &token(&second), NEW_PASSWORD).await.status, 200);
        expect_code(&reset(&server, &token(&first), NEW_PASSWORD).await, 400, "INVALID_TOKEN");
    }

    async fn an_address_that_is_refused_is_dead_in_the_end(engine: Engine) {
        let mut mails = MailServer::start(&["--refuse", "ann@example.com"]).await;
        let server = sending_to(engine, &mails).start().await;
        let admin = server.admin().await;
        server.sign_up("ann").await;
        request_reset(&server, "ann").await;
        until("the delivery is dead", async || deliveries(&admin).await.first().is_some_and(|delivery| delivery["dead"] == true)).await;
        let dead = deliveries(&admin).await.remove(0);
        assert!(dead["error"].as_str().unwrap().contains("550"), "{dead}");
        assert!(!dead.to_string().contains("ann@"), "{dead}");
        // After a retry by hand, the mail is sent with a new link.
        mails.behave(json!({ "refuse": [] })).await;
        let body = json!({ "eventId": dead["eventId"], "consumer": "svc:mail" });
        let retried = admin.post("/api/v1/events/deliveries/retry", body).await;
        assert!((200..300).contains(&retried.status), "{}", retried.text);
        assert_eq!(reset(&server, &token(&mails.mails(1).await[0]), NEW_PASSWORD).await.status, 200);
    }

    async fn no_header_of_a_request_moves_a_link(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).start().await;
        server.admin().await;
        let body = json!({ "email": "admin@example.com" });
        let request = server.request("POST", "/api/auth/request-password-reset");
        let request = request.header("x-forwarded-host", "evil.example").header("x-forwarded-proto", "https");
        let request = request.header("referer", "https://evil.example/").header("accept-language", "../../x").json(&body);
        assert_eq!(server.send(request).await.status, 200);
        let mail = mails.mails(1).await.remove(0);
        assert!(!mail["raw"].as_str().unwrap().contains("evil"), "{mail}");
        assert!(link(&mail).starts_with(&server.base), "{mail}");
        // The server answers requests for any IP address, but no link contains one of these addresses.
        let request = server.request("POST", "/api/auth/request-password-reset").header("host", "192.0.2.7:1");
        assert_eq!(server.send(request.json(&body)).await.status, 200);
        let mail = mails.mails(2).await.remove(1);
        assert!(!mail["raw"].as_str().unwrap().contains("192.0.2.7") && link(&mail).starts_with(&server.base), "{mail}");
        let body = json!({ "email": "admin@example.com", "redirectTo": "https://evil.example/reset" });
        expect_code(&post(&server, "request-password-reset", body).await, 403, "INVALID_REDIRECT_URL");
        // No mail contains a name, and neither a name nor an address can add a header.
        let eve = json!({ "name": "Eve\r\nBcc: spy@example.com\r\n\r\nBuy this", "email": "eve@example.com", "password": PASSWORD });
        expect_status(&post(&server, "sign-up/email", eve).await, 200);
        expect_status(&request_reset(&server, "eve").await, 200);
        let mail = mails.mails(3).await.remove(2);
        assert_eq!(mail["to"], json!(["eve@example.com"]), "{mail}");
        let raw = mail["raw"].as_str().unwrap();
        assert!(!raw.contains("spy@") && !raw.contains("Bcc") && !raw.contains("Buy this"), "{mail}");
        for email in ["a@example.com\r\nBcc: eve@example.com", "a@example.com,eve@example.com", "<a@example.com>"] {
            expect_code(&post(&server, "request-password-reset", json!({ "email": email })).await, 400, "VALIDATION_ERROR");
        }
        // If a mailed link names a page of the server, it leads there with the token.
        let body = json!({ "email": "admin@example.com", "redirectTo": "/reset" });
        assert_eq!(post(&server, "request-password-reset", body).await.status, 200);
        let mail = mails.mails(4).await.remove(3);
        let opened = server.call("GET", &path_of(&server, &mail), None).await;
        assert_eq!(opened.headers["location"].to_str().unwrap(), format!("/reset?token={}", token(&mail)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_goes_over_tls_with_a_password_and_to_trusted_servers_alone() {
    for (mode, scheme, query) in [("implicit", "smtps", ""), ("starttls", "smtp", "?tls=required")] {
        let arguments = ["--tls", mode, "--user", "shop@x", "--password", "p:ss/w@rd"];
        let mails = MailServer::start(&arguments).await;
        let with = |to: &MailServer, user: &str, authority: &str| {
            ServerBuilder::new(Engine::Sqlite)
                .env("SVC_SMTP_URL", &format!("{scheme}://{user}@localhost:{}{query}", to.port()))
                .env("SVC_MAIL_FROM", "shop@example.com")
                .env("SVC_RETRY_BASE_MS", "1")
                .env("SVC_EVENTS_POLL_INTERVAL_MS", "50")
                .env("SSL_CERT_FILE", authority)
        };
        let good = "shop%40x:p%3Ass%2Fw%40rd";
        let server = with(&mails, good, mails.authority()).start().await;
        server.admin().await;
        request_reset(&server, "admin").await;
        let mail = mails.mails(1).await.remove(0);
        assert_eq!((&mail["tls"], &mail["user"]), (&json!(true), &json!("shop@x")), "{mail}");

        // A wrong password, an authority that is not trusted, and a certificate with another name. In each case nothing is sent,
        // and the log and the ledger show no password.
        let other = MailServer::start(&["--tls", "implicit"]).await;
        let misnamed = MailServer::start(&[&arguments[..], &["--name", "mail.example.com"][..]].concat()).await;
        for (to, user, authority, why) in [
            (&mails, "shop%40x:hunter2", mails.authority(), "535"),
            (&mails, good, other.authority(), "invalid peer certificate"),
            (&misnamed, good, misnamed.authority(), "not valid for name"),
        ] {
            let server = with(to, user, authority).start().await;
            let admin = server.admin().await;
            request_reset(&server, "admin").await;
            until("the delivery failed", async || {
                deliveries(&admin).await.first().is_some_and(|delivery| delivery["error"].is_string())
            })
            .await;
            let ledger = serde_json::to_string(&deliveries(&admin).await).unwrap();
            assert!(ledger.contains(why), "{ledger}");
            let settings = admin.get("/api/v1/settings").await.text;
            for text in [&ledger, &server.log(), &settings] {
                assert!(!text.contains("hunter2") && !text.contains("p:ss") && !text.contains("p%3Ass"), "{text}");
            }
        }
        assert_eq!((mails.events("mail").len(), misnamed.events("mail").len()), (1, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_come_from_a_folder_by_language() {
    let mails = MailServer::start(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("reset.de.txt"), "Subject: Neues Passwort für {{server}}\n\nHier: \n{{link}}\n").unwrap();
    std::fs::write(folder.path().join("reset.de.html"), "<p><a href=\"{{link}}\">Passwort</a></p>").unwrap();
    std::fs::write(folder.path().join("invite.de.txt"), "Subject: Dein Konto\n\n{{link}}\n").unwrap();
    std::fs::write(folder.path().join("email-changed.de.txt"), "Subject: Andere Adresse\n\nNicht mehr {{email}}.\n").unwrap();
    let server = sending_to(Engine::Sqlite, &mails).env("SVC_MAIL_TEMPLATES", folder.path().to_str().unwrap()).start().await;
    let admin = server.admin().await;
    let request = server.request("POST", "/api/auth/request-password-reset").header("accept-language", "de-AT,en;q=0.5");
    server.send(request.json(&json!({ "email": "admin@example.com" }))).await;
    let mail = mails.mails(1).await.remove(0);
    assert_eq!(mail["subject"], "Neues Passwort für 127.0.0.1", "{mail}");
    assert!(mail["html"].as_str().unwrap().contains("<a href=\"http"), "{mail}");
    request_reset(&server, "admin").await;
    assert!(mails.mails(2).await[1]["html"].is_null());
    // An invitation has the language of the request for it.
    let invitation = admin.request("POST", "/api/v1/users").header("accept-language", "de");
    expect_status(&server.send(invitation.json(&json!({ "email": "ann@example.com" }))).await, 201);
    let mail = mails.mails(3).await.remove(2);
    assert_eq!((&mail["to"], &mail["subject"]), (&json!(["ann@example.com"]), &json!("Dein Konto")), "{mail}");
    // The notice of a change of the address has the language of the browser that opens the link.
    let bob = server.with_token(server.sign_up("bob").await);
    expect_status(&bob.post("/api/auth/change-email", json!({ "newEmail": "new@example.com" })).await, 200);
    let path = path_of(&server, &mails.mails(4).await[3]);
    expect_status(&server.send(bob.request("GET", &path).header("accept-language", "de")).await, 302);
    let mail = mails.mails(5).await.remove(4);
    assert_eq!((&mail["to"], &mail["subject"]), (&json!(["bob@example.com"]), &json!("Andere Adresse")), "{mail}");
}

#[tokio::test]
async fn wrong_settings_of_mail_stop_the_boot() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("reset.en.txt"), "no subject").unwrap();
    let folder = folder.path().to_str().unwrap();
    let alone = tempfile::tempdir().unwrap();
    std::fs::write(alone.path().join("reset.de.html"), "{{link}}").unwrap();
    let alone = alone.path().to_str().unwrap();
    for (settings, named) in [
        (&[("SVC_SMTP_URL", "smtp://user:hunter2@mail.example.com"), ("SVC_MAIL_FROM", "a@b.c")][..], "SVC_SMTP_URL"),
        (&[("SVC_SMTP_URL", "smtps://mail.example.com")], "SVC_MAIL_FROM"),
        (&[("SVC_SMTP_URL", "smtps://mail.example.com"), ("SVC_MAIL_FROM", "nobody")], "SVC_MAIL_FROM"),
        (&[("SVC_MAIL_FROM", "a@b.c")], "SVC_SMTP_URL"),
        (&[("SVC_REQUIRE_EMAIL_VERIFICATION", "true")], "SVC_SMTP_URL"),
        (&[("SVC_MAIL_LOG", "true"), ("SVC_EVENTS_ENABLED", "false")], "SVC_EVENTS_ENABLED"),
        (&[("SVC_MAIL_LOG", "true"), ("SVC_MAIL_TEMPLATES", "/nonexistent")], "SVC_MAIL_TEMPLATES"),
        (&[("SVC_MAIL_LOG", "true"), ("SVC_MAIL_TEMPLATES", folder)], "reset.en.txt"),
        (&[("SVC_MAIL_LOG", "true"), ("SVC_MAIL_TEMPLATES", alone)], "reset.de.html"),
        (&[("SVC_MAILS_PER_NETWORK", "0")], "SVC_MAILS_PER_NETWORK"),
        (&[("SVC_BREACHED_PASSWORDS", "/nonexistent")], "SVC_BREACHED_PASSWORDS"),
        // The folder has no prefix files.
        (&[("SVC_BREACHED_PASSWORDS", folder)], "SVC_BREACHED_PASSWORDS"),
    ] {
        let builder = settings.iter().fold(ServerBuilder::new(Engine::Sqlite), |builder, (name, value)| builder.env(name, value));
        let (status, text) = builder.fail().await;
        assert_eq!(status.code(), Some(2), "{settings:?}: {text}");
        assert!(text.contains(named) && !text.contains("hunter2") && text.trim_end().lines().count() == 1, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_mail_its_routes_are_not_there_and_the_log_shows_mail_where_it_is_asked_to() {
    let server = ServerBuilder::new(Engine::Sqlite).start().await;
    server.admin().await;
    for path in ["request-password-reset", "send-verification-email"] {
        expect_code(&post(&server, path, json!({ "email": "admin@example.com" })).await, 404, "not_found");
    }
    let ann = server.sign_up("ann").await;
    for (path, body) in [("change-email", json!({ "newEmail": "new@example.com" })), ("delete-user", json!({}))] {
        expect_code(&server.call_as(Some(&ann), "POST", &format!("/api/auth/{path}"), Some(body)).await, 404, "not_found");
    }
    assert_eq!(server.call("GET", "/api/v1/instance", None).await.json()["mail"], false);
    let server = ServerBuilder::new(Engine::Sqlite).env("SVC_MAIL_LOG", "true").start().await;
    server.admin().await;
    request_reset(&server, "admin").await;
    let log = server.log_with("#token=").await;
    assert!(log.contains("admin@example.com"), "{log}");
}

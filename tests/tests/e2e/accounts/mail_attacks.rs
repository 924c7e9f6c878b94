//! Attacks on mailed links, and on who has an account: parallel uses, links of other kinds, links that outlive a password, and
//! differences in the work of the server.

use blockbase_tests::{Answer, Engine, MailServer, Server, ServerBuilder, on_both_engines, until};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::events::Stream;

use super::mail::{NEW_PASSWORD, PASSWORD, expect_code, path_of, post, request_reset, reset, sending_to, sign_in, token};

/// The path of a link that proves an address, without the page where it ends. So its outcome is a JSON response.
fn proof_path(mail: &Value) -> String {
    format!("/api/auth/verify-email?token={}", token(mail))
}

/// A request with the id `id`, so that the log shows its statements. Returns the answer and the statements. The server's log has
/// JSON and statements.
pub(crate) async fn traced(server: &Server, id: &str, request: reqwest::RequestBuilder) -> (Answer, Vec<String>) {
    let answer = server.send(request.header("x-request-id", id)).await;
    let marked = format!("\"request.id\":\"{id}\"");
    let lines = || -> Vec<Value> {
        let log = server.log();
        log.lines().filter(|line| line.contains(&marked)).map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    // The log comes through a pipe, so it may be late. The statements of a request come before the line of its answer.
    until("the request is in the log", async || lines().iter().any(|line| line["fields"]["message"] == "answered")).await;
    let statements = lines().iter().filter_map(|line| line["fields"]["statement"].as_str().map(str::to_owned)).collect();
    (answer, statements)
}

on_both_engines! {
    async fn of_many_uses_of_a_mailed_link_one_wins(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).start().await;
        // On SQLite there is only one instance.
        let other = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(server.builder().start().await),
        };
        server.admin().await;
        let ann = server.with_token(server.sign_up("ann").await);
        for (number, (path, body)) in [
            ("send-verification-email", json!({ "email": "ann@example.com" })),
            ("change-email", json!({ "newEmail": "new@example.com" })),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(ann.post(&format!("/api/auth/{path}"), body).await.status, 200);
            let link = proof_path(&mails.mails(number + 1).await[number]);
            // The number of requests equals the number of tries without a delay, because requests that do not succeed count as
            // tries with a wrong token.
            server.sql("DELETE FROM svc_sign_in_tries").await;
            let answers = join_all((0..8).map(|request| {
                let server = other.as_ref().filter(|_| request % 2 == 1).unwrap_or(&server);
                server.call_as(Some(&ann.token), "GET", &link, None)
            }))
            .await;
            assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1, "{path}: {answers:?}");
            for answer in answers.iter().filter(|answer| answer.status != 200) {
                expect_code(answer, 401, "INVALID_TOKEN");
            }
        }
        assert_eq!(sign_in(&server, "new", PASSWORD).await.json()["user"]["emailVerified"], true);
        // The earlier address gets one notice.
        assert_eq!(mails.mails(3).await[2]["to"], json!(["ann@example.com"]));
        until("nothing waits any more", async || server.sql("SELECT id FROM svc_mails").await.is_empty()).await;
        assert_eq!(mails.events("mail").len(), 3);
    }

    async fn links_of_every_kind_last_an_hour_and_end_with_the_password(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).env("SVC_DELETE_USER", "true").start().await;
        let admin = server.admin().await;
        let ann = server.with_token(server.sign_up("ann").await);
        // With an old session, a deletion needs a link. No request has used these sessions yet, so they are not in memory.
        server.sql("UPDATE svc_sessions SET created_at = created_at - 90000000").await;
        assert_eq!(ann.post("/api/auth/delete-user", json!({})).await.json()["message"], "Verification email sent");
        let of_deletion = token(&mails.mails(1).await[0]);
        assert_eq!(request_reset(&server, "ann").await.status, 200);
        let of_reset = token(&mails.mails(2).await[1]);
        assert_eq!(ann.post("/api/auth/send-verification-email", json!({ "email": "ann@example.com" })).await.status, 200);
        let verification = proof_path(&mails.mails(3).await[2]);
        assert_eq!(ann.post("/api/auth/change-email", json!({ "newEmail": "new@example.com" })).await.status, 200);
        let change = proof_path(&mails.mails(4).await[3]);
        let lives = server.sql("SELECT expires_at - created_at FROM svc_account_tokens").await.concat();
        assert_eq!(lives, ["3600000"; 4]);

        // A link of one kind cannot be used as a link of another kind.
        expect_code(&ann.post("/api/auth/delete-user", json!({ "token": of_reset })).await, 404, "INVALID_TOKEN");
        expect_code(&reset(&server, &of_deletion, NEW_PASSWORD).await, 400, "INVALID_TOKEN");
        let as_verification = format!("/api/auth/verify-email?token={of_deletion}");
        expect_code(&ann.get(&as_verification).await, 401, "INVALID_TOKEN");

        let body = json!({ "currentPassword": PASSWORD, "newPassword": NEW_PASSWORD });
        assert_eq!(ann.post("/api/auth/change-password", body).await.status, 200);
        assert!(server.sql("SELECT token_hash FROM svc_account_tokens").await.is_empty());
        expect_code(&ann.post("/api/auth/delete-user", json!({ "token": of_deletion })).await, 404, "INVALID_TOKEN");
        expect_code(&reset(&server, &of_reset, PASSWORD).await, 400, "INVALID_TOKEN");
        for link in [&verification, &change] {
            expect_code(&ann.get(link).await, 401, "INVALID_TOKEN");
        }
        let user = ann.get("/api/v1/me").await.json()["user"].clone();
        assert_eq!((&user["email"], &user["emailVerified"]), (&json!("ann@example.com"), &json!(false)));

        // The link of a deletion does not delete the last admin either.
        assert_eq!(admin.post("/api/auth/delete-user", json!({})).await.json()["message"], "Verification email sent");
        let link = path_of(&server, &mails.mails(5).await[4]);
        assert_eq!(admin.get(&link).await.status, 409);
        assert_eq!(admin.get("/api/v1/users").await.json()["pagination"]["totalCount"], 2);
    }
}

/// The statements of a request's transaction. Before it, a request may read the session of its caller.
fn work(statements: Vec<String>) -> Vec<String> {
    statements.into_iter().skip_while(|text| text != "BEGIN").collect()
}

/// On SQLite the statements are the same, but a thread of its own runs the writes, and its statements show no request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_does_the_same_work_for_every_address() {
    let mails = MailServer::start(&[]).await;
    let server = sending_to(Engine::Postgres, &mails)
        .env("SVC_LOG", "info,blockbase_store::sql=trace")
        .env("SVC_LOG_FORMAT", "json")
        .start()
        .await;
    let admin = server.admin().await;
    server.sign_up("ann").await;
    // The first try also deletes old tries.
    assert_eq!(sign_in(&server, "ann", PASSWORD).await.status, 200);
    let with_email = |path: &str, mut body: Value, name: &str| {
        let member = if path == "change-email" { "newEmail" } else { "email" };
        body[member] = json!(format!("{name}@example.com"));
        let request = server.request("POST", &format!("/api/auth/{path}")).json(&body);
        if path == "change-email" { request.bearer_auth(&admin.token) } else { request }
    };
    for (number, (path, body)) in [
        ("sign-in/email", json!({ "password": "a wrong password" })),
        ("request-password-reset", json!({})),
        ("send-verification-email", json!({})),
        ("change-email", json!({})),
    ]
    .into_iter()
    .enumerate()
    {
        let (known, of_known) = traced(&server, &format!("known-{number}"), with_email(path, body.clone(), "ann")).await;
        let (unknown, of_unknown) = traced(&server, &format!("unknown-{number}"), with_email(path, body, "nobody")).await;
        assert_eq!((known.status, &known.text), (unknown.status, &unknown.text), "{path}");
        let (of_known, of_unknown) = (work(of_known), work(of_unknown));
        assert_eq!(of_known.last().map(String::as_str), Some("COMMIT"), "{path}: {of_known:?}");
        assert_eq!(of_known, of_unknown, "{path}");
    }

    // Each statement of a sign-in is a round trip: five count the try and read the password, and six write the session.
    let request = with_email("sign-in/email", json!({ "password": PASSWORD }), "ann");
    let (signed_in, statements) = traced(&server, "signs-in", request).await;
    assert_eq!((signed_in.status, statements.len()), (200, 11), "{statements:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sign_up_does_the_same_work_for_every_address() {
    let mails = MailServer::start(&[]).await;
    let traces =
        sending_to(Engine::Postgres, &mails).env("SVC_LOG", "info,blockbase_store::sql=trace").env("SVC_LOG_FORMAT", "json");
    let (server, _) = with_members(traces).await;
    let sign_up = || server.request("POST", "/api/auth/sign-up/email").json(&of_ann());
    let (free, of_free) = traced(&server, "free", sign_up()).await;
    let (taken, of_taken) = traced(&server, "taken", sign_up()).await;
    assert_eq!((free.status, taken.status), (200, 200), "{} {}", free.text, taken.text);
    // Both end their nested transaction with one round trip.
    let ended_alike = |statements: Vec<String>, end: &str| -> Vec<String> {
        assert_eq!(statements.iter().filter(|text| *text == end).count(), 1, "{statements:?}");
        work(statements).into_iter().map(|text| if text == end { "the end".to_owned() } else { text }).collect()
    };
    let of_free = ended_alike(of_free, "RELEASE SAVEPOINT svc_nested_1");
    let of_taken = ended_alike(of_taken, "ROLLBACK TO SAVEPOINT svc_nested_1; RELEASE SAVEPOINT svc_nested_1");
    assert_eq!(of_free.last().map(String::as_str), Some("COMMIT"), "{of_free:?}");
    for (table, times) in [("svc_users", 1), ("svc_credentials", 1), ("svc_user_roles", 1), ("svc_events", 2), ("svc_mails", 1)] {
        let inserts = of_free.iter().filter(|text| text.contains(&format!("INSERT INTO {table} ("))).count();
        assert_eq!(inserts, times, "{table}: {of_free:?}");
    }
    assert_eq!(of_free, of_taken);
    // Parallel sign-ups wait at the counts of mails, before the server knows whether the address is taken.
    let last_count = of_free.iter().rposition(|text| text.starts_with("INSERT INTO svc_window_counts ")).unwrap();
    let first_insert = of_free.iter().position(|text| text.starts_with("INSERT INTO svc_users ")).unwrap();
    assert!(last_count < first_insert, "{of_free:?}");
    counts_its_mail_first(&server, "a sign-up with a taken address", sign_up()).await;
}

/// The number of statements on Postgres that begin with this text and wait for a lock.
async fn waiting(server: &Server, statement: &str) -> usize {
    let query = format!(
        "SELECT pid::text FROM pg_stat_activity \
         WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '{statement} %'"
    );
    server.sql(&query).await.len()
}

fn of_ann() -> Value {
    json!({ "name": "Ann", "email": "ann@example.com", "password": PASSWORD })
}

/// Starts a server where a new account has to prove its address, and gets the role `member`. Returns the token of its admin too.
async fn with_members(builder: ServerBuilder) -> (Server, String) {
    let server = builder.env("SVC_REQUIRE_EMAIL_VERIFICATION", "true").env("SVC_SIGNUP_ROLE", "member").start().await;
    let admin = server.admin().await;
    assert_eq!(admin.post("/api/v1/roles", json!({ "name": "member", "permissions": [] })).await.status, 201);
    let token = admin.token.clone();
    (server, token)
}

/// Sends a request that makes an account. Asserts that, on Postgres, it waits for the count of its mail before it writes anything
/// of an account.
async fn counts_its_mail_first(server: &Server, way: &str, request: reqwest::RequestBuilder) {
    let counts = server.lock_rows("LOCK TABLE svc_window_counts IN EXCLUSIVE MODE").await;
    let waits = async {
        until("it waits for its count", async || waiting(server, "INSERT INTO svc_window_counts").await == 1).await;
        let written = "SELECT c.relname FROM pg_locks l JOIN pg_class c ON c.oid = l.relation \
                       JOIN pg_stat_activity a ON a.pid = l.pid \
                       WHERE a.datname = current_database() AND a.wait_event_type = 'Lock' \
                       AND a.query LIKE 'INSERT INTO svc_window_counts %' \
                       AND c.relname IN ('svc_users', 'svc_roles', 'svc_user_roles') AND l.mode <> 'AccessShareLock'";
        assert_eq!(server.sql(written).await, Vec::<Vec<String>>::new(), "{way}");
        counts.release().await;
    };
    let (answer, ()) = tokio::join!(server.send(request), waits);
    assert!(answer.status < 300, "{way}: {} {}", answer.status, answer.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_sign_ups_wait_at_the_same_place_for_every_address() {
    let mails = MailServer::start(&[]).await;
    let server = sending_to(Engine::Postgres, &mails)
        .env("SVC_REQUIRE_EMAIL_VERIFICATION", "true")
        .env("SVC_TRUSTED_PROXIES", "127.0.0.0/8,::1/128")
        .start()
        .await;
    server.admin().await;
    for address in ["free", "taken"] {
        until("no mail waits", async || server.sql("SELECT id FROM svc_mails").await.is_empty()).await;
        let lock = server.lock_rows("LOCK TABLE svc_mails IN EXCLUSIVE MODE").await;
        let both_wait = async {
            until("one sign-up waits for its mail, and the other one for its count", async || {
                let for_mail = waiting(&server, "INSERT INTO svc_mails").await;
                (for_mail, waiting(&server, "INSERT INTO svc_window_counts").await) == (1, 1)
            })
            .await;
            lock.release().await;
        };
        // They come from different networks, so they do not wait at the count of a network, but at that of the address.
        let sign_up = |network: &str| {
            let request = server.request("POST", "/api/auth/sign-up/email").header("x-forwarded-for", network);
            server.send(request.json(&of_ann()))
        };
        let (one, other, ()) = tokio::join!(sign_up("192.0.2.1"), sign_up("198.51.100.1"), both_wait);
        assert_eq!((one.status, other.status), (200, 200), "{address}: {} {}", one.text, other.text);
        assert_eq!(server.sql("SELECT id FROM svc_users WHERE email = 'ann@example.com'").await.len(), 1, "{address}");
    }
}

/// If an invitation and a sign-up had another order, two with one address or one role could wait for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sign_ups_and_invitations_count_their_mail_before_they_make_an_account() {
    let mails = MailServer::start(&[]).await;
    let (server, token) = with_members(sending_to(Engine::Postgres, &mails)).await;
    let invitation = json!({ "email": "bob@example.com", "roles": ["member"] });
    for (way, request) in [
        ("a sign-up", server.request("POST", "/api/auth/sign-up/email").json(&of_ann())),
        ("an invitation", server.with_token(token).request("POST", "/api/v1/users").json(&invitation)),
    ] {
        counts_its_mail_first(&server, way, request).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sign_up_whose_address_is_taken_meanwhile_leaves_nothing() {
    let mails = MailServer::start(&[]).await;
    let server = sending_to(Engine::Postgres, &mails).env("SVC_REQUIRE_EMAIL_VERIFICATION", "true").start().await;
    server.admin().await;
    let other = server
        .lock_rows(
            "INSERT INTO svc_users (id, name, email, email_verified, image, is_anonymous, banned, created_at, updated_at) \
             VALUES ('01890000-0000-7000-8000-000000000000', 'Other', 'ann@example.com', false, NULL, false, false, 0, 0)",
        )
        .await;
    let takes_it = async {
        until("the sign-up waits for the address", async || waiting(&server, "INSERT INTO svc_users").await == 1).await;
        other.release().await;
    };
    let (answer, ()) = tokio::join!(post(&server, "sign-up/email", of_ann()), takes_it);
    assert_eq!((answer.status, &answer.json()["token"]), (200, &Value::Null), "{}", answer.text);
    let accounts = server.sql("SELECT name, email FROM svc_users WHERE email <> 'admin@example.com'").await;
    assert_eq!(accounts, [["Other", "ann@example.com"]]);
    assert_eq!(server.sql("SELECT user_id FROM svc_credentials").await.len(), 1, "only the admin has a password");
    assert_eq!(server.sql("SELECT id FROM svc_events WHERE topic = 'auth.user.created'").await.len(), 1, "that of the admin");
    // The mail is for the account that has the address now.
    assert_eq!(mails.mails(1).await[0]["to"], json!(["ann@example.com"]));
}

on_both_engines! {
    async fn of_parallel_sign_ups_with_a_free_address_one_makes_the_account(engine: Engine) {
        const SIGN_UPS: usize = 4;
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).env("SVC_REQUIRE_EMAIL_VERIFICATION", "true").start().await;
        // On SQLite there is only one instance.
        let other = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(server.builder().start().await),
        };
        server.admin().await;
        let answers = join_all((0..SIGN_UPS).map(|number| {
            let server = other.as_ref().filter(|_| number % 2 == 1).unwrap_or(&server);
            post(server, "sign-up/email", of_ann())
        }))
        .await;
        let members = |answer: &Answer| -> Vec<String> {
            let user = answer.json()["user"].clone();
            user.as_object().unwrap().keys().cloned().collect()
        };
        for answer in &answers {
            assert_eq!((answer.status, &answer.json()["token"]), (200, &Value::Null), "{}", answer.text);
            assert_eq!(members(answer), members(&answers[0]));
        }
        let accounts = server.sql("SELECT id FROM svc_users WHERE email <> 'admin@example.com'").await.concat();
        assert_eq!(accounts.len(), 1);
        assert_eq!(answers.iter().filter(|answer| answer.json()["user"]["id"] == accounts[0].as_str()).count(), 1);
        assert_eq!(server.sql("SELECT user_id FROM svc_credentials").await.len(), 2);
        // Each of them sends a mail, because one address gets five within an hour.
        for mail in mails.mails(SIGN_UPS).await {
            assert_eq!(mail["to"], json!(["ann@example.com"]));
        }
        until("no mail waits", async || server.sql("SELECT id FROM svc_mails").await.is_empty()).await;
        assert_eq!(mails.events("mail").len(), SIGN_UPS);
    }

    async fn a_sign_up_with_a_taken_address_leaves_nothing(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let (server, token) = with_members(sending_to(engine, &mails)).await;
        let admin = server.with_token(token);
        assert_eq!(post(&server, "sign-up/email", of_ann()).await.status, 200);
        let stored = async || {
            let mut rows = Vec::new();
            for query in [
                "SELECT id, email FROM svc_users ORDER BY id",
                "SELECT user_id, password_hash FROM svc_credentials ORDER BY user_id",
                "SELECT user_id, role_id FROM svc_user_roles ORDER BY user_id, role_id",
                "SELECT id, topic FROM svc_events WHERE topic LIKE 'auth.user.%' ORDER BY id",
                "SELECT CAST(sum(rows) AS TEXT) FROM svc_counts WHERE object_id = 0",
            ] {
                rows.push(server.sql(query).await);
            }
            rows
        };
        let mut stream = Stream::open(&admin, "?topics=auth.user.%23").await;
        let before = stored().await;
        assert_eq!(before[0].len(), 2);
        assert_eq!(post(&server, "sign-up/email", of_ann()).await.status, 200);
        assert_eq!(stored().await, before);
        // The events of both mails name nobody.
        let requested = admin.get("/api/v1/events?topic=auth.mail.requested").await.data();
        let payloads = requested.as_array().unwrap().iter().map(|event| &event["payload"]);
        let shown: Vec<(&Value, &Value)> = payloads.map(|payload| (&payload["kind"], &payload["actor"])).collect();
        assert_eq!(shown, [(&json!("verify"), &Value::Null); 2]);
        // The feed did not get the event either.
        let next = json!({ "name": "Bob", "email": "bob@example.com", "password": PASSWORD });
        assert_eq!(post(&server, "sign-up/email", next).await.status, 200);
        let users = server.sql("SELECT id FROM svc_users").await.concat();
        let bob = server.sql("SELECT id FROM svc_users WHERE email = 'bob@example.com'").await.concat().remove(0);
        loop {
            // On Postgres, a stream may begin with events from a moment before it.
            let frame = stream.frame().await.expect("the stream goes on");
            if frame.contains("\"topic\":\"auth.user.created\"") {
                assert!(users.iter().any(|id| frame.contains(id.as_str())), "{frame}");
                if frame.contains(&bob) {
                    break;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sign_in_that_waits_for_another_password_does_not_use_the_earlier_one() {
    let server = ServerBuilder::new(Engine::Postgres).start().await;
    server.admin().await;
    server.sign_up("ann").await;
    let user = "(SELECT id FROM svc_users WHERE email = 'ann@example.com')";
    let change = server
        .lock_rows(&format!(
            "SELECT id FROM svc_users WHERE email = 'ann@example.com' FOR UPDATE; \
             DELETE FROM svc_sessions WHERE user_id = {user}; \
             UPDATE svc_credentials SET password_hash = 'another' WHERE user_id = {user}"
        ))
        .await;
    // The password is right when it is checked. It changes before the session is written.
    let changed = async {
        // The statement with which a sign-in locks the row of its user.
        let waiting = "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() \
                       AND wait_event_type = 'Lock' AND query LIKE 'SELECT id FROM svc_users %FOR NO KEY UPDATE%'";
        until("the sign-in waits", async || server.sql(waiting).await[0][0] != "0").await;
        change.release().await;
    };
    let body = json!({ "email": "ann@example.com", "password": PASSWORD });
    let (answer, ()) = tokio::join!(post(&server, "sign-in/email", body), changed);
    expect_code(&answer, 401, "INVALID_EMAIL_OR_PASSWORD");
    assert!(server.sql(&format!("SELECT id FROM svc_sessions WHERE user_id = {user}")).await.is_empty());
}

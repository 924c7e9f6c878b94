//! The way of mails to the mail server: which failures are retried, and which instance sends.

use blockbase_tests::{Admin, Engine, MailServer, Server, ServerBuilder, on_both_engines, until};
use serde_json::{Value, json};

/// A server that sends no mail. It retries failed deliveries at once.
fn silent(engine: Engine) -> ServerBuilder {
    ServerBuilder::new(engine).env("SVC_RETRY_BASE_MS", "1").env("SVC_EVENTS_POLL_INTERVAL_MS", "50")
}

/// The same server with mail. `user` is empty, or a user and a password with `@`.
fn sending(builder: ServerBuilder, user: &str, mails: &MailServer) -> ServerBuilder {
    builder
        .env("SVC_SMTP_URL", &format!("smtp://{user}127.0.0.1:{}", mails.port()))
        .env("SVC_MAIL_FROM", "Shop <shop@example.com>")
}

/// The same server without mail.
fn silenced(builder: ServerBuilder) -> ServerBuilder {
    builder.env("SVC_SMTP_URL", "").env("SVC_MAIL_FROM", "")
}

async fn request_reset(server: &Server, name: &str) {
    let body = json!({ "email": format!("{name}@example.com") });
    let answer = server.call("POST", "/api/auth/request-password-reset", Some(body)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

/// The entries of a consumer group in the ledger, the newest event first.
async fn entries(admin: &Admin<'_>, consumer: &str) -> Vec<Value> {
    let page = admin.get(&format!("/api/v1/events/deliveries?consumer={consumer}&limit=100")).await;
    page.data().as_array().unwrap().clone()
}

async fn newest(admin: &Admin<'_>) -> Value {
    entries(admin, "svc:mail").await.into_iter().next().unwrap_or_default()
}

/// The attempts that the ledger keeps of a mail, the last one first.
async fn history(admin: &Admin<'_>, entry: &Value) -> Vec<Value> {
    let path = format!("/api/v1/events/deliveries/{}/svc:mail", entry["eventId"].as_str().unwrap());
    admin.get(&path).await.data()["history"].as_array().unwrap().clone()
}

/// Ends the claims of a process that was killed.
async fn end_claims(server: &Server) {
    server.sql("UPDATE svc_deliveries SET lease_until = 0 WHERE lease_until IS NOT NULL").await;
}

on_both_engines! {
    async fn a_mail_to_an_unknown_mailbox_is_dead_at_once(engine: Engine) {
        let mails = MailServer::start(&["--refuse", "ann@example.com"]).await;
        let server = sending(silent(engine), "", &mails).start().await;
        let admin = server.admin().await;
        server.sign_up("ann").await;
        server.sign_up("bob").await;
        request_reset(&server, "ann").await;
        until("the mail is dead", async || newest(&admin).await["dead"] == true).await;
        let dead = newest(&admin).await;
        assert_eq!((&dead["status"], &dead["attempts"]), (&json!("failed"), &json!(1)), "{dead}");
        assert!(dead["error"].as_str().unwrap().contains("550"), "{dead}");
        assert_eq!(history(&admin, &dead).await.len(), 1);
        // Mails to other addresses are still sent.
        request_reset(&server, "bob").await;
        assert_eq!(mails.mails(1).await[0]["to"], json!(["bob@example.com"]));
        assert_eq!(mails.events("refused").len(), 1);
    }

    async fn a_mail_that_is_put_off_is_tried_until_it_is_taken(engine: Engine) {
        // A mail is tried more often than any other delivery.
        let mails = MailServer::start(&["--fail", "7"]).await;
        let server = sending(silent(engine), "", &mails).start().await;
        let admin = server.admin().await;
        server.sign_up("ann").await;
        request_reset(&server, "ann").await;
        mails.mails(1).await;
        until("the ledger knows that it was sent", async || newest(&admin).await["status"] == "delivered").await;
        let sent = newest(&admin).await;
        assert_eq!((&sent["attempts"], mails.events("failed").len()), (&json!(8), 7), "{sent}");
        let history = history(&admin, &sent).await;
        assert_eq!(history.len(), 8, "{history:?}");
        assert!(history[1..].iter().all(|attempt| attempt["error"].as_str().unwrap().contains("451")), "{history:?}");
    }

    async fn mail_waits_for_a_mail_server_that_is_away(engine: Engine) {
        // Nothing listens on the port.
        let mut mails = MailServer::start(&["--away"]).await;
        let server = sending(silent(engine), "", &mails).start().await;
        let admin = server.admin().await;
        server.sign_up("ann").await;
        request_reset(&server, "ann").await;
        until("an attempt failed", async || newest(&admin).await["error"].is_string()).await;
        let waiting = newest(&admin).await;
        assert_eq!(waiting["dead"], false, "{waiting}");
        assert!(waiting["error"].as_str().unwrap().contains("the mail server cannot be reached"), "{waiting}");
        mails.behave(json!({ "away": false })).await;
        assert_eq!(mails.mails(1).await[0]["to"], json!(["ann@example.com"]));
        until("the ledger knows that it was sent", async || newest(&admin).await["status"] == "delivered").await;
    }

    async fn mail_waits_for_a_password_that_the_operator_mends(engine: Engine) {
        let mails = MailServer::start(&["--user", "shop", "--password", "right"]).await;
        let mut server = sending(silent(engine), "shop:wrong@", &mails).start().await;
        let token = server.admin().await.token;
        server.sign_up("ann").await;
        request_reset(&server, "ann").await;
        let admin = server.with_token(token.clone());
        until("it was tried again", async || newest(&admin).await["attempts"].as_i64() > Some(1)).await;
        let waiting = newest(&admin).await;
        assert_eq!((&waiting["dead"], &waiting["status"]), (&json!(false), &json!("failed")), "{waiting}");
        assert!(waiting["error"].as_str().unwrap().contains("535"), "{waiting}");
        server.kill();
        end_claims(&server).await;
        let server = sending(server.builder(), "shop:right@", &mails).start().await;
        assert_eq!(mails.mails(1).await[0]["to"], json!(["ann@example.com"]));
        let admin = server.with_token(token);
        until("the ledger knows that it was sent", async || newest(&admin).await["status"] == "delivered").await;
    }

    async fn without_mail_a_server_leaves_mail_alone(engine: Engine) {
        let mut mails = MailServer::start(&["--fail", "1000000"]).await;
        let mut server = sending(silent(engine), "", &mails).start().await;
        let token = server.admin().await.token;
        server.sign_up("ann").await;
        request_reset(&server, "ann").await;
        until("an attempt failed", async || !mails.events("failed").is_empty()).await;
        server.kill();
        end_claims(&server).await;

        let mut server = silenced(server.builder()).start().await;
        let admin = server.with_token(token.clone());
        let before = newest(&admin).await;
        // The mail is due, and so are deliveries of another group, which are delivered.
        server.sql("UPDATE svc_deliveries SET next_attempt_at = 0 WHERE next_attempt_at IS NOT NULL").await;
        admin.make_task_object().await;
        let subscription = json!({ "event": "data.task.#", "consumer": "seen", "handler": "log_event" });
        assert_eq!(admin.post("/api/v1/events/subscriptions", subscription).await.status, 201);
        for number in 1..=3 {
            admin.make("task", json!({ "title": "x" })).await;
            until("the other group got its event", async || {
                let entries = entries(&admin, "seen").await;
                entries.len() == number && entries.iter().all(|entry| entry["status"] == "delivered")
            }).await;
        }
        let after = newest(&admin).await;
        assert_eq!((&after["attempts"], &after["dead"]), (&before["attempts"], &json!(false)), "{after}");
        server.kill();

        mails.behave(json!({ "fail": 0 })).await;
        let mut server = sending(server.builder(), "", &mails).start().await;
        mails.mails(1).await;

        // A mail that could not be sent for a week is dropped.
        mails.behave(json!({ "fail": 1_000_000 })).await;
        let failed = mails.events("failed").len();
        request_reset(&server, "ann").await;
        until("an attempt failed", async || mails.events("failed").len() > failed).await;
        server.kill();
        server.sql("UPDATE svc_events SET occurred_at = occurred_at - 691200000 WHERE topic = 'auth.mail.requested'").await;
        let server = silenced(server.builder()).start().await;
        let admin = server.with_token(token);
        until("the mail that waited is gone", async || {
            entries(&admin, "svc:mail").await.iter().all(|entry| entry["status"] == "delivered")
        }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_without_mail_leaves_it_to_one_with_mail() {
    let mut mails = MailServer::start(&["--refuse", "late@example.com"]).await;
    let deaf = silent(Engine::Postgres).start().await;
    let sender = sending(deaf.builder(), "", &mails).start().await;
    let admin = deaf.admin().await;
    let names: Vec<String> = (0..12).map(|number| format!("user{number}")).collect();
    for name in &names {
        deaf.sign_up(name).await;
    }
    for name in &names {
        request_reset(&sender, name).await;
    }
    mails.mails(names.len()).await;
    until("all were sent", async || {
        let entries = entries(&admin, "svc:mail").await;
        entries.len() == names.len() && entries.iter().all(|entry| entry["status"] == "delivered")
    })
    .await;
    let all = entries(&admin, "svc:mail").await;
    assert!(all.iter().all(|entry| entry["attempts"] == 1 && entry["error"].is_null()), "{all:?}");

    // One instance gets the request for a retry, and the other one makes it.
    deaf.sign_up("late").await;
    request_reset(&sender, "late").await;
    until("the mail is dead", async || newest(&admin).await["dead"] == true).await;
    mails.behave(json!({ "refuse": [] })).await;
    let body = json!({ "eventId": newest(&admin).await["eventId"], "consumer": "svc:mail" });
    let retried = admin.post("/api/v1/events/deliveries/retry", body).await;
    assert!((200..300).contains(&retried.status), "{}", retried.text);
    assert_eq!(mails.mails(names.len() + 1).await[names.len()]["to"], json!(["late@example.com"]));
    until("the ledger knows that it was sent", async || newest(&admin).await["status"] == "delivered").await;
    assert_eq!(newest(&admin).await["attempts"], 1);
}

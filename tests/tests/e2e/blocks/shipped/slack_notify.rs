//! Messages to Slack. In these tests a receiver replaces Slack.

use blockbase_tests::{Admin, Receiver, Reply, inspect, on_both_engines, pack, shipped_block};
use serde_json::{Value, json};

use super::{configure, install, log_line, set_secret, user_with};
use crate::events::webhooks::{ledger_until, quick};

const BLOCK: &str = "slack-notify";
const CONSUMER: &str = "consumer=slack-notify:notify";

/// Installs the block with a receiver instead of Slack.
async fn install_for(admin: &Admin<'_>, receiver: &Receiver) {
    let origin = receiver.url.strip_suffix("/hook").unwrap();
    let file = shipped_block(BLOCK).await;
    let mut manifest = inspect(file.clone()).await;
    assert_eq!(
        manifest["permissions"],
        json!({ "data": [], "secrets": ["SLACK_WEBHOOK_URL"], "http": ["https://hooks.slack.com"] })
    );
    manifest["permissions"]["http"] = json!([origin]);
    let installed = admin.install("", pack(file, manifest).await.unwrap()).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    set_secret(admin, BLOCK, "SLACK_WEBHOOK_URL", &format!("{}\n", receiver.url)).await;
}

async fn define_order(admin: &Admin<'_>) {
    let fields = json!([
        { "name": "number", "type": "text" }, { "name": "total", "type": "currency" }, { "name": "status", "type": "text" },
    ]);
    admin.define("order", fields).await;
}

fn texts(receiver: &Receiver) -> Vec<Value> {
    receiver.received().iter().map(|request| request.json()).collect()
}

async fn delivered(admin: &Admin<'_>, count: usize) {
    ledger_until(admin, CONSUMER, |entries| entries.len() == count && entries.iter().all(|entry| entry["status"] == "delivered"))
        .await;
}

on_both_engines! {
    async fn rules_say_what_is_told(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        let receiver = Receiver::start().await;
        install_for(&admin, &receiver).await;
        define_order(&admin).await;
        admin.make_task_object().await;
        configure(&admin, BLOCK, json!({ "rules": [
            { "topic": "data.order.created", "text": "New order {{payload.after.number}} over {{payload.after.total}}" },
            { "topic": "data.order.updated", "text": "{{payload.diff.status.before}} to {{ payload.diff.status.after }}, {{payload.actor.via}}{{payload.nothing}}",
              "when": { "field": "payload.after.status", "equals": "failed" } },
            { "topic": "data.*.deleted", "text": "{{topic}} <https://example.com|see> {{payload.before.number}}" },
            { "topic": "#.deleted", "text": "again" },
        ] })).await;
        let path = |id: &str| format!("/api/v1/data/order/{id}");
        let id = admin.make("order", json!({ "number": "A-1 <!channel> & co", "total": "12345678901234.10", "status": "open" })).await;
        delivered(&admin, 1).await;
        assert_eq!(texts(&receiver), [json!({ "text": "New order A-1 &lt;!channel&gt; &amp; co over 12345678901234.1" })]);
        assert_eq!(receiver.received()[0].header("content-type"), "application/json");
        admin.patch(&path(&id), json!({ "status": "paid" })).await.data();
        admin.patch(&path(&id), json!({ "status": "failed" })).await.data();
        admin.make("task", json!({ "title": "nobody asked" })).await;
        assert_eq!(admin.delete(&path(&id)).await.status, 204);
        delivered(&admin, 5).await;
        assert_eq!(texts(&receiver)[1..], [
            json!({ "text": "paid to failed, session" }),
            json!({ "text": "data.order.deleted <https://example.com|see> A-1 &lt;!channel&gt; &amp; co\nagain" }),
        ]);
    }

    async fn a_message_that_slack_does_not_take_is_sent_again(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        let receiver = Receiver::start().await;
        receiver.answer(|number, _| match number {
            0 => Reply::Text(429, "rate_limited".to_owned()),
            1 => Reply::Text(503, "service_unavailable".to_owned()),
            2 => Reply::Redirect("http://127.0.0.1:1/".to_owned()),
            _ => Reply::Text(200, "ok".to_owned()),
        });
        install_for(&admin, &receiver).await;
        define_order(&admin).await;
        configure(&admin, BLOCK, json!({ "rules": [{ "topic": "data.order.created", "text": "{{payload.after.number}}" }] })).await;
        admin.make("order", json!({ "number": "A-1" })).await;
        receiver.wait_for(4).await;
        delivered(&admin, 1).await;
        assert_eq!(texts(&receiver), vec![json!({ "text": "A-1" }); 4]);
        let entries = crate::events::webhooks::ledger(&admin, CONSUMER).await;
        assert_eq!(entries[0]["attempts"], 4);
    }

    async fn a_webhook_that_is_gone_is_an_error_in_the_log_and_a_dead_delivery(engine: Engine) {
        let server = quick(engine).env("SVC_RETRY_BASE_MS", "20").start().await;
        let admin = server.admin().await;
        let receiver = Receiver::start().await;
        receiver.answer(|_, _| Reply::Text(404, "no_service".to_owned()));
        install_for(&admin, &receiver).await;
        define_order(&admin).await;
        configure(&admin, BLOCK, json!({ "rules": [{ "topic": "data.order.created", "text": "{{payload.after.number}}" }] })).await;
        admin.make("order", json!({ "number": "A-1" })).await;
        let entry = ledger_until(&admin, &format!("{CONSUMER}&dead=true"), |entries| entries.len() == 1).await.remove(0);
        assert!(entry["error"].as_str().unwrap().contains("Slack answered with the status 404: no_service"), "{entry}");
        assert_eq!((&entry["attempts"], receiver.count()), (&json!(5), 5));
        let line = log_line(&admin, BLOCK, "status 404: no_service").await;
        assert_eq!(line["level"], "error");
        // Once the receiver works, a retry by hand delivers the message.
        receiver.answer(|_, _| Reply::Status(200));
        let retry = json!({ "eventId": entry["eventId"], "consumer": "slack-notify:notify" });
        assert!((200..300).contains(&admin.post("/api/v1/events/deliveries/retry", retry).await.status));
        receiver.wait_for(6).await;
        delivered(&admin, 1).await;
        // The webhook's address is a secret.
        let logs = admin.get("/api/v1/blocks/slack-notify/logs").await.text;
        assert!(!logs.contains("/hook") && !entry.to_string().contains("/hook"), "{logs} {entry}");
    }

    async fn a_message_can_be_sent_by_those_who_may(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        let receiver = Receiver::start().await;
        install_for(&admin, &receiver).await;
        let send = async |who: &Admin<'_>, text: &str| who.post("/api/v1/blocks/slack-notify/actions/send", json!({ "text": text })).await;
        assert_eq!(send(&admin, "Hello <!here>!").await.data(), json!({ "sent": true }));
        assert_eq!(texts(&receiver), [json!({ "text": "Hello <!here>!" })]);
        send(&admin, "").await.expect_error(400, "validation_failed");
        let grant = json!([{ "resource": "slack-notify:messages", "actions": ["create"] }]);
        let ann = user_with(&server, &admin, "ann", grant).await;
        assert_eq!(send(&ann, "from Ann").await.data(), json!({ "sent": true }));
        let ben = user_with(&server, &admin, "ben", json!([{ "resource": "order", "actions": ["manage"] }])).await;
        send(&ben, "from Ben").await.expect_error(403, "forbidden");
        receiver.answer(|_, _| Reply::Text(500, "x".repeat(10_000)));
        let busy = send(&admin, "x").await.expect_error(503, "unavailable");
        assert!(busy["message"].as_str().unwrap().len() < 300, "{busy}");
        receiver.answer(|_, _| Reply::Text(403, "invalid_token".to_owned()));
        let refused = send(&admin, "x").await.expect_error(500, "action_failed");
        assert_eq!(refused["message"], "Slack answered with the status 403: invalid_token");
        assert_eq!(receiver.count(), 4);
        // The block cannot call an address that the manifest does not name, even if the secret contains it.
        let elsewhere = Receiver::start().await;
        set_secret(&admin, BLOCK, "SLACK_WEBHOOK_URL", &elsewhere.url).await;
        send(&admin, "x").await.expect_error(403, "forbidden");
        assert_eq!(elsewhere.count(), 0);
    }

    async fn as_it_ships_it_calls_slack_alone_and_needs_its_secret(engine: Engine) {
        let server = quick(engine).start().await;
        let admin = server.admin().await;
        let block = install(&admin, BLOCK).await;
        assert_eq!(block["subscriptions"][0]["event"], "data.#");
        let send = async || admin.post("/api/v1/blocks/slack-notify/actions/send", json!({ "text": "x" })).await;
        let missing = send().await;
        assert!(missing.text.contains("SLACK_WEBHOOK_URL"), "{}", missing.text);
        let receiver = Receiver::start().await;
        set_secret(&admin, BLOCK, "SLACK_WEBHOOK_URL", &receiver.url).await;
        send().await.expect_error(403, "forbidden");
        assert_eq!(receiver.count(), 0);
        // The block gets every event, so a caller who may not read everything cannot install it.
        assert_eq!(admin.delete("/api/v1/blocks/slack-notify").await.status, 204);
        let ann = user_with(&server, &admin, "ann", json!([{ "resource": "blocks", "actions": ["manage"] }])).await;
        ann.install("", shipped_block(BLOCK).await).await.expect_error(403, "forbidden");
    }
}

//! Stripe's webhooks. Each is stored once.

use blockbase_tests::{Admin, Answer, Server, on_both_engines, pack, shipped_block};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{configure, install, log_line, now_seconds, records, send, set_secret, told};
use crate::events::stripe::signature_by_the_library;
use crate::events::webhooks::hmac;

const BLOCK: &str = "stripe-hooks";
const SECRET: &str = "whsec_6a3f0c1d9e8b7a6f5e4d3c2b1a098f7e";

/// Exactly as Stripe sends it, with its white space.
const PAYMENT_SUCCEEDED: &str = r#"{
  "id": "evt_3QK2aB2eZvKYlo2C0aGgXq1P",
  "object": "event",
  "api_version": "2025-10-29.clover",
  "created": 1790000000,
  "data": {
    "object": {
      "id": "pi_3QK2aB2eZvKYlo2C0XyZ1234",
      "object": "payment_intent",
      "amount": 2099,
      "amount_capturable": 0,
      "amount_details": { "tip": {} },
      "amount_received": 2099,
      "application": null,
      "capture_method": "automatic_async",
      "client_secret": "pi_3QK2aB2eZvKYlo2C0XyZ1234_secret_dGhpcyBpcyBub3Qgb25l",
      "created": 1789999990,
      "currency": "eur",
      "customer": "cus_R9nTq8x2mVbLkJ",
      "description": "Zwölf Éclairs",
      "latest_charge": "ch_3QK2aB2eZvKYlo2C0nMbLs42",
      "livemode": false,
      "metadata": { "order": "10042" },
      "payment_method": "pm_1QK2aA2eZvKYlo2CxYzAbCdE",
      "payment_method_types": ["card", "link"],
      "receipt_email": null,
      "status": "succeeded"
    }
  },
  "livemode": false,
  "pending_webhooks": 1,
  "request": { "id": "req_9sXb2LkQwErTyU", "idempotency_key": "3f1c0b52-7d0b-4d0e-9f43-0a4c1f1de2aa" },
  "type": "payment_intent.succeeded"
}"#;

const CHARGE_REFUNDED: &str = r#"{
  "id": "evt_3QK2aB2eZvKYlo2C0Rf7hJ9k",
  "object": "event",
  "api_version": "2025-10-29.clover",
  "created": 1790003600,
  "data": {
    "object": {
      "id": "ch_3QK2aB2eZvKYlo2C0nMbLs42",
      "object": "charge",
      "amount": 2099,
      "amount_captured": 2099,
      "amount_refunded": 500,
      "balance_transaction": "txn_3QK2aB2eZvKYlo2C0QwErTyU",
      "billing_details": { "address": { "city": null, "country": "DE" }, "email": "zoë@example.com", "name": "Zoë" },
      "captured": true,
      "created": 1789999995,
      "currency": "eur",
      "customer": "cus_R9nTq8x2mVbLkJ",
      "disputed": false,
      "livemode": false,
      "outcome": { "network_status": "approved_by_network", "risk_level": "normal", "risk_score": 12, "type": "authorized" },
      "paid": true,
      "payment_intent": "pi_3QK2aB2eZvKYlo2C0XyZ1234",
      "refunded": false,
      "status": "succeeded"
    },
    "previous_attributes": { "amount_refunded": 0 }
  },
  "livemode": false,
  "pending_webhooks": 1,
  "request": { "id": "req_1aB2cD3eF4gH5i", "idempotency_key": null },
  "type": "charge.refunded"
}"#;

/// The value of one `v1`. Another program computes it.
fn v1(secret: &str, stamp: u64, body: &str) -> String {
    hmac(secret, format!("{stamp}.{body}").as_bytes())
}

fn header_at(secret: &str, stamp: u64, body: &str) -> String {
    format!("t={stamp},v1={},v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39", v1(secret, stamp, body))
}

/// Sends a body with a signature for the present time.
async fn deliver(server: &Server, body: &str) -> Answer {
    with_header(server, &header_at(SECRET, now_seconds(), body), body).await
}

async fn with_header(server: &Server, header: &str, body: &str) -> Answer {
    send(server, BLOCK, &[("stripe-signature", header), ("content-type", "application/json; charset=utf-8")], body).await
}

async fn define(admin: &Admin<'_>, name: &str) {
    let mut object: Value = serde_json::from_str(include_str!("../../../../../blocks/stripe-hooks/object.json")).unwrap();
    object["name"] = json!(name);
    let made = admin.post("/api/v1/objects", object).await;
    assert_eq!(made.status, 201, "{}", made.text);
}

async fn ready(server: &Server) -> Admin<'_> {
    let admin = server.admin().await;
    define(&admin, "payment_event").await;
    install(&admin, BLOCK).await;
    set_secret(&admin, BLOCK, "STRIPE_WEBHOOK_SECRET", SECRET).await;
    admin
}

fn received() -> (u16, Value) {
    (200, json!({ "received": true }))
}

fn code(answer: &Answer) -> (u16, Value) {
    (answer.status, answer.json()["error"].clone())
}

on_both_engines! {
    async fn an_event_of_stripes_is_kept_once_however_often_it_comes(server: Server) {
        let admin = ready(&server).await;
        for body in [PAYMENT_SUCCEEDED, CHARGE_REFUNDED, PAYMENT_SUCCEEDED, PAYMENT_SUCCEEDED] {
            let answer = deliver(&server, body).await;
            assert_eq!(told(&answer), received());
        }
        let kept = records(&admin, "payment_event").await;
        assert_eq!(kept.len(), 2);
        for (record, body, kind, created, object) in [
            (&kept[0], PAYMENT_SUCCEEDED, "payment_intent.succeeded", "2026-09-21T14:13:20.000Z", "pi_3QK2aB2eZvKYlo2C0XyZ1234"),
            (&kept[1], CHARGE_REFUNDED, "charge.refunded", "2026-09-21T15:13:20.000Z", "ch_3QK2aB2eZvKYlo2C0nMbLs42"),
        ] {
            let event: Value = serde_json::from_str(body).unwrap();
            for (field, expected) in [
                ("stripe_id", event["id"].clone()), ("type", json!(kind)), ("created", json!(created)), ("livemode", json!(false)),
                ("object_id", json!(object)), ("amount", json!(2099)), ("currency", json!("eur")), ("status", json!("succeeded")),
                ("customer", json!("cus_R9nTq8x2mVbLkJ")), ("payload", event.clone()), ("created_by", Value::Null),
            ] {
                assert_eq!(record[field], expected, "{field} of {kind}");
            }
        }
        // A subscriber to the records gets each payment once.
        let topics: Vec<String> = admin.outbox("payment_event").await.into_iter().map(|(topic, _)| topic).collect();
        assert_eq!(topics, ["data.payment_event.created", "data.payment_event.created"]);

        let body = PAYMENT_SUCCEEDED.replace("evt_3QK2aB2eZvKYlo2C0aGgXq1P", "evt_at_the_same_time");
        let answers = join_all((0..16).map(|_| deliver(&server, &body))).await;
        assert!(answers.iter().all(|answer| told(answer) == received()), "{answers:?}");
        assert_eq!(records(&admin, "payment_event").await.len(), 3);
        let created = admin.outbox("payment_event").await.into_iter().filter(|(topic, _)| topic == "data.payment_event.created");
        assert_eq!(created.count(), 3);
    }

    async fn what_stripe_did_not_sign_is_refused(server: Server) {
        let admin = ready(&server).await;
        let now = now_seconds();
        let body = PAYMENT_SUCCEEDED;
        let good = v1(SECRET, now, body);
        let tampered = body.replace("2099", "9902");
        let with_byte = format!("{body}\n");
        for (what, header, body) in [
            ("no header", String::new(), body),
            ("no timestamp", format!("v1={good}"), body),
            ("no signature", format!("t={now}"), body),
            ("another scheme alone", format!("t={now},v0={good}"), body),
            ("another secret", header_at("whsec_of_somebody_else", now, body), body),
            ("the secret without its prefix", header_at(&SECRET[6..], now, body), body),
            ("a changed body", header_at(SECRET, now, body), tampered.as_str()),
            ("a byte more", header_at(SECRET, now, body), with_byte.as_str()),
            ("a changed timestamp", format!("t={},v1={good}", now + 1), body),
            ("a stale timestamp", header_at(SECRET, now - 302, body), body),
            ("a timestamp to come", header_at(SECRET, now + 400, body), body),
            ("half a signature", format!("t={now},v1={}", &good[..32]), body),
        ] {
            let answer = with_header(&server, &header, body).await;
            assert_eq!(code(&answer), (400, json!("invalid_signature")), "{what}: {}", answer.text);
            assert!(answer.text.len() < 200 && !answer.text.contains("whsec_"), "{what}: {}", answer.text);
        }
        for body in ["no JSON", "[]", r#"{"id":"evt_1"}"#, r#"{"type":"charge.refunded"}"#, ""] {
            assert_eq!(code(&deliver(&server, body).await), (400, json!("invalid_event")), "{body}");
        }
        let by_get = server.call("GET", "/api/v1/hooks/stripe-hooks/receive", None).await;
        assert_eq!((code(&by_get), by_get.headers["allow"].to_str().unwrap()), ((405, json!("method_not_allowed")), "POST"));
        assert_eq!(records(&admin, "payment_event").await, Vec::<Value>::new());
        log_line(&admin, BLOCK, "Refused a request from 127.0.0.1").await;

        // During the rotation of a secret, it is enough if one of the signatures is valid. An old timestamp is accepted within
        // the tolerance.
        let old = v1("whsec_before", now, body);
        assert_eq!(told(&with_header(&server, &format!("t={now},v1={old},v1={good}"), body).await), received());
        assert_eq!(told(&with_header(&server, &header_at(SECRET, now - 250, body), body).await), received());
        configure(&admin, BLOCK, json!({ "toleranceSeconds": 3600 })).await;
        assert_eq!(told(&with_header(&server, &header_at(SECRET, now - 3000, body), body).await), received());
        configure(&admin, BLOCK, json!({ "toleranceSeconds": 60 })).await;
        assert_eq!(code(&with_header(&server, &header_at(SECRET, now - 250, body), body).await), (400, json!("invalid_signature")));
        admin.patch("/api/v1/blocks/stripe-hooks", json!({ "config": { "toleranceSeconds": 0 } })).await.expect_error(400, "validation_failed");
        assert_eq!(records(&admin, "payment_event").await.len(), 1);
    }

    async fn a_header_of_stripes_own_library_is_taken(server: Server) {
        let admin = ready(&server).await;
        let header = signature_by_the_library(CHARGE_REFUNDED, SECRET, 0).await;
        assert_eq!(told(&with_header(&server, &header, CHARGE_REFUNDED).await), received());
        let stale = signature_by_the_library(PAYMENT_SUCCEEDED, SECRET, 301).await;
        assert_eq!(code(&with_header(&server, &stale, PAYMENT_SUCCEEDED).await), (400, json!("invalid_signature")));
        let foreign = signature_by_the_library(PAYMENT_SUCCEEDED, "whsec_of_somebody_else", 0).await;
        assert_eq!(code(&with_header(&server, &foreign, PAYMENT_SUCCEEDED).await), (400, json!("invalid_signature")));
        assert_eq!(records(&admin, "payment_event").await.len(), 1);
    }

    async fn types_that_are_not_wanted_are_received_and_not_kept(server: Server) {
        let admin = ready(&server).await;
        configure(&admin, BLOCK, json!({ "types": ["payment_intent.*", "payout.paid"] })).await;
        assert_eq!(told(&deliver(&server, CHARGE_REFUNDED).await), received());
        assert_eq!(records(&admin, "payment_event").await.len(), 0);
        assert_eq!(told(&deliver(&server, PAYMENT_SUCCEEDED).await), received());
        assert_eq!(records(&admin, "payment_event").await.len(), 1);
    }

    async fn what_is_not_set_up_fails_so_that_stripe_comes_again(server: Server) {
        let admin = server.admin().await;
        install(&admin, BLOCK).await;
        deliver(&server, PAYMENT_SUCCEEDED).await.expect_error(500, "action_failed");
        log_line(&admin, BLOCK, "STRIPE_WEBHOOK_SECRET").await;
        set_secret(&admin, BLOCK, "STRIPE_WEBHOOK_SECRET", &format!("{SECRET}\n")).await;
        deliver(&server, PAYMENT_SUCCEEDED).await.expect_error(500, "action_failed");
        log_line(&admin, BLOCK, "payment_event").await;
        // Without a unique id, a retry would make a second record. So the first delivery fails.
        admin.define("payment_event", json!([{ "name": "stripe_id", "type": "text" }, { "name": "payload", "type": "json" }])).await;
        deliver(&server, PAYMENT_SUCCEEDED).await.expect_error(500, "action_failed");
        assert_eq!(admin.delete("/api/v1/objects/payment_event").await.status, 204);
        define(&admin, "payment_event").await;
        assert_eq!(told(&deliver(&server, PAYMENT_SUCCEEDED).await), received());
        assert_eq!(records(&admin, "payment_event").await.len(), 1);
    }

    async fn another_object_is_a_matter_of_the_manifest(server: Server) {
        let admin = server.admin().await;
        define(&admin, "money").await;
        let mut manifest = blockbase_tests::inspect(shipped_block(BLOCK).await).await;
        manifest["permissions"]["data"][0]["resource"] = json!("money");
        manifest["config"]["properties"]["object"]["default"] = json!("money");
        let packed = pack(shipped_block(BLOCK).await, manifest).await.unwrap();
        assert_eq!(admin.install("", packed).await.status, 201);
        set_secret(&admin, BLOCK, "STRIPE_WEBHOOK_SECRET", SECRET).await;
        assert_eq!(told(&deliver(&server, PAYMENT_SUCCEEDED).await), received());
        assert_eq!(records(&admin, "money").await.len(), 1);
        // If the configuration names an object that the manifest does not name, the block may not use it.
        define(&admin, "payment_event").await;
        configure(&admin, BLOCK, json!({ "object": "payment_event" })).await;
        deliver(&server, CHARGE_REFUNDED).await.expect_error(500, "action_failed");
        assert_eq!(records(&admin, "payment_event").await.len(), 0);
    }
}

//! A block that receives webhooks of GitHub: it checks the signature and keeps each delivery once.

mod delivery;

use blockbase_sdk::hooks::{Request, Response};
use blockbase_sdk::{Context, Error, block, config, data, hook, log, secrets, signature};
use serde::Deserialize;
use serde_json::{Value, json};

const SECRET: &str = "GITHUB_WEBHOOK_SECRET";

#[derive(Deserialize)]
struct Settings {
    object: String,
}

/// Receives GitHub's deliveries, signed with the webhook's secret.
#[hook]
fn receive(_context: &Context, request: Request) -> Result<Response, Error> {
    if request.method != "POST" {
        let refused = json!({ "error": "method_not_allowed", "message": "GitHub delivers by POST." });
        return Ok(Response::json(&refused)?.with_status(405).with_header("allow", "POST"));
    }
    let settings: Settings = config::get()?;
    // Without the secret nothing can be checked. GitHub shows the failed delivery, and it can be delivered again from there.
    let secret = secrets::get(SECRET)?;
    let given = request.header("x-hub-signature-256").and_then(|header| header.strip_prefix("sha256=")).unwrap_or_default();
    if !signature::is_hmac_sha256_hex(secret.trim().as_bytes(), &request.body, given) {
        let why = "The header `X-Hub-Signature-256` is missing, or not that of this body under the webhook's secret.";
        log::warn(&format!("Refused a request from {}: {why}", request.remote_address));
        return bad_request("invalid_signature", why);
    }
    let Some(payload) = delivery::payload(&request) else {
        return bad_request("invalid_payload", "The body is neither JSON nor a form whose `payload` is JSON.");
    };
    let event = request.header("x-github-event").unwrap_or_default();
    if event == "ping" {
        return Response::json(&json!({ "pong": true, "zen": payload["zen"] }));
    }
    let id = request.header("x-github-delivery").unwrap_or_default();
    if !delivery::is_name(event) || !delivery::is_name(id) {
        return bad_request("invalid_headers", "The headers `X-GitHub-Event` and `X-GitHub-Delivery` have to name the delivery.");
    }
    keep(&settings.object, delivery::record(id, event, payload))?;
    Response::json(&json!({ "received": true }))
}

/// A delivery may be sent again by hand. A known record stays unchanged, so that it causes no second event here. If deliveries arrive at
/// the same time, the upsert makes one record.
fn keep(object: &str, record: Value) -> Result<(), Error> {
    let filters = json!([{ "field": "delivery_id", "value": record["delivery_id"] }]);
    let known =
        data::query::<Value>(object, json!({ "filters": filters, "limit": 1, "select": "delivery_id", "count": "none" }))?;
    if known.data.is_empty() {
        data::upsert::<Value>(object, record, &["delivery_id"])?;
    }
    Ok(())
}

fn bad_request(code: &str, message: &str) -> Result<Response, Error> {
    Ok(Response::json(&json!({ "error": code, "message": message }))?.with_status(400))
}

block!(receive);

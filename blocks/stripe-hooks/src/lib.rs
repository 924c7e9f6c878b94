//! A block that receives webhooks of Stripe: it checks the signature and keeps each event once.

mod event;
mod pattern;
mod signature;

use blockbase_sdk::hooks::{Request, Response};
use blockbase_sdk::{Context, Error, block, config, data, hook, log, secrets, time};
use serde::Deserialize;
use serde_json::{Value, json};

const SECRET: &str = "STRIPE_WEBHOOK_SECRET";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Settings {
    object: String,
    types: Vec<String>,
    tolerance_seconds: u64,
}

/// Receives Stripe's events, signed with the secret of the endpoint.
#[hook]
fn receive(_context: &Context, request: Request) -> Result<Response, Error> {
    if request.method != "POST" {
        let refused = json!({ "error": "method_not_allowed", "message": "Stripe sends its events by POST." });
        return Ok(Response::json(&refused)?.with_status(405).with_header("allow", "POST"));
    }
    let settings: Settings = config::get()?;
    // Without the secret nothing can be checked. The failure makes Stripe send the event again later.
    let secret = secrets::get(SECRET)?;
    let header = request.header("stripe-signature").unwrap_or_default();
    let verified =
        signature::verify(secret.trim().as_bytes(), header, &request.body, time::now_ms() / 1000, settings.tolerance_seconds);
    if let Err(refusal) = verified {
        log::warn(&format!("Refused a request from {}: {}", request.remote_address, refusal.message()));
        return bad_request("invalid_signature", refusal.message());
    }
    let Some(record) = serde_json::from_slice(&request.body).ok().and_then(event::record) else {
        return bad_request(
            "invalid_event",
            "The body is not an event of Stripe: it is not valid JSON, or `id` or `type` is missing.",
        );
    };
    if pattern::is_wanted(&settings.types, record["type"].as_str().unwrap_or_default()) {
        keep(&settings.object, record)?;
    }
    Response::json(&json!({ "received": true }))
}

/// Stripe sends an event again until it gets a success response, and sometimes twice. A known record stays unchanged, so that it causes
/// no second event here. If deliveries arrive at the same time, the upsert makes one record.
fn keep(object: &str, record: Value) -> Result<(), Error> {
    let filters = json!([{ "field": "stripe_id", "value": record["stripe_id"] }]);
    let known = data::query::<Value>(object, json!({ "filters": filters, "limit": 1, "select": "stripe_id", "count": "none" }))?;
    if known.data.is_empty() {
        data::upsert::<Value>(object, record, &["stripe_id"])?;
    }
    Ok(())
}

fn bad_request(code: &str, message: &str) -> Result<Response, Error> {
    Ok(Response::json(&json!({ "error": code, "message": message }))?.with_status(400))
}

block!(receive);

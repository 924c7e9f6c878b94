//! Sending webhooks.

use std::time::Duration;

use blockbase_app::{App, Webhook};
use blockbase_auth::webhook_signature;
use blockbase_outbound::{Client, Failure, Request};
use blockbase_store::{ClaimedEvent, EventText};
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::handler::Failed;

/// The maximum number of bytes of a response that the ledger keeps.
const ANSWER_BYTES_KEPT: usize = 500;

/// Sends a signed event to a webhook.
pub(crate) async fn send(
    app: &App,
    client: &Client,
    webhook: &Webhook,
    event: &ClaimedEvent,
    timeout: Duration,
) -> Result<(), Failed> {
    let request = request(app, webhook, event, timeout).map_err(|problem| Failed::new("unsendable", problem))?;
    let answer = client.send(request).await.map_err(|failure| {
        let kind = match failure {
            Failure::Refused(_) => "refused_address",
            Failure::Timeout(_) => "timeout",
            Failure::Broken(_) => "unreachable",
        };
        Failed { answered: false, ..Failed::new(kind, failure.to_string()) }
    })?;
    if (200..300).contains(&answer.status) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&answer.body);
    let hint = if (300..400).contains(&answer.status) { " (redirects are not followed)" } else { "" };
    let separator = if text.is_empty() { "" } else { ": " };
    let problem = format!("HTTP {}{hint}{separator}{text}", answer.status);
    Err(Failed::new("http_status", problem))
}

fn request(app: &App, webhook: &Webhook, event: &ClaimedEvent, timeout: Duration) -> Result<Request, String> {
    let mut body = Vec::with_capacity(event.payload.len() + 200);
    let text = EventText { id: &event.id, topic: &event.topic, payload: &event.payload, occurred_at: event.occurred_at };
    text.write_envelope(&mut body);
    let now = app.now();
    let secrets = webhook.secrets(app.secrets(), now)?;
    let signature = webhook_signature(&secrets, now.div_euclid(1000), &body)?;
    let mut headers = HeaderMap::new();
    for (name, value) in webhook.headers(app.secrets())? {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
        headers.insert(
            name,
            HeaderValue::from_str(&value)
                .or_else(|_| HeaderValue::from_bytes(value.as_bytes()))
                .map_err(|error| error.to_string())?,
        );
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in [("x-svc-event-id", &event.id), ("x-svc-topic", &event.topic), ("x-svc-signature", &signature)] {
        headers.insert(name, HeaderValue::from_str(value).map_err(|error| error.to_string())?);
    }
    Ok(Request {
        method: Method::POST,
        url: webhook.url.clone(),
        headers,
        body: Bytes::from(body),
        timeout,
        answer_bytes_max: ANSWER_BYTES_KEPT,
    })
}

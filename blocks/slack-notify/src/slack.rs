//! Slack's incoming webhook.

use blockbase_sdk::{Error, http, log, secrets};
use serde_json::json;

const SECRET: &str = "SLACK_WEBHOOK_URL";
const TIMEOUT_MS: u32 = 10_000;
/// Characters of Slack's response that are shown. It is usually a word or two.
const ANSWER_CHARS_MAX: usize = 200;

/// Posts a text in Slack's markup.
pub fn post(text: &str) -> Result<(), Error> {
    let url = secrets::get(SECRET)?;
    let response = http::post(url.trim()).json(&json!({ "text": text }))?.timeout_ms(TIMEOUT_MS).send()?;
    if response.is_success() {
        return Ok(());
    }
    let answer: String = response.text().unwrap_or_default().chars().take(ANSWER_CHARS_MAX).collect();
    let message = format!("Slack answered with the status {}: {answer}", response.status);
    match response.status {
        429 | 500.. => Err(Error::unavailable(message)),
        _ => {
            // Somebody has to repair a deleted webhook, or a text that Slack refuses. A retry would not help.
            log::error(&message);
            Err(Error::failed(message))
        }
    }
}

//! A block that posts messages to Slack when something happens.

mod rule;
mod slack;
mod template;

use blockbase_sdk::{Context, Error, Event, JsonSchema, action, block, config, schemars, subscription};
use rule::Rule;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Settings {
    rules: Vec<Rule>,
}

/// A failure makes the delivery fail, which is tried again later.
///
/// All rules that match make one message: with one message each, a failure of the second would send the first again.
#[subscription(event = "data.#")]
fn notify(_context: &Context, event: Event) -> Result<(), Error> {
    let settings: Settings = config::get()?;
    let facts = json!({ "id": event.id, "topic": event.topic, "occurredAt": event.occurred_at, "payload": event.payload });
    let matching = settings.rules.iter().filter(|rule| rule.matches(&event.topic, &facts));
    let lines: Vec<String> = matching.map(|rule| template::render(&rule.text, &facts)).collect();
    match lines.is_empty() {
        true => Ok(()),
        false => slack::post(&lines.join("\n")),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Send {
    /// The message, in Slack's markup.
    #[schemars(length(min = 1, max = 4000))]
    text: String,
}

/// Posts a message.
#[action(timeout_ms = 15000, rbac(resource = "slack-notify:messages", action = "create"))]
fn send(_context: &Context, input: Send) -> Result<Value, Error> {
    slack::post(&input.text)?;
    Ok(json!({ "sent": true }))
}

block!(notify, send);

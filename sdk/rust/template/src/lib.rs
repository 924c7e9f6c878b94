//! The block `{{name}}`: an action, a hook and a handler of events.

use blockbase_sdk::hooks::{Request, Response};
use blockbase_sdk::{Context, Error, Event, JsonSchema, RecordChange, action, block, hook, log, schemars, subscription};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Greet {
    /// Whom to greet.
    #[schemars(length(min = 1, max = 100))]
    name: String,
    /// Whether to raise the voice.
    #[serde(default)]
    loud: bool,
}

#[derive(Serialize)]
struct Greeting {
    message: String,
}

/// Greets somebody.
#[action]
fn greet(_context: &Context, input: Greet) -> Result<Greeting, Error> {
    if input.name == "nobody" {
        return Err(Error::conflict("There is nobody to greet."));
    }
    let message = format!("Hello, {}!", input.name);
    Ok(Greeting { message: if input.loud { message.to_uppercase() } else { message } })
}

/// Answers requests to `/api/v1/hooks/{{name}}/knock`.
#[hook]
fn knock(_context: &Context, request: Request) -> Result<Response, Error> {
    let who = request.query_value("name").unwrap_or_else(|| request.remote_address.clone());
    Ok(Response::text(format!("Come in, {who}.")))
}

/// Notes each task that is made or changed.
#[subscription(event = "data.task.#")]
fn on_task(_context: &Context, event: Event<RecordChange>) -> Result<(), Error> {
    log::info(&format!("The task {} was {}.", event.payload.id, event.payload.op));
    Ok(())
}

block!(greet, knock, on_task);

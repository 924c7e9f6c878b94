//! A block whose handler logs its event, stores it in a record, and ends in the way that the title of the event's record names.

use blockbase_sdk::{Context, Error, Event, action, block, data, hook, hooks, log, subscription};
use serde::Deserialize;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: std::alloc::System = std::alloc::System;

/// The `config` of the subscriptions in `block.json`.
#[derive(Deserialize)]
struct Settings {
    tag: String,
    /// Whether the record also has the payload of its event.
    #[serde(default)]
    keeps: bool,
}

#[subscription]
fn hear(context: &Context, event: Event, settings: Settings) -> Result<(), Error> {
    let Settings { tag, keeps } = settings;
    let title = event.payload["after"]["title"].as_str().unwrap_or_default();
    log::with_fields("info", &format!("heard {title}"), json!({ "tag": tag, "attempt": event.attempt }));
    if title == "trap" {
        panic!("as it was told");
    }
    if title == "fail" {
        log::warn("about to fail");
        return Err(Error::conflict("The title says so."));
    }
    let actor = context.actor.as_ref().and_then(|actor| actor.user_id.clone());
    let mut record = json!({ "event": event.id, "tag": tag, "actor": actor });
    if keeps {
        record["payload"] = event.payload;
    }
    data::create::<Value>("heard", record)?;
    Ok(())
}

/// Takes the memory that its input names, and logs it if the input asks for it.
#[action]
fn take(_context: &Context, input: Value) -> Result<usize, Error> {
    if input["says"].as_bool() == Some(true) {
        log::info("taken");
    }
    let bytes = input["bytes"].as_u64().unwrap_or_default();
    match input["fails"].as_bool() {
        Some(true) => Err(Error::invalid_request("It was told to fail.")),
        _ => Ok(vec![1_u8; bytes as usize].iter().map(|byte| usize::from(*byte)).sum()),
    }
}

#[hook]
fn knock(_context: &Context, _request: hooks::Request) -> Result<Option<hooks::Response>, Error> {
    Ok(None)
}

block!(hear, take, knock);

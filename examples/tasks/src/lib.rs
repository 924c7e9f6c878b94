//! A block with one action. It reads and writes records with the permissions in `block.json`.

use blockbase_sdk::{Context, Error, JsonSchema, action, block, config, data, log, schemars};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Complete {
    #[schemars(length(equal = 36))]
    id: String,
}

#[derive(Deserialize)]
struct Settings {
    cheer: String,
}

#[derive(Serialize)]
struct Completed {
    task: Value,
    open: Option<u64>,
    message: String,
}

/// Marks a task as done and answers with it and with the number of tasks still open.
#[action]
fn complete(context: &Context, input: Complete) -> Result<Completed, Error> {
    let task: Value = data::get("task", &input.id)?.ok_or_else(|| Error::not_found("task"))?;
    if task["done"] == true {
        return Err(Error::conflict("The task is done already."));
    }
    let task: Value = data::update("task", &input.id, json!({ "done": true }))?;
    let open = data::query::<Value>("task", json!({ "where": { "done": false }, "limit": 1 }))?;
    let who = context.actor.as_ref().and_then(|actor| actor.user_id.as_deref());
    log::with_fields("info", "completed a task", json!({ "task": input.id, "by": who }));
    let settings: Settings = config::get()?;
    Ok(Completed { task, open: open.pagination.total_count, message: settings.cheer })
}

block!(complete);

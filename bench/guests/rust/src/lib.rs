//! The Rust block that the benchmark calls.

use blockbase_sdk::{Context, Error, JsonSchema, action, block, data, http, schemars};
use serde::Deserialize;
use serde_json::{Value, json};

/// Answers with its input.
#[action]
fn echo(_context: &Context, input: Value) -> Result<Value, Error> {
    Ok(input)
}

#[derive(Deserialize, JsonSchema)]
struct Get {
    id: String,
}

/// Answers with a task.
#[action]
fn get(_context: &Context, input: Get) -> Result<Option<Value>, Error> {
    data::get("task", &input.id)
}

/// Reads a task, and then increases its priority.
#[action]
fn increase(_context: &Context, input: Get) -> Result<Value, Error> {
    let _task: Option<Value> = data::get("task", &input.id)?;
    data::update("task", &input.id, json!({ "priority": { "$inc": 1 } }))
}

#[derive(Deserialize, JsonSchema)]
struct Transfer {
    from: String,
    to: String,
    amount: u32,
}

/// Moves money from one account to another. The account with the lower id comes first, so two transfers never wait for each other.
#[action]
fn transfer(_context: &Context, input: Transfer) -> Result<usize, Error> {
    let change = |id: &str, operator: &str| json!({ "op": "update", "object": "account", "id": id, "values": { "balance": { operator: input.amount } } });
    let mut operations = [change(&input.from, "$dec"), change(&input.to, "$inc")];
    if input.to < input.from {
        operations.reverse();
    }
    let changed = data::batch(operations)?;
    if changed.contains(&Value::Null) {
        return Err(Error::not_found("account"));
    }
    Ok(changed.len())
}

#[derive(Deserialize, JsonSchema)]
struct Wait {
    url: String,
}

/// Waits for the answer of whoever listens there.
#[action]
fn wait(_context: &Context, input: Wait) -> Result<u16, Error> {
    Ok(http::get(input.url).send()?.status)
}

block!(echo, get, increase, transfer, wait);

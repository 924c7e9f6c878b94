//! The Rust block that the benchmark calls.

use blockbase_sdk::{Context, Error, JsonSchema, action, block, data, http, schemars};
use serde::Deserialize;
use serde_json::Value;

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

#[derive(Deserialize, JsonSchema)]
struct Wait {
    url: String,
}

/// Waits for the answer of whoever listens there.
#[action]
fn wait(_context: &Context, input: Wait) -> Result<u16, Error> {
    Ok(http::get(input.url).send()?.status)
}

block!(echo, get, wait);

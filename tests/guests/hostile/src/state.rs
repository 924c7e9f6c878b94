//! Handlers that count the calls of their instance, so they show whether state passes from one call to the next.

use std::sync::atomic::{AtomicU64, Ordering};

use blockbase_sdk::{Context, Error, Event, JsonSchema, action, hook, hooks, log, schemars, subscription};
use serde::Deserialize;
use serde_json::{Value, json};

static CALLS: AtomicU64 = AtomicU64::new(0);

fn counted() -> u64 {
    CALLS.fetch_add(1, Ordering::Relaxed) + 1
}

/// The number of counting calls that this instance has served.
#[action]
pub(crate) fn count(_context: &Context) -> Result<u64, Error> {
    Ok(counted())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Allocation {
    bytes: usize,
}

/// The address of a new allocation.
#[action]
pub(crate) fn allocate(_context: &Context, input: Allocation) -> Result<usize, Error> {
    Ok(std::hint::black_box(vec![1_u8; input.bytes]).as_ptr().addr())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Slowly {
    ms: u64,
}

/// Counts, logs it, and keeps the instance for a while.
#[action]
pub(crate) fn count_slowly(_context: &Context, input: Slowly) -> Result<u64, Error> {
    let calls = counted();
    log::info(&format!("counted {calls} slowly"));
    crate::bombs::sleep(input.ms);
    Ok(calls)
}

/// The same as `count`.
#[hook]
pub(crate) fn count_request(_context: &Context, _request: hooks::Request) -> Result<hooks::Response, Error> {
    hooks::Response::json(&json!({ "calls": counted() }))
}

/// Logs what `count` answers.
#[subscription]
pub(crate) fn count_event(_context: &Context, _event: Event<Value>) -> Result<(), Error> {
    log::info(&format!("counted {}", counted()));
    Ok(())
}

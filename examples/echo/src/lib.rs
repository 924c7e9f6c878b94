//! The smallest block, and the ways in which a call can end.

use std::sync::atomic::{AtomicU32, Ordering};

use blockbase_sdk::{Context, Error, Event, JsonSchema, action, block, log, schemars, subscription};
use serde::Deserialize;
use serde_json::Value;

/// Answers with its input.
#[action(rbac(resource = "echo:calls", action = "read"))]
fn echo(_context: &Context, input: Value) -> Result<Value, Error> {
    Ok(input)
}

/// Never ends; its deadline ends it.
#[action(timeout_ms = 300)]
fn spin(_context: &Context) -> Result<u64, Error> {
    // The line shows a test that the call has begun.
    log::info("spinning");
    let mut turns = 0_u64;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}

/// Traps.
#[action]
fn panic(_context: &Context) -> Result<(), Error> {
    panic!("the author's mistake")
}

/// Asks for more memory than a call may have.
#[action]
fn hoard(_context: &Context) -> Result<usize, Error> {
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    loop {
        hoard.push(std::hint::black_box(vec![1; 1 << 20]));
    }
}

static CALLS: AtomicU32 = AtomicU32::new(0);

/// Counts the calls of its instance, of which there is one each.
#[action]
fn remember(_context: &Context) -> Result<u32, Error> {
    Ok(CALLS.fetch_add(1, Ordering::Relaxed) + 1)
}

#[derive(Deserialize, JsonSchema)]
struct Refuse {
    code: String,
}

/// Fails with the code it is given.
#[action]
fn refuse(_context: &Context, input: Refuse) -> Result<(), Error> {
    Err(Error::new(input.code, "refused as asked"))
}

/// Fails with each event. The block itself subscribes to none.
#[subscription]
fn fail(_context: &Context, event: Event) -> Result<(), Error> {
    Err(Error::new("conflict", format!("failed on {}", event.topic)))
}

block!(echo, spin, panic, hoard, remember, refuse, fail);

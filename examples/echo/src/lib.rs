//! The smallest block, and the ways in which a call can end.

use std::sync::atomic::{AtomicU32, Ordering};

use blockbase_sdk::{Context, Error, block};
use serde::Deserialize;
use serde_json::Value;

fn echo(_context: &Context, input: Value) -> Result<Value, Error> {
    Ok(input)
}

fn spin(_context: &Context, _input: Value) -> Result<u64, Error> {
    let mut turns = 0_u64;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}

fn panic(_context: &Context, _input: Value) -> Result<(), Error> {
    panic!("the author's mistake")
}

fn hoard(_context: &Context, _input: Value) -> Result<usize, Error> {
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    loop {
        hoard.push(std::hint::black_box(vec![1; 1 << 20]));
    }
}

static CALLS: AtomicU32 = AtomicU32::new(0);

fn remember(_context: &Context, _input: Value) -> Result<u32, Error> {
    Ok(CALLS.fetch_add(1, Ordering::Relaxed) + 1)
}

#[derive(Deserialize)]
struct Refuse {
    code: String,
}

fn refuse(_context: &Context, input: Refuse) -> Result<(), Error> {
    Err(Error::new(input.code, "refused as asked"))
}

block! { actions: { echo, spin, panic, hoard, remember, refuse } }

//! Actions that use up time, memory, stack, host calls, handles and the log.

use std::hint::black_box;

use blockbase_sdk::{Context, Error, JsonSchema, action, deadline, schemars, time};
use serde::Deserialize;
use wasip2::clocks::monotonic_clock;

/// Never ends.
#[action]
pub(crate) fn spin(_context: &Context) -> Result<(), Error> {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Nap {
    ms: u64,
}

/// Waits without keeping a processor.
#[action]
pub(crate) fn nap(_context: &Context, input: Nap) -> Result<(), Error> {
    sleep(input.ms);
    Ok(())
}

pub(crate) fn sleep(ms: u64) {
    monotonic_clock::subscribe_duration(ms * 1_000_000).block();
}

#[allow(unconditional_recursion, reason = "that it has no end is what it is for")]
fn deeper(depth: u64) -> u64 {
    black_box(deeper(black_box(depth + 1))) + 1
}

/// Calls itself without end.
#[action]
pub(crate) fn descend(_context: &Context) -> Result<u64, Error> {
    Ok(deeper(0))
}

/// Takes memory until there is no more.
#[action]
pub(crate) fn hoard(_context: &Context) -> Result<usize, Error> {
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    loop {
        hoard.push(black_box(vec![1; 1 << 20]));
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Fill {
    megabytes: usize,
    ms: u64,
}

/// Takes so much memory, and keeps it for a while.
#[action]
pub(crate) fn fill(_context: &Context, input: Fill) -> Result<usize, Error> {
    let filled = black_box(vec![1_u8; input.megabytes << 20]);
    sleep(input.ms);
    Ok(black_box(filled).len())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Flood {
    calls: u64,
    /// Of WASI, not of the block interface.
    wasi: bool,
}

/// Calls the host.
#[action]
pub(crate) fn flood(_context: &Context, input: Flood) -> Result<u64, Error> {
    for _ in 0..input.calls {
        black_box(if input.wasi { time::now_ms() } else { deadline::remaining_ms() });
    }
    Ok(input.calls)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Bytes {
    bytes: usize,
    /// As the error's message, not as the result.
    #[serde(default)]
    fails: bool,
}

/// Answers with a text of so many bytes.
#[action]
pub(crate) fn result(_context: &Context, input: Bytes) -> Result<String, Error> {
    let text = "x".repeat(input.bytes);
    if input.fails { Err(Error::conflict(text)) } else { Ok(text) }
}

/// Hands a text of so many bytes to the host.
#[action]
pub(crate) fn argue(_context: &Context, input: Bytes) -> Result<String, Error> {
    blockbase_sdk::secrets::get(&"x".repeat(input.bytes))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Hold {
    handles: usize,
}

/// Takes handles of the host and never gives them back.
#[action]
pub(crate) fn hold(_context: &Context, input: Hold) -> Result<usize, Error> {
    for _ in 0..input.handles {
        std::mem::forget(monotonic_clock::subscribe_duration(u64::MAX));
    }
    Ok(input.handles)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Log {
    level: String,
    text: String,
    /// How often the text stands in one line.
    #[serde(default = "once")]
    repeat: usize,
    lines: usize,
    /// To the standard output, not by the log.
    #[serde(default)]
    stdout: bool,
    /// Bytes of a last line on the standard output that has no end.
    #[serde(default)]
    unfinished: usize,
}

fn once() -> usize {
    1
}

/// Writes to the standard output.
fn write_out(text: &str) -> Result<(), Error> {
    for piece in text.as_bytes().chunks(4096) {
        let written = wasip2::cli::stdout::get_stdout().blocking_write_and_flush(piece);
        written.map_err(|_| Error::failed("the standard output is closed"))?;
    }
    Ok(())
}

/// Logs lines.
#[action]
pub(crate) fn log(_context: &Context, input: Log) -> Result<usize, Error> {
    let line = input.text.repeat(input.repeat);
    for _ in 0..input.lines {
        match input.stdout {
            true => write_out(&format!("{line}\n"))?,
            false => blockbase_sdk::log::with_fields(&input.level, &line, ()),
        }
    }
    write_out(&"x".repeat(input.unfinished))?;
    Ok(input.lines)
}

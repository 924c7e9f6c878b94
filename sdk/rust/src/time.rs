//! The clock. `std::time` has no clock on `wasm32-unknown-unknown`, so this is the host's clock on every target.

use std::time::{Duration, SystemTime};

use crate::bindings::wasi::clocks::wall_clock;

/// Milliseconds since 1970-01-01T00:00:00Z.
pub fn now_ms() -> u64 {
    let now = wall_clock::now();
    now.seconds * 1000 + u64::from(now.nanoseconds / 1_000_000)
}

/// The time as a `SystemTime`, for calculations.
pub fn now() -> SystemTime {
    let now = wall_clock::now();
    SystemTime::UNIX_EPOCH + Duration::new(now.seconds, now.nanoseconds)
}

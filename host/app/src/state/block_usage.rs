//! The usage of blocks on this instance since it started: the number of calls, their durations and their memory.
//!
//! Usage is counted even if telemetry is off, in a fixed number of bytes for each handler. It is lost when the process ends.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use blockbase_schema::Result;
use parking_lot::{Mutex, RwLock};
use schemars::JsonSchema;
use serde::Serialize;

use crate::base::answer::Timestamp;
use crate::state::block_types::InstalledBlock;
use crate::state::manifest::Manifest;

/// The number of buckets for each doubling of the duration. A percentile is wrong by at most a thirtieth.
const BUCKETS_AN_OCTAVE: u32 = 16;
/// The longest duration with a bucket of its own is `2^OCTAVES` microseconds, which is more than an hour.
const OCTAVES: u32 = 32;
const BUCKETS: usize = ((OCTAVES - BUCKETS_AN_OCTAVE.ilog2() + 1) * BUCKETS_AN_OCTAVE) as usize;

// The kind of a call's handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum HandlerKind {
    Action,
    Hook,
    Subscription,
}

/// The number, the durations and the memory of one handler's calls.
#[derive(Debug)]
pub struct HandlerUsage {
    calls: AtomicU64,
    failed: AtomicU64,
    micros: AtomicU64,
    memory_bytes_max: AtomicU64,
    /// The number of calls by their duration. The buckets have equal widths within each doubling.
    times: Box<[AtomicU32]>,
}

impl Default for HandlerUsage {
    fn default() -> Self {
        HandlerUsage {
            calls: AtomicU64::default(),
            failed: AtomicU64::default(),
            micros: AtomicU64::default(),
            memory_bytes_max: AtomicU64::default(),
            times: (0..BUCKETS).map(|_| AtomicU32::default()).collect(),
        }
    }
}

/// Returns the index of the histogram bucket for a duration in microseconds.
fn bucket(micros: u64) -> usize {
    let linear = u64::from(BUCKETS_AN_OCTAVE);
    if micros < linear {
        return usize::try_from(micros).unwrap_or(0);
    }
    let octave = micros.ilog2();
    let shift = octave - BUCKETS_AN_OCTAVE.ilog2();
    let step = (micros >> shift) - linear;
    let place = u64::from(shift + 1) * linear + step;
    usize::try_from(place).unwrap_or(BUCKETS).min(BUCKETS - 1)
}

/// Returns the middle of a bucket, in microseconds.
fn middle(bucket: usize) -> f64 {
    let linear = BUCKETS_AN_OCTAVE as usize;
    if bucket < linear {
        return bucket as f64;
    }
    let (shift, step) = (bucket / linear - 1, bucket % linear);
    let width = f64::from(1_u32 << shift.min(31));
    (linear + step) as f64 * width + width / 2.0
}

/// Converts to milliseconds with three digits after the point.
fn milliseconds(micros: f64) -> f64 {
    micros.round() / 1000.0
}

impl HandlerUsage {
    /// Runs a call and counts it. If its future is dropped early, the call counts as failed.
    pub(crate) async fn observe<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let mut running = Running { usage: self, began: Instant::now(), is_failed: true };
        let result = call.await;
        running.is_failed = result.is_err();
        result
    }

    /// Counts the linear memory that a call had at its end.
    pub fn used_memory(&self, bytes: usize) {
        self.memory_bytes_max.fetch_max(bytes as u64, Ordering::Relaxed);
    }

    fn count(&self, took: Duration, is_failed: bool) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.failed.fetch_add(u64::from(is_failed), Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        if let Some(times) = self.times.get(bucket(micros)) {
            times.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The duration within which this percentage of the calls ended, in milliseconds. `None` if there were no calls.
    fn percentile(&self, percent: u64) -> Option<f64> {
        let times: Vec<u64> = self.times.iter().map(|count| u64::from(count.load(Ordering::Relaxed))).collect();
        let all: u64 = times.iter().sum();
        let rank = (all * percent).div_ceil(100);
        let mut seen = 0;
        let place = times.iter().position(|count| {
            seen += count;
            rank > 0 && seen >= rank
        });
        place.map(|place| milliseconds(middle(place)))
    }

    fn answer(&self, name: &str) -> HandlerUsageAnswer {
        HandlerUsageAnswer {
            name: name.to_owned(),
            calls: self.calls.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            time_ms_total: milliseconds(self.micros.load(Ordering::Relaxed) as f64),
            time_ms_p50: self.percentile(50),
            time_ms_p95: self.percentile(95),
            memory_bytes_max: self.memory_bytes_max.load(Ordering::Relaxed),
        }
    }
}

/// The number, the time and the memory of one handler's calls.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcHandlerUsage", deny_unknown_fields)]
struct HandlerUsageAnswer {
    name: String,
    calls: u64,
    /// The number includes calls whose client disconnected.
    failed: u64,
    time_ms_total: f64,
    /// Null if there were no calls.
    time_ms_p50: Option<f64>,
    time_ms_p95: Option<f64>,
    /// The largest linear memory of one call.
    memory_bytes_max: u64,
}

/// The usage of a block's handlers on this instance since it started. Handlers that were never called are included.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct BlockUsageAnswer {
    since: Timestamp,
    actions: Vec<HandlerUsageAnswer>,
    hooks: Vec<HandlerUsageAnswer>,
    handlers: Vec<HandlerUsageAnswer>,
}

/// Counts the call when it is dropped.
struct Running<'a> {
    usage: &'a HandlerUsage,
    began: Instant,
    is_failed: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.usage.count(self.began.elapsed(), self.is_failed);
    }
}

/// The handlers of one block that were called.
#[derive(Debug, Default)]
pub(crate) struct BlockUsage {
    handlers: RwLock<BTreeMap<HandlerKind, HashMap<String, Arc<HandlerUsage>>>>,
}

impl BlockUsage {
    /// The usage of a handler that the block declares.
    pub(crate) fn of(&self, kind: HandlerKind, name: &str) -> Arc<HandlerUsage> {
        if let Some(known) = self.handlers.read().get(&kind).and_then(|handlers| handlers.get(name)) {
            return Arc::clone(known);
        }
        Arc::clone(self.handlers.write().entry(kind).or_default().entry(name.to_owned()).or_default())
    }

    /// The usage of the handlers of a manifest, in the form in which it is shown. `handlers` are the handlers of its
    /// subscriptions.
    pub(crate) fn shown(&self, since: i64, manifest: &Manifest, handlers: &[&str]) -> BlockUsageAnswer {
        BlockUsageAnswer {
            since: Timestamp(since),
            actions: self.answer(HandlerKind::Action, manifest.actions.iter().map(|action| action.name.as_str())),
            hooks: self.answer(HandlerKind::Hook, manifest.hooks.iter().map(|hook| hook.name.as_str())),
            handlers: self.answer(HandlerKind::Subscription, handlers.iter().copied()),
        }
    }

    fn answer<'a>(&self, kind: HandlerKind, names: impl Iterator<Item = &'a str>) -> Vec<HandlerUsageAnswer> {
        let handlers = self.handlers.read();
        let unused = HandlerUsage::default();
        let of = |name: &str| handlers.get(&kind).and_then(|handlers| handlers.get(name)).map_or(&unused, |known| &**known);
        names.map(|name| of(name).answer(name)).collect()
    }
}

/// The usage of all blocks, by their names. A block's usage survives upgrades, and ends when it is uninstalled.
pub(crate) struct Usages {
    /// Milliseconds since the epoch.
    since: i64,
    blocks: Mutex<HashMap<String, Arc<BlockUsage>>>,
}

impl Usages {
    pub(crate) fn new(since: i64) -> Usages {
        Usages { since, blocks: Mutex::default() }
    }

    /// The start of the count.
    pub(crate) fn since(&self) -> i64 {
        self.since
    }

    pub(crate) fn of(&self, block: &str) -> Arc<BlockUsage> {
        Arc::clone(self.blocks.lock().entry(block.to_owned()).or_default())
    }

    /// Drops the usage of blocks that are no longer installed.
    pub(crate) fn retain(&self, installed: &BTreeMap<String, Arc<InstalledBlock>>) {
        self.blocks.lock().retain(|name, _| installed.contains_key(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_near_the_middle_of_its_bucket() {
        let mut last = 0;
        for micros in (0..2000).chain([65_535, 65_536, 1_000_000, 30_000_000, 4_000_000_000]) {
            let place = bucket(micros);
            assert!(place >= last && place < BUCKETS, "{micros}");
            last = place;
            let error = (middle(place) - micros as f64).abs();
            assert!(error <= micros as f64 / 30.0 + 0.5, "{micros} {}", middle(place));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_of_the_calls_that_ended() {
        let usage = HandlerUsage::default();
        assert_eq!(usage.percentile(50), None);
        for millis in 1..=100 {
            usage.count(Duration::from_millis(millis), millis > 98);
        }
        for (percent, millis) in [(50, 50.0), (95, 95.0)] {
            let found = usage.percentile(percent).expect("a time");
            assert!((found - millis).abs() <= millis / 20.0, "{percent}: {found}");
        }
        let shown = usage.answer("x");
        assert_eq!((shown.calls, shown.failed, shown.time_ms_total), (100, 2, 5050.0));
    }
}

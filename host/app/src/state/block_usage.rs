//! The usage of blocks on this instance since it started: the number of calls, their durations with the parts of these, and their
//! memory.
//!
//! Usage is counted even if telemetry is off, in a fixed number of bytes for each handler. It is lost when the process ends.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use blockbase_schema::Result;
use blockbase_telemetry::{BlockHandler, CallClock, CallPart, block_call_part, record_call_part};
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

/// The usage of one handler of a block. Counting takes no lock, and no memory while telemetry is off.
#[derive(Debug)]
pub struct HandlerUsage {
    block: Arc<str>,
    kind: HandlerKind,
    name: String,
    counts: Counts,
}

/// The number, the durations and the memory of one handler's calls.
#[derive(Debug, Default)]
struct Counts {
    failed: AtomicU64,
    memory_bytes_max: AtomicU64,
    /// The durations of all calls.
    times: Times,
    /// The durations of the parts of those calls that got an instance and ended, in the order of [`CallPart::ALL`].
    parts: [Times; CallPart::ALL.len()],
}

/// The number of some durations, their sum and their distribution.
#[derive(Debug)]
struct Times {
    count: AtomicU64,
    nanos: AtomicU64,
    /// The number of durations by their length. The buckets have equal widths within each doubling.
    buckets: Box<[AtomicU32]>,
}

impl Default for Times {
    fn default() -> Self {
        Times {
            count: AtomicU64::default(),
            nanos: AtomicU64::default(),
            buckets: (0..BUCKETS).map(|_| AtomicU32::default()).collect(),
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
        let mut running = Running { counts: &self.counts, began: Instant::now(), is_failed: true };
        let result = call.await;
        running.is_failed = result.is_err();
        result
    }

    /// Counts the linear memory that a call had at its end.
    pub fn used_memory(&self, bytes: usize) {
        self.counts.memory_bytes_max.fetch_max(bytes as u64, Ordering::Relaxed);
    }

    /// Counts the parts of a call that got an instance and ended, except the teardown, here and in the metrics. The span of the
    /// call, which is the current one, gets them too.
    pub fn ended(&self, clock: CallClock) {
        for (part, took) in clock.end() {
            self.count_part(part, took);
            record_call_part(part, took);
        }
    }

    /// Counts the teardown of a call, here and in the metrics. It may end after the answer, so it is counted on its own.
    pub fn torn_down(&self, took: Duration) {
        self.count_part(CallPart::Teardown, took);
    }

    fn count_part(&self, part: CallPart, took: Duration) {
        self.counts.parts[part as usize].count(took);
        let handler = match self.kind {
            HandlerKind::Action => BlockHandler::Action(&self.name),
            HandlerKind::Hook => BlockHandler::Hook(&self.name),
            HandlerKind::Subscription => BlockHandler::Event(&self.name),
        };
        block_call_part(&self.block, handler, part, took);
    }
}

impl Counts {
    fn count(&self, took: Duration, is_failed: bool) {
        self.failed.fetch_add(u64::from(is_failed), Ordering::Relaxed);
        self.times.count(took);
    }

    fn answer(&self, name: &str) -> HandlerUsageAnswer {
        let part = |part: CallPart| self.parts[part as usize].answer();
        HandlerUsageAnswer {
            name: name.to_owned(),
            calls: self.times.count.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            time_ms_total: self.times.total(),
            time_ms_p50: self.times.percentile(50),
            time_ms_p95: self.times.percentile(95),
            memory_bytes_max: self.memory_bytes_max.load(Ordering::Relaxed),
            parts: HandlerPartsAnswer {
                queue: part(CallPart::Queue),
                instantiate: part(CallPart::Instantiate),
                guest: part(CallPart::Guest),
                host: part(CallPart::Host),
                render: part(CallPart::Render),
                teardown: part(CallPart::Teardown),
            },
        }
    }
}

impl Times {
    fn count(&self, took: Duration) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if let Some(bucket) = self.buckets.get(bucket(micros)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The sum in milliseconds.
    fn total(&self) -> f64 {
        milliseconds(self.nanos.load(Ordering::Relaxed) as f64 / 1000.0)
    }

    /// The duration that this percentage of the durations does not exceed, in milliseconds. `None` if there are none.
    fn percentile(&self, percent: u64) -> Option<f64> {
        let counts: Vec<u64> = self.buckets.iter().map(|count| u64::from(count.load(Ordering::Relaxed))).collect();
        let all: u64 = counts.iter().sum();
        let rank = (all * percent).div_ceil(100);
        let mut seen = 0;
        let place = counts.iter().position(|count| {
            seen += count;
            rank > 0 && seen >= rank
        });
        place.map(|place| milliseconds(middle(place)))
    }

    fn answer(&self) -> PartAnswer {
        PartAnswer {
            calls: self.count.load(Ordering::Relaxed),
            time_ms_total: self.total(),
            time_ms_p50: self.percentile(50),
            time_ms_p95: self.percentile(95),
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
    parts: HandlerPartsAnswer,
}

/// The time that a handler's calls spent in each of their parts. A call is in exactly one part at a time. Only calls that got an
/// instance and ended are counted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "SvcHandlerParts", deny_unknown_fields)]
struct HandlerPartsAnswer {
    /// The call waits for the compiled block, for a free slot, or for a processor.
    queue: PartAnswer,
    /// The server makes the instance, and the block runs the code of its start.
    instantiate: PartAnswer,
    /// The block's own code runs.
    guest: PartAnswer,
    /// Functions of the server run for the block, or wait.
    host: PartAnswer,
    /// The server reads the block's result, and makes the answer of it.
    render: PartAnswer,
    /// The server discards or keeps the instance, usually after the answer.
    teardown: PartAnswer,
}

/// The time of a handler's calls in one part.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcHandlerPart", deny_unknown_fields)]
struct PartAnswer {
    /// The number of calls whose time in this part is known.
    calls: u64,
    time_ms_total: f64,
    /// Null if there were no calls.
    time_ms_p50: Option<f64>,
    time_ms_p95: Option<f64>,
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
    counts: &'a Counts,
    began: Instant,
    is_failed: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.counts.count(self.began.elapsed(), self.is_failed);
    }
}

/// The handlers of one block that were called.
#[derive(Debug)]
pub(crate) struct BlockUsage {
    block: Arc<str>,
    handlers: RwLock<BTreeMap<HandlerKind, HashMap<String, Arc<HandlerUsage>>>>,
}

impl BlockUsage {
    fn new(block: &str) -> BlockUsage {
        BlockUsage { block: block.into(), handlers: RwLock::default() }
    }

    /// The usage of a handler that the block declares.
    pub(crate) fn of(&self, kind: HandlerKind, name: &str) -> Arc<HandlerUsage> {
        if let Some(known) = self.handlers.read().get(&kind).and_then(|handlers| handlers.get(name)) {
            return Arc::clone(known);
        }
        let mut handlers = self.handlers.write();
        let usage = handlers.entry(kind).or_default().entry(name.to_owned()).or_insert_with(|| {
            let (block, name) = (Arc::clone(&self.block), name.to_owned());
            Arc::new(HandlerUsage { block, kind, name, counts: Counts::default() })
        });
        Arc::clone(usage)
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
        let unused = Counts::default();
        let of = |name: &str| handlers.get(&kind).and_then(|handlers| handlers.get(name)).map_or(&unused, |known| &known.counts);
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
        let mut blocks = self.blocks.lock();
        Arc::clone(blocks.entry(block.to_owned()).or_insert_with(|| Arc::new(BlockUsage::new(block))))
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
        let counts = Counts::default();
        assert_eq!(counts.times.percentile(50), None);
        for millis in 1..=100 {
            counts.count(Duration::from_millis(millis), millis > 98);
        }
        for (percent, millis) in [(50, 50.0), (95, 95.0)] {
            let found = counts.times.percentile(percent).expect("a time");
            assert!((found - millis).abs() <= millis / 20.0, "{percent}: {found}");
        }
        let shown = counts.answer("x");
        assert_eq!((shown.calls, shown.failed, shown.time_ms_total), (100, 2, 5050.0));
        let unused = PartAnswer { calls: 0, time_ms_total: 0.0, time_ms_p50: None, time_ms_p95: None };
        assert_eq!(shown.parts.guest, unused);
    }

    #[test]
    fn each_part_of_a_call_counts_for_its_handler_only() {
        let usage = BlockUsage::new("echo");
        let (take, knock) = (usage.of(HandlerKind::Action, "take"), usage.of(HandlerKind::Hook, "knock"));
        for _ in 0..2 {
            take.ended(CallClock::start());
        }
        take.torn_down(Duration::from_micros(1500));
        take.torn_down(Duration::from_nanos(400));
        let HandlerPartsAnswer { queue, instantiate, guest, host, render, teardown } = take.counts.answer("take").parts;
        assert_eq!([&queue, &instantiate, &guest, &host, &render, &teardown].map(|part| part.calls), [2; 6]);
        assert!(render.time_ms_total == 0.0 && render.time_ms_p95 == Some(0.0), "{render:?}");
        // Times below a microsecond are part of the sum.
        assert_eq!(teardown.time_ms_total, 1.5);
        assert_eq!(take.counts.parts[CallPart::Teardown as usize].nanos.load(Ordering::Relaxed), 1_500_400);
        assert_eq!(knock.counts.answer("knock").parts.queue.calls, 0);
        assert!(Arc::ptr_eq(&take, &usage.of(HandlerKind::Action, "take")));
    }
}

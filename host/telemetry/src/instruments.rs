//! The instruments, and the functions that record on them. docs/telemetry.md describes each.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, MeterProvider, ObservableGauge, UpDownCounter};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use parking_lot::Mutex;

use crate::call_parts::CallPart;

/// The instrumentation scope of all metrics and spans.
pub(crate) const SCOPE: &str = "blockbase";
/// The upper bounds of the buckets for durations, in milliseconds.
const MILLISECONDS: [f64; 14] =
    [1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10_000.0, 30_000.0];
/// The upper bounds of the buckets for a part of a call, in milliseconds. Most parts take microseconds.
const PART_MILLISECONDS: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 50.0, 250.0, 1000.0];
/// The upper bounds of the buckets for a request's duration in seconds, as the semantic conventions advise.
const REQUEST_SECONDS: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
/// The upper bounds of the buckets for a call's memory, in bytes.
const MEMORY_BYTES: [f64; 9] =
    [65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0, 33_554_432.0, 67_108_864.0, 134_217_728.0, 268_435_456.0];
/// The upper bounds of the buckets for the number of jobs in one commit.
const JOBS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// The instruments, as soon as telemetry is on. They belong to the process, as the subscriber of `tracing` does, so that every
/// crate can record without a handle.
static INSTRUMENTS: OnceLock<Instruments> = OnceLock::new();

/// The outcome of a call or a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Success,
    Failed,
}

impl Outcome {
    /// The value of the attribute `svc.outcome`.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Failed => "failed",
        }
    }
}

/// The queue of deliveries, as the dispatcher last read it from the ledger.
struct Queue {
    pending: Vec<(String, u64)>,
    oldest_age_seconds: f64,
}

pub(crate) struct Instruments {
    exports_traces: bool,
    published: Counter<u64>,
    deliveries: Counter<u64>,
    delivery_duration: Histogram<f64>,
    undecodable: Counter<u64>,
    leases_lost: Counter<u64>,
    streams: UpDownCounter<i64>,
    invocations: Counter<u64>,
    action_duration: Histogram<f64>,
    hooks: Counter<u64>,
    hook_duration: Histogram<f64>,
    call_parts: Histogram<f64>,
    block_instances: Counter<u64>,
    block_busy: Histogram<f64>,
    block_memory: Histogram<u64>,
    block_traps: Counter<u64>,
    block_limits: Counter<u64>,
    batch_size: Histogram<u64>,
    pub(crate) request_duration: Histogram<f64>,
    queue: Arc<Mutex<Option<Queue>>>,
    _observed: (ObservableGauge<u64>, ObservableGauge<f64>),
    /// The provider is kept here and never dropped. Dropping it would export the remaining data, which would delay a process that
    /// has to end at once.
    _provider: SdkMeterProvider,
}

impl Instruments {
    pub(crate) fn new(provider: SdkMeterProvider, exports_traces: bool) -> Instruments {
        let meter = provider.meter(SCOPE);
        let milliseconds = |name: &'static str, what: &'static str| {
            meter.f64_histogram(name).with_unit("ms").with_description(what).with_boundaries(MILLISECONDS.to_vec()).build()
        };
        let counter = |name: &'static str, unit: &'static str, what: &'static str| {
            meter.u64_counter(name).with_unit(unit).with_description(what).build()
        };
        let queue: Arc<Mutex<Option<Queue>>> = Arc::default();
        let (depth, lag) = (Arc::clone(&queue), Arc::clone(&queue));
        let instruments = Instruments {
            exports_traces,
            published: counter("svc.event.published", "{event}", "Events that were committed"),
            deliveries: counter("svc.event.deliveries", "{delivery}", "Attempts to deliver an event to a handler"),
            delivery_duration: milliseconds("svc.event.delivery.duration", "Time of one attempt to deliver an event"),
            undecodable: counter("svc.event.undecodable", "{event}", "Events that could not be read back"),
            leases_lost: counter("svc.event.leases.lost", "{lease}", "Deliveries whose lease ran out under their handler"),
            streams: meter
                .i64_up_down_counter("svc.event.streams")
                .with_unit("{stream}")
                .with_description("Open event streams")
                .build(),
            invocations: counter("svc.action.invocations", "{call}", "Calls of an action's handler"),
            action_duration: milliseconds("svc.action.duration", "Time of one call of an action's handler"),
            hooks: counter("svc.hook.deliveries", "{call}", "Requests that a hook's handler received"),
            hook_duration: milliseconds("svc.hook.duration", "Time of one call of a hook's handler"),
            call_parts: meter
                .f64_histogram("svc.block.call.part")
                .with_unit("ms")
                .with_description("Time of one call of a block in each of its parts")
                .with_boundaries(PART_MILLISECONDS.to_vec())
                .build(),
            block_instances: counter("svc.block.instances", "{call}", "Calls of a block, by how they got their instance"),
            block_busy: milliseconds("svc.block.cpu.time", "Time that one call of a block kept a processor"),
            block_memory: meter
                .u64_histogram("svc.block.memory.peak")
                .with_unit("By")
                .with_description("Most linear memory of one call of a block")
                .with_boundaries(MEMORY_BYTES.to_vec())
                .build(),
            block_traps: counter("svc.block.traps", "{call}", "Calls of a block that trapped"),
            block_limits: counter("svc.block.limits", "{call}", "Calls of a block that ran into a limit"),
            batch_size: meter
                .u64_histogram("svc.store.batch.size")
                .with_unit("{job}")
                .with_description("Writes of one commit on SQLite")
                .with_boundaries(JOBS.to_vec())
                .build(),
            request_duration: meter
                .f64_histogram("http.server.request.duration")
                .with_unit("s")
                .with_description("Time until a request's answer began")
                .with_boundaries(REQUEST_SECONDS.to_vec())
                .build(),
            _observed: (
                meter
                    .u64_observable_gauge("svc.event.queue.depth")
                    .with_unit("{delivery}")
                    .with_description("Deliveries that wait, by consumer group")
                    .with_callback(move |gauge| {
                        for (consumer, pending) in depth.lock().iter().flat_map(|queue| &queue.pending) {
                            gauge.observe(*pending, &[KeyValue::new("svc.event.consumer", consumer.clone())]);
                        }
                    })
                    .build(),
                meter
                    .f64_observable_gauge("svc.event.outbox.lag")
                    .with_unit("s")
                    .with_description("Age of the oldest delivery that waits")
                    .with_callback(move |gauge| {
                        if let Some(queue) = &*lag.lock() {
                            gauge.observe(queue.oldest_age_seconds, &[]);
                        }
                    })
                    .build(),
            ),
            queue,
            _provider: provider,
        };
        // The series begins at zero, so that a scraper sees the first increase.
        for counter in [&instruments.undecodable, &instruments.leases_lost] {
            counter.add(0, &[]);
        }
        instruments.streams.add(0, &[]);
        instruments
    }

    /// Installs the instruments for the process. Only the first call has an effect.
    pub(crate) fn install(self) {
        let _ = INSTRUMENTS.set(self);
    }
}

/// The instruments. `None` if telemetry is off.
pub(crate) fn instruments() -> Option<&'static Instruments> {
    INSTRUMENTS.get()
}

/// Whether telemetry is on.
pub fn is_on() -> bool {
    INSTRUMENTS.get().is_some()
}

/// Whether spans are exported.
pub(crate) fn exports_traces() -> bool {
    INSTRUMENTS.get().is_some_and(|instruments| instruments.exports_traces)
}

/// The topic as an attribute. Topics that exist separately for each webhook share one value.
pub fn topic_family(topic: &str) -> &str {
    if topic.starts_with("webhook.test.") { "webhook.test" } else { topic }
}

fn topic_attribute(topic: &str) -> KeyValue {
    KeyValue::new("svc.event.topic", topic_family(topic).to_owned())
}

pub(crate) fn milliseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1000.0
}

/// Counts an event that was committed.
pub fn event_published(topic: &str) {
    if let Some(instruments) = instruments() {
        instruments.published.add(1, &[topic_attribute(topic)]);
    }
}

/// Counts an attempt to deliver an event.
pub fn delivery(topic: &str, consumer: &str, handler: &str, outcome: Outcome, took: Duration) {
    if let Some(instruments) = instruments() {
        let attributes = [
            topic_attribute(topic),
            KeyValue::new("svc.event.consumer", consumer.to_owned()),
            KeyValue::new("svc.event.handler", handler.to_owned()),
            KeyValue::new("svc.outcome", outcome.as_str()),
        ];
        instruments.deliveries.add(1, &attributes);
        instruments.delivery_duration.record(milliseconds(took), &attributes);
    }
}

/// Counts a call of an action's handler.
pub fn action(block: &str, name: &str, outcome: Outcome, took: Duration) {
    if let Some(instruments) = instruments() {
        let attributes = [
            KeyValue::new("svc.block", block.to_owned()),
            KeyValue::new("svc.action", name.to_owned()),
            KeyValue::new("svc.outcome", outcome.as_str()),
        ];
        instruments.invocations.add(1, &attributes);
        instruments.action_duration.record(milliseconds(took), &attributes);
    }
}

/// Counts a request that a hook's handler received.
pub fn hook(block: &str, name: &str, outcome: Outcome, took: Duration) {
    let Some(instruments) = instruments() else { return };
    let attributes = [
        KeyValue::new("svc.block", block.to_owned()),
        KeyValue::new("svc.hook", name.to_owned()),
        KeyValue::new("svc.outcome", outcome.as_str()),
    ];
    instruments.hooks.add(1, &attributes);
    instruments.hook_duration.record(milliseconds(took), &attributes);
}

/// The resources that one call of a block used, and the reason why it was stopped.
#[derive(Clone, Copy, Debug)]
pub struct BlockUse<'a> {
    pub block: &'a str,
    /// The processor time.
    pub busy: Duration,
    pub memory_bytes: usize,
    /// The kind of the trap that ended the call.
    pub trap: Option<&'a str>,
    /// The limit that the call exceeded.
    pub limit: Option<&'a str>,
}

/// Counts a call of a block that ended.
pub fn block_used(used: &BlockUse<'_>) {
    let Some(instruments) = instruments() else { return };
    let block = KeyValue::new("svc.block", used.block.to_owned());
    let attributes = std::slice::from_ref(&block);
    instruments.block_busy.record(milliseconds(used.busy), attributes);
    instruments.block_memory.record(used.memory_bytes as u64, attributes);
    if let Some(trap) = used.trap {
        instruments.block_traps.add(1, &[block.clone(), KeyValue::new("svc.block.trap", trap.to_owned())]);
    }
    if let Some(limit) = used.limit {
        instruments.block_limits.add(1, &[block, KeyValue::new("svc.block.limit", limit.to_owned())]);
    }
}

/// The instance that a call of a block gets.
#[derive(Clone, Copy, Debug)]
pub enum BlockInstance {
    /// The call makes it.
    New,
    /// It was made ahead, and has served no call.
    Ahead,
    /// It has served earlier calls.
    Kept,
}

/// Counts a call of a block that gets its instance.
pub fn block_instance(block: &str, instance: BlockInstance) {
    if let Some(instruments) = instruments() {
        let instance = match instance {
            BlockInstance::New => "new",
            BlockInstance::Ahead => "ahead",
            BlockInstance::Kept => "kept",
        };
        let attributes = [KeyValue::new("svc.block", block.to_owned()), KeyValue::new("svc.block.instance", instance)];
        instruments.block_instances.add(1, &attributes);
    }
}

/// A handler that a block declares. Its attribute is the one that other metrics have for this kind of handler.
#[derive(Clone, Copy, Debug)]
pub enum BlockHandler<'a> {
    Action(&'a str),
    Hook(&'a str),
    Event(&'a str),
}

impl BlockHandler<'_> {
    fn attribute(self) -> KeyValue {
        let (key, name) = match self {
            BlockHandler::Action(name) => ("svc.action", name),
            BlockHandler::Hook(name) => ("svc.hook", name),
            BlockHandler::Event(name) => ("svc.event.handler", name),
        };
        KeyValue::new(key, name.to_owned())
    }
}

/// Records the time of a call of a block's handler in one of its parts.
pub fn block_call_part(block: &str, handler: BlockHandler<'_>, part: CallPart, took: Duration) {
    if let Some(instruments) = instruments() {
        let block = KeyValue::new("svc.block", block.to_owned());
        let attributes = [block, handler.attribute(), KeyValue::new("svc.block.part", part.as_str())];
        instruments.call_parts.record(milliseconds(took), &attributes);
    }
}

/// Counts a delivery whose lease expired while its handler ran.
pub fn lease_lost() {
    if let Some(instruments) = instruments() {
        instruments.leases_lost.add(1, &[]);
    }
}

/// Counts an event that could not be decoded.
pub fn undecodable() {
    if let Some(instruments) = instruments() {
        instruments.undecodable.add(1, &[]);
    }
}

/// Records the number of writes in one commit of SQLite.
pub fn commit_batch(jobs: usize) {
    if let Some(instruments) = instruments() {
        instruments.batch_size.record(jobs as u64, &[]);
    }
}

/// Sets the queue: the pending deliveries of each consumer group, and the age of the oldest one (0 if there is none).
///
/// Each call replaces the previous values. Before the first call, the metrics contain no queue.
pub fn set_queue(pending: Vec<(String, u64)>, oldest_age_seconds: f64) {
    if let Some(instruments) = instruments() {
        *instruments.queue.lock() = Some(Queue { pending, oldest_age_seconds });
    }
}

/// Counts an event stream as open until the result is dropped.
pub fn stream_opened() -> OpenStream {
    if let Some(instruments) = instruments() {
        instruments.streams.add(1, &[]);
    }
    OpenStream(())
}

/// An open event stream.
#[must_use = "the stream counts as open while this lives"]
#[derive(Debug)]
pub struct OpenStream(());

impl Drop for OpenStream {
    fn drop(&mut self) {
        if let Some(instruments) = instruments() {
            instruments.streams.add(-1, &[]);
        }
    }
}

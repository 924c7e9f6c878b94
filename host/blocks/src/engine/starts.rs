//! The times of a component's starts and calls, which decide whether its instances are made ahead
//! (`runtime/ahead.rs`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::engine::limits::LimitHit;

/// Instances are made ahead only if their start takes this long at least. For a shorter start, the work in the background would
/// cost more than a call saves when the processors are busy: Rust and C take 5 to 10 µs, and JavaScript 40 to 60.
pub(crate) const WORTH_MAKING: Duration = Duration::from_micros(50);
/// A block is hot if its previous call was less than this time ago.
const HOT: Duration = Duration::from_secs(10);
/// How long no instance is made ahead after one that could not be made.
const PAUSE: Duration = Duration::from_secs(1);

/// What this process knows of the instances of one component, from the load of its file on.
#[derive(Debug)]
pub(crate) struct Starts {
    /// The shortest time of a start, in nanoseconds. A longer one has waited for a processor, or was the first. The largest number
    /// means that no instance has started yet.
    nanos_min: AtomicU64,
    /// Whether a start did something that belongs to a call. Then no further instance is made ahead.
    are_of_calls: AtomicBool,
    /// Whether an instance that was made ahead has waited for a call.
    were_made_ahead: AtomicBool,
    times: Mutex<Times>,
}

#[derive(Debug, Default)]
struct Times {
    called: Option<Instant>,
    /// Before this moment, no instance is made ahead.
    paused_until: Option<Instant>,
}

/// What a start did that belongs to a call. So the instances of its component are not made ahead.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OfCalls {
    /// The kind of the trap, in the words of the engine.
    Trap(String),
    Limit(LimitHit),
    /// It used the block interface or `wasi:http`.
    BlockInterface,
    Log,
    Handle,
    ProcessorTime,
}

impl std::fmt::Display for OfCalls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OfCalls::Trap(trap) => write!(formatter, "its start trapped: {trap}"),
            OfCalls::Limit(limit) => write!(formatter, "its start hit a limit: {limit}"),
            OfCalls::BlockInterface => formatter.write_str("its start called the block interface or `wasi:http`"),
            OfCalls::Log => formatter.write_str("its start logged"),
            OfCalls::Handle => formatter.write_str("its start left a handle of the host open"),
            OfCalls::ProcessorTime => formatter.write_str("its start took too much processor time"),
        }
    }
}

impl Starts {
    pub(crate) fn new() -> Starts {
        Starts {
            nanos_min: AtomicU64::new(u64::MAX),
            are_of_calls: AtomicBool::new(false),
            were_made_ahead: AtomicBool::new(false),
            times: Mutex::default(),
        }
    }

    /// Notes the time of a start.
    pub(crate) fn took(&self, time: Duration) {
        self.nanos_min.fetch_min(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// From now on, each call starts its instance itself. Returns whether this is new.
    pub(crate) fn belong_to_calls(&self) -> bool {
        !self.are_of_calls.swap(true, Ordering::Relaxed)
    }

    /// Notes that an instance could not be made ahead, which is no fault of the component. The next calls do not try it again.
    pub(crate) fn pause(&self, now: Instant) {
        self.times.lock().paused_until = Some(now + PAUSE);
    }

    /// Notes that an instance that was made ahead waits.
    pub(crate) fn made_ahead(&self) {
        self.were_made_ahead.store(true, Ordering::Relaxed);
    }

    /// Whether an instance that was made ahead may wait. If none ever did, a call need not look for one.
    pub(crate) fn may_wait_ahead(&self) -> bool {
        self.were_made_ahead.load(Ordering::Relaxed)
    }

    /// Notes a call, and returns whether to make an instance ahead after it: the start takes `least` at least, the block is hot,
    /// and there is no pause.
    pub(crate) fn call(&self, now: Instant, least: Duration) -> bool {
        let nanos = self.nanos_min.load(Ordering::Relaxed);
        let is_worth_it = nanos != u64::MAX && Duration::from_nanos(nanos) >= least;
        if !is_worth_it || self.are_of_calls.load(Ordering::Relaxed) {
            return false;
        }
        let mut times = self.times.lock();
        let previous = times.called.replace(now);
        let is_hot = previous.is_some_and(|previous| now.saturating_duration_since(previous) < HOT);
        is_hot && times.paused_until.is_none_or(|until| until <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_are_made_ahead_for_hot_blocks_whose_start_is_slow() {
        let (starts, now) = (Starts::new(), Instant::now());
        let call = |seconds: u64| starts.call(now + Duration::from_secs(seconds), WORTH_MAKING);
        assert_eq!((call(0), call(1)), (false, false), "nothing is known of the start");
        starts.took(Duration::from_millis(1));
        assert_eq!((call(2), call(3), call(12)), (false, true, true));
        assert_eq!((call(22), call(23)), (false, true), "a pause of 10 seconds");
        starts.took(WORTH_MAKING);
        assert!(call(24));
        starts.took(WORTH_MAKING / 2);
        starts.took(Duration::from_secs(1));
        assert!(!call(25), "one start was quick, so the others have only waited");
    }

    #[test]
    fn nothing_is_made_ahead_once_a_start_did_what_belongs_to_a_call() {
        let (starts, now) = (Starts::new(), Instant::now());
        starts.took(WORTH_MAKING);
        assert_eq!((starts.call(now, WORTH_MAKING), starts.call(now, WORTH_MAKING)), (false, true));
        assert_eq!((starts.belong_to_calls(), starts.belong_to_calls()), (true, false), "it is reported once");
        assert!(!starts.call(now, WORTH_MAKING));
    }

    #[test]
    fn nothing_is_made_ahead_for_a_second_after_an_instance_that_could_not_be_made() {
        let (starts, now) = (Starts::new(), Instant::now());
        starts.took(WORTH_MAKING);
        let call = |millis: u64| starts.call(now + Duration::from_millis(millis), WORTH_MAKING);
        assert_eq!((call(0), call(1)), (false, true));
        starts.pause(now);
        assert_eq!((call(2), call(999), call(1000)), (false, false, true));
    }

    #[test]
    fn calls_look_for_instances_made_ahead_only_after_the_first_one() {
        let starts = Starts::new();
        assert!(!starts.may_wait_ahead());
        starts.made_ahead();
        assert!(starts.may_wait_ahead());
    }
}

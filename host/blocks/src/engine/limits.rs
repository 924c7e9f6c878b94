//! The limits of one call, and of all calls together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use wasmtime::component::ResourceTableError;

/// The maximum number of calls of host functions in one call, including those of WASI.
pub(crate) const HOST_CALLS_MAX: u32 = 10_000;
/// The maximum number of bytes that one call may log, including its standard streams.
pub(crate) const LOG_BYTES_MAX: usize = 1024 * 1024;
/// The maximum number of lines that one call may log.
pub(crate) const LOG_LINES_MAX: u32 = 10_000;
/// The maximum number of bytes that a data function may return to a guest.
pub(crate) const DATA_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The maximum number of bytes in one log line.
pub(crate) const LOG_LINE_BYTES_MAX: usize = 8 * 1024;
/// The maximum number of bytes in a call's result.
pub(crate) const RESULT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The maximum number of bytes that a guest may pass to the host at once, in a host call or as its answer.
pub(crate) const HANDED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The maximum number of handles to resources of the host in one call.
pub(crate) const HANDLES_MAX: usize = 1000;
/// The maximum number of elements in all tables of a call.
pub(crate) const TABLE_ELEMENTS_MAX: usize = 100_000;
/// The maximum number of bytes in the body of one request that a call sends, and in the response's body.
pub(crate) const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The maximum number of requests that one call may send.
pub(crate) const REQUESTS_MAX: u32 = 32;

/// The instances that no call uses may have this part of the memory of all calls.
const SPARE_SHARE: usize = 4;

/// A limit that a call has exceeded. The call fails, and the error names the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitHit {
    HostCalls,
    LogBytes,
    LogLine,
    LogLines,
    DataBytes,
    Memory,
    AllMemory,
    Tables,
    Handles,
    HandedBytes,
    Result,
    Requests,
    RequestBytes,
    AnswerBytes,
}

impl LimitHit {
    /// The limit's name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            LimitHit::HostCalls => "host_calls",
            LimitHit::LogBytes => "log_bytes",
            LimitHit::LogLine => "log_line",
            LimitHit::LogLines => "log_lines",
            LimitHit::DataBytes => "data_bytes",
            LimitHit::Memory => "memory",
            LimitHit::AllMemory => "all_memory",
            LimitHit::Tables => "tables",
            LimitHit::Handles => "handles",
            LimitHit::HandedBytes => "handed_bytes",
            LimitHit::Result => "result",
            LimitHit::Requests => "requests",
            LimitHit::RequestBytes => "request_bytes",
            LimitHit::AnswerBytes => "answer_bytes",
        }
    }
}

impl std::fmt::Display for LimitHit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body = BODY_BYTES_MAX;
        match self {
            LimitHit::HostCalls => write!(formatter, "the block made more than {HOST_CALLS_MAX} host calls"),
            LimitHit::LogBytes => write!(formatter, "the block logged more than {LOG_BYTES_MAX} bytes"),
            LimitHit::LogLine => write!(formatter, "the block logged a line of more than {LOG_LINE_BYTES_MAX} bytes"),
            LimitHit::LogLines => write!(formatter, "the block logged more than {LOG_LINES_MAX} lines"),
            LimitHit::DataBytes => write!(formatter, "the block asked for more than {DATA_BYTES_MAX} bytes of data at once"),
            LimitHit::Memory => formatter.write_str("the block asked for more memory than one call may have"),
            LimitHit::AllMemory => {
                formatter.write_str("all running calls together have as much memory as this server gives them")
            }
            LimitHit::Tables => formatter.write_str("the block asked for larger tables than one call may have"),
            LimitHit::Handles => write!(formatter, "the block holds more than {HANDLES_MAX} handles of the host"),
            LimitHit::HandedBytes => write!(formatter, "the block handed the host more than {HANDED_BYTES_MAX} bytes at once"),
            LimitHit::Result => write!(formatter, "the result is larger than {RESULT_BYTES_MAX} bytes"),
            LimitHit::Requests => write!(formatter, "the block sent more than {REQUESTS_MAX} requests"),
            LimitHit::RequestBytes => write!(formatter, "the block sent a request of more than {body} bytes"),
            LimitHit::AnswerBytes => write!(formatter, "the block got an answer of more than {body} bytes"),
        }
    }
}

impl std::error::Error for LimitHit {}

impl LimitHit {
    /// The limit that caused an error of the engine, which enforces some limits for the host.
    pub(crate) fn of_engine(error: &wasmtime::Error) -> Option<LimitHit> {
        if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) {
            return Some(LimitHit::Handles);
        }
        // This error does not have its own type.
        format!("{error:#}").contains("fuel allocated for hostcalls").then_some(LimitHit::HandedBytes)
    }
}

/// The first limit that a call exceeded in a function that cannot fail itself. The call ends at the next tick of the `Ticker`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tripped(Arc<Mutex<Option<LimitHit>>>);

impl Tripped {
    pub(crate) fn trip(&self, limit: LimitHit) {
        self.0.lock().get_or_insert(limit);
    }

    pub(crate) fn hit(&self) -> Option<LimitHit> {
        *self.0.lock()
    }
}

/// Instances that no call uses at the moment, and that go first if a call lacks memory.
pub(crate) trait SpareInstances: Send + Sync {
    /// Drops one instance whose memory counts in this budget, or waits a moment while others are being dropped. Returns `false`
    /// if no instance has memory of this budget.
    fn drop_one(&self, budget: &MemoryBudget) -> bool;
}

/// The linear memory that calls share. The calls of a block share the block's part, and all blocks share the complete budget.
#[derive(Clone, Debug)]
pub(crate) struct MemoryBudget(Arc<Budget>);

#[derive(Debug)]
struct Budget {
    taken: AtomicUsize,
    /// The part of `taken` that instances have which no call uses.
    spare: AtomicUsize,
    bytes_max: usize,
    whole: Option<MemoryBudget>,
    /// The instances that go first. The complete budget has them.
    instances: Option<Weak<dyn SpareInstances>>,
    /// It is locked while memory of the complete budget is taken for an instance that is made ahead. So two such instances cannot
    /// take memory that is enough for only one of them.
    ahead: Mutex<()>,
}

impl MemoryBudget {
    pub(crate) fn new(bytes_max: usize) -> MemoryBudget {
        MemoryBudget::made(bytes_max, None, None)
    }

    /// A budget in which these instances count, but go first.
    pub(crate) fn with_spare(bytes_max: usize, instances: Weak<dyn SpareInstances>) -> MemoryBudget {
        MemoryBudget::made(bytes_max, None, Some(instances))
    }

    /// A part of this budget. Memory that is taken from the part is also taken from the complete budget.
    pub(crate) fn part(&self, bytes_max: usize) -> MemoryBudget {
        MemoryBudget::made(bytes_max, Some(self.clone()), None)
    }

    fn made(bytes_max: usize, whole: Option<MemoryBudget>, instances: Option<Weak<dyn SpareInstances>>) -> MemoryBudget {
        let (taken, spare) = (AtomicUsize::new(0), AtomicUsize::new(0));
        MemoryBudget(Arc::new(Budget { taken, spare, bytes_max, whole, instances, ahead: Mutex::new(()) }))
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.0.bytes_max
    }

    /// Takes memory. Returns `false` if too little is left.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let add = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= self.0.bytes_max);
        if self.0.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_err() {
            return false;
        }
        let is_there = self.0.whole.as_ref().is_none_or(|whole| whole.take(bytes));
        if !is_there {
            self.0.taken.fetch_sub(bytes, Ordering::Relaxed);
        }
        is_there
    }

    /// Takes memory for a call. If too little is left, instances that no call uses are dropped. Returns `false`, and drops none,
    /// if that would not be enough.
    fn take_for_call(&self, bytes: usize) -> bool {
        while !self.take(bytes) {
            if !self.has_left(bytes) {
                // Another thread may have taken memory, and given it back because the complete budget had too little.
                return self.take(bytes);
            }
            // If no budget is short any more, memory was given back meanwhile, and the next round takes it.
            if let Some(short) = self.short_of(bytes)
                && !short.instances().is_some_and(|instances| instances.drop_one(&short))
            {
                // Another thread may have dropped the last one a moment ago.
                return self.take(bytes);
            }
        }
        true
    }

    /// Takes memory for an instance that is made ahead of calls, which has `before` bytes already. See [`CallMemory::take_ahead`].
    fn take_ahead(&self, before: usize, bytes: usize, memory_of_a_call: usize) -> bool {
        // Memory that is taken first and given back could make a call fail meanwhile. So this looks first, one at a time.
        let _one_at_a_time = self.complete().0.ahead.lock();
        before.saturating_add(bytes) <= self.room_for_spare()
            && self.has_left(memory_of_a_call.saturating_add(bytes))
            && self.take(bytes)
    }

    /// The complete budget.
    fn complete(&self) -> &MemoryBudget {
        self.0.whole.as_ref().map_or(self, MemoryBudget::complete)
    }

    /// This budget or the complete one, if it has too little left.
    fn short_of(&self, bytes: usize) -> Option<MemoryBudget> {
        let taken = self.0.taken.load(Ordering::Relaxed).checked_add(bytes);
        match taken.is_some_and(|taken| taken <= self.0.bytes_max) {
            false => Some(self.clone()),
            true => self.0.whole.as_ref().and_then(|whole| whole.short_of(bytes)),
        }
    }

    fn instances(&self) -> Option<Arc<dyn SpareInstances>> {
        match &self.0.whole {
            Some(whole) => whole.instances(),
            None => self.0.instances.as_ref().and_then(Weak::upgrade),
        }
    }

    /// Whether memory of this budget also counts in `other`.
    fn counts_in(&self, other: &MemoryBudget) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.whole.as_ref().is_some_and(|whole| whole.counts_in(other))
    }

    /// Whether nothing is taken.
    pub(crate) fn is_unused(&self) -> bool {
        self.0.taken.load(Ordering::Relaxed) == 0
    }

    fn add_spare(&self, bytes: usize) {
        self.0.spare.fetch_add(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.0.whole {
            whole.add_spare(bytes);
        }
    }

    fn end_spare(&self, bytes: usize) {
        // A thread that reads this number with `Acquire` then also sees that the memory was given back.
        self.0.spare.fetch_sub(bytes, Ordering::Release);
        if let Some(whole) = &self.0.whole {
            whole.end_spare(bytes);
        }
    }

    /// Whether instances that no call uses have memory of this budget. An instance that is being dropped has it until the memory
    /// is given back.
    pub(crate) fn has_spare(&self) -> bool {
        self.0.spare.load(Ordering::Acquire) > 0
    }

    /// The number of bytes that further instances may have which no call uses, in the complete budget.
    fn room_for_spare(&self) -> usize {
        match &self.0.whole {
            Some(whole) => whole.room_for_spare(),
            None => (self.0.bytes_max / SPARE_SHARE).saturating_sub(self.0.spare.load(Ordering::Acquire)),
        }
    }

    /// Whether so much memory is left for calls, in this budget and in the complete budget.
    pub(crate) fn has_left(&self, bytes: usize) -> bool {
        // In this order, memory that is given back meanwhile makes too much seem left rather than too little.
        let spare = self.0.spare.load(Ordering::Acquire);
        let taken = self.0.taken.load(Ordering::Relaxed).saturating_sub(spare);
        let left = self.0.bytes_max.saturating_sub(taken);
        left >= bytes && self.0.whole.as_ref().is_none_or(|whole| whole.has_left(bytes))
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.0.taken.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.0.whole {
            whole.give_back(bytes);
        }
    }
}

/// The linear memory of one instance, in all its memories together. It counts in a budget until this is dropped.
#[derive(Debug)]
pub(crate) struct CallMemory {
    budget: MemoryBudget,
    bytes: AtomicUsize,
}

impl CallMemory {
    pub(crate) fn new(budget: MemoryBudget) -> Arc<CallMemory> {
        Arc::new(CallMemory { budget, bytes: AtomicUsize::new(0) })
    }

    /// Whether this call may keep its memory a little longer. It may if the next call has room for all the memory that a call may
    /// have, `memory_of_a_call` bytes.
    pub(crate) fn may_wait(&self, memory_of_a_call: usize) -> bool {
        self.budget.has_left(memory_of_a_call)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The number of bytes that further instances may have which no call uses.
    pub(crate) fn room_for_spare(&self) -> usize {
        self.budget.room_for_spare()
    }

    /// Takes memory. Returns `false` if the budget has too little left, even without the instances that no call uses.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let is_there = self.budget.take_for_call(bytes);
        if is_there {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        is_there
    }

    /// Takes memory for an instance that is made ahead of calls. Returns `false` if other instances would have to go for it, if it
    /// would get more than instances may have which no call uses, or if afterwards a call would not have room for all the memory
    /// that it may have, `memory_of_a_call` bytes.
    pub(crate) fn take_ahead(&self, bytes: usize, memory_of_a_call: usize) -> bool {
        let is_there = self.budget.take_ahead(self.bytes(), bytes, memory_of_a_call);
        if is_there {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        is_there
    }

    /// Gives back memory that was taken, but that the call did not get.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.budget.give_back(bytes);
    }
}

impl Drop for CallMemory {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes());
    }
}

/// The memory of an instance that no call uses. It still counts, but calls take it before they fail.
#[derive(Debug)]
pub(crate) struct SpareMemory {
    /// It is dropped first, so that the memory is spare until it is given back.
    memory: Arc<CallMemory>,
    counted: CountedSpare,
}

/// Bytes that count as spare in a budget.
#[derive(Debug)]
struct CountedSpare {
    budget: MemoryBudget,
    bytes: usize,
}

impl SpareMemory {
    /// The memory must not grow while this exists.
    pub(crate) fn new(memory: Arc<CallMemory>) -> SpareMemory {
        let counted = CountedSpare { budget: memory.budget.clone(), bytes: memory.bytes() };
        counted.budget.add_spare(counted.bytes);
        SpareMemory { memory, counted }
    }

    pub(crate) fn counts_in(&self, budget: &MemoryBudget) -> bool {
        self.memory.budget.counts_in(budget)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.counted.bytes
    }
}

impl Drop for CountedSpare {
    fn drop(&mut self) {
        self.budget.end_spare(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_kept_and_refilled() {
        let budget = MemoryBudget::new(100);
        assert!(budget.take(60) && !budget.take(41) && budget.take(40) && !budget.take(1) && !budget.take(usize::MAX));
        budget.give_back(60);
        assert!(budget.take(60));
    }

    #[test]
    fn a_part_leaves_the_rest_to_others() {
        let whole = MemoryBudget::new(100);
        let (one, other) = (whole.part(75), whole.part(75));
        assert!(one.take(30) && one.has_left(45) && !one.has_left(46), "of the part");
        assert!(other.has_left(70) && !other.has_left(71), "of the complete budget");
        assert!(other.take(25) && one.take(45) && one.has_left(0) && !one.has_left(1) && !other.has_left(1));
        assert!(!one.take(1) && !other.take(1));
        one.give_back(50);
        assert!(other.take(50) && !one.take(1));
    }

    #[test]
    fn a_call_keeps_its_memory_longer_only_if_a_whole_call_has_room() {
        // The memory of all calls is that of one, of two and of four calls.
        for (whole, most_kept) in [(100, 0), (200, 50), (400, 200)] {
            let part = MemoryBudget::new(whole).part((whole / 4 * 3).max(100));
            let ended = CallMemory::new(part.clone());
            assert!(ended.take(most_kept) && ended.may_wait(100), "{whole}");
            let next = CallMemory::new(part.clone());
            assert!(next.take(100), "{whole}");
            drop(next);
            assert!(ended.take(1) && !ended.may_wait(100), "{whole}");
        }
    }

    #[test]
    fn an_instance_that_is_made_ahead_takes_only_what_costs_no_call_anything() {
        let whole = MemoryBudget::new(400);
        let part = whole.part(300);
        let ahead = CallMemory::new(part.clone());
        assert!(ahead.take_ahead(100, 100) && !ahead.take_ahead(1, 100), "a quarter of the complete budget");
        let spare = SpareMemory::new(ahead);
        assert!(!CallMemory::new(part.clone()).take_ahead(1, 100), "the quarter is full");
        drop(spare);
        let call = CallMemory::new(part.clone());
        assert!(call.take(150));
        let second = CallMemory::new(part.clone());
        assert!(second.take_ahead(50, 100) && !second.take_ahead(1, 100), "a call has room in the part");
        assert_eq!((second.bytes(), call.take(100), call.take(1)), (50, true, false));
        drop((call, second));
        assert!(whole.is_unused());
    }

    #[test]
    fn the_memory_of_a_call_counts_until_nobody_holds_it() {
        let budget = MemoryBudget::new(100);
        let memory = CallMemory::new(budget.clone());
        assert!(memory.take(60) && !memory.take(41) && memory.take(40));
        memory.give_back(40);
        assert_eq!(memory.bytes(), 60);
        let held = Arc::clone(&memory);
        drop(memory);
        assert!(!budget.take(41) && budget.take(40));
        drop(held);
        assert!(budget.take(60) && !budget.take(1));
    }
}

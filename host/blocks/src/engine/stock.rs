//! The instances that are kept for further calls. No call uses them, and each waits for a call of its own block and kind.
//!
//! A kept instance never costs another call anything: the pool has room for all of them besides the running calls, and a call
//! that lacks memory gets theirs.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::engine::KEPT_MAX;
use crate::engine::call_slots::CallKind;
use crate::engine::limits::{CallMemory, MemoryBudget, SpareInstances, SpareMemory};

/// The maximum number of instances of one block that are kept.
const KEPT_OF_A_BLOCK_MAX: usize = KEPT_MAX as usize / 2;
/// How often instances that have waited too long are dropped.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Instances of the type `T`, of active blocks of the type `B`. A change of a block makes another `Arc` of it.
pub(crate) struct Stock<B, T>(Mutex<State<B, T>>);

struct State<B, T> {
    /// The blocks of which instances are kept.
    serving: Vec<Arc<B>>,
    /// The instances that wait, the longest first.
    waiting: Vec<Waiting<B, T>>,
    /// The number of instances that were taken out to be dropped, and are not dropped yet. They still have memory, and their
    /// place in the pool.
    leaving: usize,
    /// Whether something calls [`Stock::sweep`] regularly.
    is_swept: bool,
}

struct Waiting<B, T> {
    kept: T,
    memory: SpareMemory,
    block: Arc<B>,
    kind: CallKind,
    until: Instant,
}

/// Whether a call may use an instance that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    Yes,
    No,
    /// No call may use it any more.
    Never,
}

/// What becomes of an instance that was given to the stock.
pub(crate) struct Put<T> {
    /// The instance itself, or another one that gave it its place. The caller drops it.
    pub(crate) displaced: Option<T>,
    /// Whether the caller has to begin to call [`Stock::sweep`] regularly.
    pub(crate) begins_sweeps: bool,
}

impl<B, T> Stock<B, T> {
    pub(crate) fn new() -> Stock<B, T> {
        Stock(Mutex::new(State { serving: Vec::new(), waiting: Vec::new(), leaving: 0, is_swept: false }))
    }

    /// Takes an instance out for a call. The one that waited the shortest comes first, so that the others can go.
    pub(crate) fn take(&self, block: &Arc<B>, kind: CallKind, fit: impl Fn(&T) -> Fit) -> Option<T> {
        let now = Instant::now();
        let mut state = self.0.lock();
        let (mut found, mut ended) = (None, Vec::new());
        let mut place = state.waiting.len();
        while place > 0 {
            place -= 1;
            let waiting = &state.waiting[place];
            if !Arc::ptr_eq(&waiting.block, block) || waiting.until <= now {
                continue;
            }
            match fit(&waiting.kept) {
                Fit::Yes if found.is_none() && waiting.kind == kind => found = Some(state.waiting.remove(place).kept),
                Fit::Never => ended.push(state.waiting.remove(place)),
                Fit::Yes | Fit::No => {}
            }
        }
        state.leaving += ended.len();
        drop(state);
        self.drop_left(ended);
        found
    }

    /// Keeps an instance until a moment. Its memory must not grow meanwhile.
    pub(crate) fn put(&self, block: &Arc<B>, kind: CallKind, until: Instant, memory: Arc<CallMemory>, kept: T) -> Put<T> {
        let mut state = self.0.lock();
        // The block may have changed during the call.
        if !state.serving.iter().any(|serving| Arc::ptr_eq(serving, block)) {
            return Put { displaced: Some(kept), begins_sweeps: false };
        }
        let is_of_block = |waiting: &Waiting<B, T>| Arc::ptr_eq(&waiting.block, block);
        let has_room = state.waiting.iter().filter(|waiting| is_of_block(waiting)).count() < KEPT_OF_A_BLOCK_MAX;
        let oldest = match has_room {
            false => state.waiting.iter().position(is_of_block),
            true if state.waiting.len() + state.leaving < KEPT_MAX as usize => None,
            true if state.waiting.is_empty() => return Put { displaced: Some(kept), begins_sweeps: false },
            true => Some(0),
        };
        let displaced = oldest.map(|place| state.waiting.remove(place).kept);
        state.waiting.push(Waiting { kept, memory: SpareMemory::new(memory), block: Arc::clone(block), kind, until });
        let begins_sweeps = !std::mem::replace(&mut state.is_swept, true);
        Put { displaced, begins_sweeps }
    }

    /// Drops the instances that have waited too long. Returns `false` if none are left, so that the calls of this can end.
    pub(crate) fn sweep(&self) -> bool {
        let now = Instant::now();
        let mut state = self.0.lock();
        let gone: Vec<_> = state.waiting.extract_if(.., |waiting| waiting.until <= now).collect();
        state.leaving += gone.len();
        state.is_swept = !state.waiting.is_empty();
        let goes_on = state.is_swept;
        drop(state);
        self.drop_left(gone);
        goes_on
    }

    /// From now on, keeps only instances of these blocks. No call gets one of the others, and the next sweep drops them.
    pub(crate) fn retain(&self, serving: Vec<Arc<B>>) {
        let now = Instant::now();
        let mut state = self.0.lock();
        let is_gone = |waiting: &Waiting<B, T>| !serving.iter().any(|serving| Arc::ptr_eq(serving, &waiting.block));
        for waiting in state.waiting.iter_mut().filter(|waiting| is_gone(waiting)) {
            waiting.until = now;
        }
        state.serving = serving;
    }

    fn drop_left(&self, gone: Vec<Waiting<B, T>>) {
        let count = gone.len();
        if count > 0 {
            drop(gone);
            self.0.lock().leaving -= count;
        }
    }
}

impl<B: Send + Sync, T: Send> SpareInstances for Stock<B, T> {
    fn drop_one(&self, budget: &MemoryBudget) -> bool {
        let mut state = self.0.lock();
        let Some(place) = state.waiting.iter().position(|waiting| waiting.memory.counts_in(budget)) else {
            let are_leaving = state.leaving > 0;
            drop(state);
            if are_leaving {
                // Other threads are giving back memory. They wait for nothing.
                std::thread::yield_now();
            }
            return are_leaving;
        };
        let gone = state.waiting.remove(place);
        state.leaving += 1;
        drop(state);
        self.drop_left(vec![gone]);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;

    /// A kept instance, which has its memory as long as it exists.
    struct Kept {
        number: u32,
        _memory: Arc<CallMemory>,
    }

    type Stocked = Stock<&'static str, Kept>;

    /// A stock, a budget in which its instances count, and the active block.
    fn stock(bytes_max: usize) -> (Arc<Stocked>, MemoryBudget, Arc<&'static str>) {
        let stock = Arc::new(Stocked::new());
        let weak: Weak<Stocked> = Arc::downgrade(&stock);
        let budget = MemoryBudget::with_spare(bytes_max, weak);
        let block = Arc::new("block");
        stock.retain(vec![Arc::clone(&block)]);
        (stock, budget, block)
    }

    fn put(stock: &Stocked, budget: &MemoryBudget, block: &Arc<&'static str>, kind: CallKind, number: u32) -> Option<u32> {
        let memory = CallMemory::new(budget.clone());
        assert!(memory.take(10));
        let until = Instant::now() + Duration::from_secs(60);
        let kept = Kept { number, _memory: Arc::clone(&memory) };
        stock.put(block, kind, until, memory, kept).displaced.map(|displaced| displaced.number)
    }

    fn take(stock: &Stocked, block: &Arc<&'static str>, kind: CallKind) -> Option<u32> {
        stock.take(block, kind, |_| Fit::Yes).map(|kept| kept.number)
    }

    #[test]
    fn an_instance_waits_for_its_own_block_and_kind() {
        let (stock, budget, block) = stock(1000);
        let again = Arc::new("block");
        assert_eq!(put(&stock, &budget, &block, CallKind::Action, 1), None);
        assert_eq!(put(&stock, &budget, &block, CallKind::Action, 2), None);
        assert_eq!((take(&stock, &block, CallKind::Hook), take(&stock, &block, CallKind::EventHandler)), (None, None));
        assert_eq!(take(&stock, &again, CallKind::Action), None);
        assert_eq!((take(&stock, &block, CallKind::Action), take(&stock, &block, CallKind::Action)), (Some(2), Some(1)));
        assert!(budget.is_unused());
        // A block that changed during the call keeps nothing, and neither does one that changes later.
        assert_eq!(put(&stock, &budget, &again, CallKind::Action, 3), Some(3));
        assert_eq!(put(&stock, &budget, &block, CallKind::Action, 4), None);
        stock.retain(vec![again]);
        assert_eq!(take(&stock, &block, CallKind::Action), None);
        assert!(!stock.sweep() && budget.is_unused());
    }

    #[test]
    fn what_no_call_may_use_any_more_goes_at_once() {
        let (stock, budget, block) = stock(1000);
        for number in 1..=3 {
            put(&stock, &budget, &block, CallKind::Hook, number);
        }
        let fit = |kept: &Kept| match kept.number {
            1 => Fit::Never,
            2 => Fit::Yes,
            _ => Fit::No,
        };
        assert_eq!(stock.take(&block, CallKind::Hook, fit).map(|kept| kept.number), Some(2));
        assert_eq!((take(&stock, &block, CallKind::Hook), take(&stock, &block, CallKind::Hook)), (Some(3), None));
        assert_eq!(stock.0.lock().leaving, 0);
    }

    #[test]
    fn the_stock_of_a_block_and_of_all_is_bounded() {
        let (stock, budget, block) = stock(1 << 20);
        let others: Vec<_> = ["second", "third"].map(Arc::new).into();
        stock.retain([&block, &others[0], &others[1]].map(Arc::clone).into());
        for number in 0..32 {
            assert_eq!(put(&stock, &budget, &block, CallKind::Action, number), None);
        }
        assert_eq!(put(&stock, &budget, &block, CallKind::Action, 32), Some(0), "the longest of its block");
        for number in 100..132 {
            assert_eq!(put(&stock, &budget, &others[0], CallKind::Action, number), None);
        }
        assert_eq!(put(&stock, &budget, &others[1], CallKind::Action, 200), Some(1), "the longest of all");
        assert_eq!(stock.0.lock().waiting.len(), KEPT_MAX as usize);
    }

    #[test]
    fn a_call_that_lacks_memory_gets_that_of_kept_instances() {
        let (stock, whole, block) = stock(100);
        let (one, other) = (whole.part(60), whole.part(60));
        for number in 0..3 {
            put(&stock, &one, &block, CallKind::Action, number);
            put(&stock, &other, &block, CallKind::Action, number + 10);
        }
        assert!(one.has_left(60) && other.has_left(60), "what is spare counts as left");
        let waiting = || stock.0.lock().waiting.iter().map(|waiting| waiting.kept.number).collect::<Vec<_>>();
        let call = CallMemory::new(one.clone());
        // Of the part that is short, the longest goes, and no other.
        assert!(call.take(40));
        assert_eq!(waiting(), [10, 1, 11, 2, 12]);
        assert!(call.take(20));
        assert_eq!(waiting(), [10, 11, 12]);
        assert!(!call.take(1), "the block has no more");
        assert_eq!(waiting(), [10, 11, 12]);
        let second = CallMemory::new(other.clone());
        assert!(second.take(40) && !second.take(1));
        assert_eq!(waiting(), [0; 0]);
        assert_eq!(stock.0.lock().leaving, 0);
        drop((call, second));
        assert!(whole.is_unused() && whole.has_left(100));
    }

    #[test]
    fn an_instance_that_waits_too_long_goes() {
        let (stock, budget, block) = stock(1000);
        let put = |number: u32, until: Instant| {
            let memory = CallMemory::new(budget.clone());
            assert!(memory.take(10));
            let kept = Kept { number, _memory: Arc::clone(&memory) };
            stock.put(&block, CallKind::Action, until, memory, kept).begins_sweeps
        };
        let now = Instant::now();
        assert!(put(1, now + Duration::from_secs(60)));
        assert!(!put(2, now), "the first one has begun them");
        assert!(stock.sweep(), "the first one still waits");
        assert_eq!((take(&stock, &block, CallKind::Action), take(&stock, &block, CallKind::Action)), (Some(1), None));
        assert!(!stock.sweep());
        assert!(put(3, now));
        assert_eq!(take(&stock, &block, CallKind::Action), None, "its time is over, although it is still there");
        assert!(!budget.is_unused());
        assert!(!stock.sweep() && budget.is_unused());
    }
}

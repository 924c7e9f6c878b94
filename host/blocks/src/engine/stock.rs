//! The instances that wait for calls of their block. No call uses them. A kept one has served calls, and waits for a further one
//! of the same kind. One that was made ahead has served none, and waits for a call of any kind, as its only one.
//!
//! An instance that waits never costs another call anything: the pool has room for all of them besides the running calls, they
//! have only a part of the memory of all calls, and a call that lacks memory gets theirs. One that is made ahead has its place in
//! the pool before it is made, and no other instance goes for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::engine::KEPT_MAX;
use crate::engine::call_slots::CallKind;
use crate::engine::limits::{CallMemory, MemoryBudget, SpareInstances, SpareMemory};

/// The maximum number of instances of one block that wait, or are being made ahead.
const KEPT_OF_A_BLOCK_MAX: usize = KEPT_MAX as usize / 2;
/// The maximum number of instances of one block that were made ahead and wait, or are being made.
const AHEAD_OF_A_BLOCK_MAX: usize = 2;
/// How often instances that have waited too long are dropped.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Instances of the type `T`, of active blocks of the type `B`. A change of a block makes another `Arc` of it.
pub(crate) struct Stock<B, T> {
    state: Mutex<State<B, T>>,
    /// The number of instances that were taken out to be dropped, and are not dropped yet. They still have memory, and their
    /// place in the pool.
    leaving: AtomicUsize,
}

struct State<B, T> {
    /// The blocks of which instances may wait.
    serving: Vec<Arc<B>>,
    /// The instances that wait, the longest first.
    waiting: Vec<Waiting<B, T>>,
    /// The block of each instance that is being made ahead. Each of them has a place in the pool.
    making: Vec<Arc<B>>,
    /// Refers to the [`Sweeper`] as long as there is one.
    sweeper: Weak<()>,
}

struct Waiting<B, T> {
    kept: T,
    memory: SpareMemory,
    block: Arc<B>,
    /// The kind of calls that may use it. `None` if it was made ahead: then no call has used it, and one of any kind may.
    kind: Option<CallKind>,
    /// From this moment on, no call may use it.
    until: Instant,
}

impl<B, T> Waiting<B, T> {
    /// Whether it was made ahead, and a call of this block may use it.
    fn is_ahead_of(&self, block: &Arc<B>, now: Instant) -> bool {
        self.kind.is_none() && Arc::ptr_eq(&self.block, block) && self.until > now
    }
}

impl<B, T> State<B, T> {
    fn is_serving(&self, block: &Arc<B>) -> bool {
        self.serving.iter().any(|serving| Arc::ptr_eq(serving, block))
    }

    /// The number of instances of the block that are being made ahead.
    fn making_of(&self, block: &Arc<B>) -> usize {
        self.making.iter().filter(|making| Arc::ptr_eq(making, block)).count()
    }

    /// Whether one more instance of the block may wait, besides those that are being made ahead.
    fn has_room_of(&self, block: &Arc<B>) -> bool {
        let waiting = self.waiting.iter().filter(|waiting| Arc::ptr_eq(&waiting.block, block)).count();
        waiting + self.making_of(block) < KEPT_OF_A_BLOCK_MAX
    }

    /// The right to sweep, if no task has it.
    fn sweeper(&mut self) -> Option<Sweeper> {
        if self.sweeper.strong_count() > 0 {
            return None;
        }
        let alive = Arc::new(());
        self.sweeper = Arc::downgrade(&alive);
        Some(Sweeper { _alive: alive })
    }
}

/// The place in the pool of an instance that is being made ahead. The place is free again when this is dropped, so an instance
/// that is not given to the stock has to be dropped before.
pub(crate) struct Making<B, T> {
    stock: Arc<Stock<B, T>>,
    block: Arc<B>,
    making: usize,
}

impl<B, T> Making<B, T> {
    /// The number of instances of all blocks that were being made ahead when this one got its place, including this one. If two
    /// begin at the same time, only one of them counts both. So the other one can be made if one processor is free.
    pub(crate) fn making(&self) -> usize {
        self.making
    }

    /// Lets the instance wait until a moment for a call of its block. Its memory must not grow meanwhile. If there is a sweeper,
    /// the caller has to begin a task that calls [`Stock::sweep_one`] regularly.
    ///
    /// # Errors
    /// The place and the instance, if the block has changed, or if the memory for instances that wait has no room: no other
    /// instance goes for it. The caller drops the instance before its place.
    pub(crate) fn put(self, until: Instant, memory: Arc<CallMemory>, made: T) -> Result<Option<Sweeper>, (Self, T)> {
        let mut state = self.stock.state.lock();
        if !state.is_serving(&self.block) || memory.bytes() > memory.room_for_spare() {
            drop(state);
            return Err((self, made));
        }
        let memory = SpareMemory::new(memory);
        state.waiting.push(Waiting { kept: made, memory, block: Arc::clone(&self.block), kind: None, until });
        // The instance has two places until this is dropped, for a moment. So there is never one too few.
        Ok(state.sweeper())
    }
}

impl<B, T> Drop for Making<B, T> {
    fn drop(&mut self) {
        let mut state = self.stock.state.lock();
        if let Some(place) = state.making.iter().position(|making| Arc::ptr_eq(making, &self.block)) {
            state.making.swap_remove(place);
        }
    }
}

/// Counts an instance that was taken out to be dropped until this is dropped, even if the drop of the instance panics.
struct Leaving<'a>(&'a AtomicUsize);

impl<'a> Leaving<'a> {
    fn begin(count: &'a AtomicUsize) -> Leaving<'a> {
        count.fetch_add(1, Ordering::Relaxed);
        Leaving(count)
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        // A thread that reads this number with `Acquire` then also finds the place in the pool free.
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Whether a call may use an instance that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    Yes,
    No,
    /// No call may use it any more.
    Never,
}

/// The right to call [`Stock::sweep_one`], for the task that calls it regularly. At most one task has it. When this task ends in
/// any way, the next instance that is kept begins another one.
#[derive(Debug)]
pub(crate) struct Sweeper {
    _alive: Arc<()>,
}

/// The result of a look for an instance that has waited too long. The caller can go on with the sweeper.
#[derive(Debug)]
pub(crate) enum Swept {
    /// One was found, and is dropped. There may be more.
    One(Sweeper),
    /// None was found, but others wait.
    Others(Sweeper),
    /// No instance waits, so the sweeps end.
    All,
}

/// What becomes of an instance that was given to the stock.
pub(crate) struct Put<T> {
    /// The instance itself, or another one that gave it its place. The caller drops it.
    pub(crate) displaced: Option<T>,
    /// If there is one, the caller has to begin a task that calls [`Stock::sweep_one`] regularly.
    pub(crate) sweeper: Option<Sweeper>,
}

impl<B, T> Stock<B, T> {
    pub(crate) fn new() -> Stock<B, T> {
        let state = State { serving: Vec::new(), waiting: Vec::new(), making: Vec::new(), sweeper: Weak::new() };
        Stock { state: Mutex::new(state), leaving: AtomicUsize::new(0) }
    }

    /// Takes a kept instance out for a call. The one that waited the shortest comes first, so that the others can go. Those that no
    /// call may use any more go with the next sweeps.
    ///
    /// `fit` runs for each instance of the block while no other call can take one, so it has to be quick.
    pub(crate) fn take(&self, block: &Arc<B>, kind: CallKind, mut fit: impl FnMut(&mut T) -> Fit) -> Option<T> {
        let mut state = self.state.lock();
        let now = Instant::now();
        let mut found = None;
        for (place, waiting) in state.waiting.iter_mut().enumerate().rev() {
            if !Arc::ptr_eq(&waiting.block, block) || waiting.until <= now {
                continue;
            }
            let Some(kind_of_kept) = waiting.kind else { continue };
            match fit(&mut waiting.kept) {
                Fit::Yes if found.is_none() && kind_of_kept == kind => found = Some(place),
                Fit::Never => waiting.until = now,
                Fit::Yes | Fit::No => {}
            }
        }
        found.map(|place| state.waiting.remove(place).kept)
    }

    /// Takes an instance that was made ahead out for a call of its block, the one that waited the shortest.
    pub(crate) fn take_ahead(&self, block: &Arc<B>) -> Option<T> {
        let mut state = self.state.lock();
        let now = Instant::now();
        let place = state.waiting.iter().rposition(|waiting| waiting.is_ahead_of(block, now))?;
        Some(state.waiting.remove(place).kept)
    }

    /// Takes a place in the pool for an instance of the block that is to be made ahead. `None` if the block may have no more of
    /// them, or if no place is free: no other instance goes for it.
    pub(crate) fn reserve(self: &Arc<Self>, block: &Arc<B>) -> Option<Making<B, T>> {
        let mut state = self.state.lock();
        let now = Instant::now();
        let made = state.waiting.iter().filter(|waiting| waiting.is_ahead_of(block, now)).count();
        let is_one_of_few = made + state.making_of(block) < AHEAD_OF_A_BLOCK_MAX;
        let may_have = is_one_of_few && state.has_room_of(block) && self.has_place(&state);
        if !state.is_serving(block) || !may_have {
            return None;
        }
        state.making.push(Arc::clone(block));
        let making = state.making.len();
        Some(Making { stock: Arc::clone(self), block: Arc::clone(block), making })
    }

    /// Whether a place in the pool is free for one more instance that waits.
    fn has_place(&self, state: &State<B, T>) -> bool {
        state.waiting.len() + state.making.len() + self.leaving.load(Ordering::Acquire) < KEPT_MAX as usize
    }

    /// Keeps an instance until a moment. Its memory must not grow meanwhile.
    ///
    /// If there is no room, another one goes for it: one that no call may use any more, or the one that has waited the longest.
    /// If that gives too little room, the instance itself goes.
    pub(crate) fn put(&self, block: &Arc<B>, kind: CallKind, until: Instant, memory: Arc<CallMemory>, kept: T) -> Put<T> {
        let mut state = self.state.lock();
        let now = Instant::now();
        let refused = |kept: T| Put { displaced: Some(kept), sweeper: None };
        // The block may have changed during the call.
        if !state.is_serving(block) {
            return refused(kept);
        }
        let is_of_block = |waiting: &Waiting<B, T>| Arc::ptr_eq(&waiting.block, block);
        let is_retired = |waiting: &Waiting<B, T>| waiting.until <= now;
        let (bytes, room) = (memory.bytes(), memory.room_for_spare());
        let goes = match state.has_room_of(block) {
            true if self.has_place(&state) && bytes <= room => None,
            true => Some(state.waiting.iter().position(is_retired).unwrap_or(0)),
            false => {
                let retired = state.waiting.iter().position(|waiting| is_of_block(waiting) && is_retired(waiting));
                retired.or_else(|| state.waiting.iter().position(is_of_block))
            }
        };
        let gives_room =
            |place: usize| state.waiting.get(place).is_some_and(|waiting| bytes <= room.saturating_add(waiting.memory.bytes()));
        if !goes.is_none_or(gives_room) {
            return refused(kept);
        }
        let displaced = goes.map(|place| state.waiting.remove(place).kept);
        let memory = SpareMemory::new(memory);
        state.waiting.push(Waiting { kept, memory, block: Arc::clone(block), kind: Some(kind), until });
        Put { displaced, sweeper: state.sweeper() }
    }

    /// Drops one of the instances that have waited too long, or that no call may use any more.
    pub(crate) fn sweep_one(&self, sweeper: Sweeper) -> Swept {
        let state = self.state.lock();
        let now = Instant::now();
        let retired = state.waiting.iter().position(|waiting| waiting.until <= now);
        match retired {
            Some(place) => {
                self.drop_at(state, place);
                Swept::One(sweeper)
            }
            None if state.waiting.is_empty() => {
                // The state is still locked, so an instance that comes now begins other sweeps.
                drop(sweeper);
                Swept::All
            }
            None => Swept::Others(sweeper),
        }
    }

    /// From now on, keeps only instances of these blocks. No call gets one of the others, and the next sweeps drop them.
    pub(crate) fn retain(&self, serving: Vec<Arc<B>>) {
        let mut state = self.state.lock();
        let now = Instant::now();
        let is_gone = |waiting: &Waiting<B, T>| !serving.iter().any(|serving| Arc::ptr_eq(serving, &waiting.block));
        for waiting in state.waiting.iter_mut().filter(|waiting| is_gone(waiting)) {
            waiting.until = now;
        }
        state.serving = serving;
    }

    /// Drops the instance at this place. It takes time to clear its memory, so nothing is locked meanwhile.
    fn drop_at(&self, mut state: MutexGuard<'_, State<B, T>>, place: usize) {
        // It is declared first, so that it is dropped after the instance.
        let _leaving = Leaving::begin(&self.leaving);
        let gone = state.waiting.remove(place);
        drop(state);
        drop(gone);
    }
}

impl<B: Send + Sync, T: Send> SpareInstances for Stock<B, T> {
    fn drop_one(&self, budget: &MemoryBudget) -> bool {
        let state = self.state.lock();
        let longest = state.waiting.iter().position(|waiting| waiting.memory.counts_in(budget));
        if let Some(place) = longest {
            self.drop_at(state, place);
            return true;
        }
        // No instance of this budget waits, so what is spare in it belongs to instances that other threads are dropping now.
        // Those threads wait for nothing.
        let are_leaving = budget.has_spare();
        drop(state);
        if are_leaving {
            std::thread::yield_now();
        }
        are_leaving
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// A kept instance, which has its memory as long as it exists.
    struct Kept {
        number: u32,
        _memory: Arc<CallMemory>,
    }

    type Stocked = Stock<String, Kept>;

    /// A stock, a budget in which its instances count, and the active block.
    fn stock(bytes_max: usize) -> (Arc<Stocked>, MemoryBudget, Arc<String>) {
        let stock = Arc::new(Stocked::new());
        let weak: Weak<Stocked> = Arc::downgrade(&stock);
        let budget = MemoryBudget::with_spare(bytes_max, weak);
        let block = Arc::new("block".to_owned());
        stock.retain(vec![Arc::clone(&block)]);
        (stock, budget, block)
    }

    fn put(stock: &Stocked, budget: &MemoryBudget, block: &Arc<String>, kind: CallKind, number: u32) -> Option<u32> {
        put_large(stock, budget, block, kind, number, 4)
    }

    fn put_large(
        stock: &Stocked,
        budget: &MemoryBudget,
        block: &Arc<String>,
        kind: CallKind,
        number: u32,
        bytes: usize,
    ) -> Option<u32> {
        let memory = CallMemory::new(budget.clone());
        assert!(memory.take(bytes));
        let until = Instant::now() + Duration::from_secs(60);
        let kept = Kept { number, _memory: Arc::clone(&memory) };
        stock.put(block, kind, until, memory, kept).displaced.map(|displaced| displaced.number)
    }

    /// A sweeper that the stock has not given.
    fn sweeper() -> Sweeper {
        Sweeper { _alive: Arc::new(()) }
    }

    /// Sweeps until nothing is left to drop. Returns whether instances still wait.
    fn sweep(stock: &Stocked) -> bool {
        let mut sweeper = sweeper();
        loop {
            match stock.sweep_one(sweeper) {
                Swept::One(same) => sweeper = same,
                Swept::Others(_) => return true,
                Swept::All => return false,
            }
        }
    }

    fn take(stock: &Stocked, block: &Arc<String>, kind: CallKind) -> Option<u32> {
        stock.take(block, kind, |_| Fit::Yes).map(|kept| kept.number)
    }

    #[test]
    fn an_instance_waits_for_its_own_block_and_kind() {
        let (stock, budget, block) = stock(1000);
        let again = Arc::new("block".to_owned());
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
        assert!(!sweep(&stock) && budget.is_unused());
    }

    #[test]
    fn what_no_call_may_use_any_more_goes_with_the_next_sweeps() {
        let (stock, budget, block) = stock(1000);
        for number in 1..=3 {
            put(&stock, &budget, &block, CallKind::Hook, number);
        }
        let fit = |kept: &mut Kept| match kept.number {
            1 => Fit::Never,
            2 => Fit::Yes,
            _ => Fit::No,
        };
        assert_eq!(stock.take(&block, CallKind::Hook, fit).map(|kept| kept.number), Some(2));
        assert_eq!((take(&stock, &block, CallKind::Hook), take(&stock, &block, CallKind::Hook)), (Some(3), None));
        assert!(!budget.is_unused());
        assert!(matches!(stock.sweep_one(sweeper()), Swept::One(_)));
        assert!(matches!(stock.sweep_one(sweeper()), Swept::All));
        assert!(budget.is_unused());
    }

    #[test]
    fn kept_instances_have_a_part_of_the_memory_and_those_that_no_call_may_use_go_first() {
        let (stock, budget, block) = stock(200);
        let large = |number: u32, bytes: usize| put_large(&stock, &budget, &block, CallKind::Action, number, bytes);
        assert_eq!((large(1, 20), large(2, 20), large(3, 10)), (None, None, None));
        assert_eq!(large(4, 1), Some(1), "a quarter of the memory is full, and the first one has waited the longest");
        assert_eq!(large(5, 50), Some(5), "the next one has too little");
        stock.state.lock().waiting[1].until = Instant::now();
        assert_eq!(large(6, 20), Some(3), "no call may use it any more");
        assert_eq!(large(7, 10), Some(2), "the one that has waited the longest");
        assert_eq!((stock.state.lock().waiting.len(), budget.has_left(200)), (3, true));
    }

    #[test]
    fn an_instance_whose_drop_panics_does_not_count_any_more_and_others_are_swept() {
        struct Panics(Arc<CallMemory>);
        impl Drop for Panics {
            fn drop(&mut self) {
                assert_eq!(self.0.bytes(), 0, "it panics if it has memory");
            }
        }
        let stock = Arc::new(Stock::<(), Panics>::new());
        let weak: Weak<Stock<(), Panics>> = Arc::downgrade(&stock);
        let (budget, block) = (MemoryBudget::with_spare(100, weak), Arc::new(()));
        stock.retain(vec![Arc::clone(&block)]);
        let memory = CallMemory::new(budget.clone());
        assert!(memory.take(10));
        let kept = Panics(Arc::clone(&memory));
        let put = stock.put(&block, CallKind::Action, Instant::now(), memory, kept);
        assert!(put.displaced.is_none());
        let sweeper = put.sweeper.expect("the first instance begins the sweeps");
        assert!(catch_unwind(AssertUnwindSafe(|| stock.sweep_one(sweeper))).is_err());
        assert_eq!((stock.leaving.load(Ordering::Relaxed), budget.has_spare(), stock.drop_one(&budget)), (0, false, false));
        let memory = CallMemory::new(budget.clone());
        let put = stock.put(&block, CallKind::Action, Instant::now(), Arc::clone(&memory), Panics(memory));
        let sweeper = put.sweeper.expect("the panic ended the sweeps, so the next instance begins others");
        let Swept::One(sweeper) = stock.sweep_one(sweeper) else { panic!("its time is over") };
        assert!(matches!(stock.sweep_one(sweeper), Swept::All));
    }

    #[test]
    fn the_stock_of_a_block_and_of_all_is_bounded() {
        let (stock, budget, block) = stock(1 << 20);
        let others: Vec<_> = ["second", "third"].map(str::to_owned).map(Arc::new).into();
        stock.retain([&block, &others[0], &others[1]].map(Arc::clone).into());
        for number in 0..32 {
            assert_eq!(put(&stock, &budget, &block, CallKind::Action, number), None);
        }
        assert_eq!(put(&stock, &budget, &block, CallKind::Action, 32), Some(0), "the longest of its block");
        for number in 100..132 {
            assert_eq!(put(&stock, &budget, &others[0], CallKind::Action, number), None);
        }
        assert_eq!(put(&stock, &budget, &others[1], CallKind::Action, 200), Some(1), "the longest of all");
        assert_eq!(stock.state.lock().waiting.len(), KEPT_MAX as usize);
    }

    /// Makes an instance ahead, which waits for a minute. Returns whether it could be made and waits.
    fn make_ahead(stock: &Arc<Stocked>, budget: &MemoryBudget, block: &Arc<String>, number: u32) -> bool {
        let until = Instant::now() + Duration::from_secs(60);
        stock.reserve(block).is_some_and(|place| waits(place, budget, number, until))
    }

    fn waits(place: Making<String, Kept>, budget: &MemoryBudget, number: u32, until: Instant) -> bool {
        let memory = CallMemory::new(budget.clone());
        assert!(memory.take(4));
        let made = Kept { number, _memory: Arc::clone(&memory) };
        place.put(until, memory, made).is_ok()
    }

    #[test]
    fn an_instance_that_was_made_ahead_serves_one_call_of_its_block() {
        let (stock, budget, block) = stock(1000);
        let again = Arc::new("block".to_owned());
        let make = |number: u32| make_ahead(&stock, &budget, &block, number);
        assert_eq!((make(1), make(2), make(3)), (true, true, false), "a block has two");
        let looked_at = |_: &mut Kept| -> Fit { panic!("it is not for calls that reuse instances") };
        assert!(stock.take(&block, CallKind::Action, looked_at).is_none());
        assert!(stock.take_ahead(&again).is_none());
        let taken = || stock.take_ahead(&block).map(|made| made.number);
        assert_eq!((taken(), taken(), taken()), (Some(2), Some(1), None));
        assert!(budget.is_unused());
        assert_eq!(put(&stock, &budget, &block, CallKind::Action, 4), None);
        assert_eq!(taken(), None, "a kept one has served a call");

        let place = stock.reserve(&block).expect("a place");
        assert!(waits(place, &budget, 5, Instant::now()));
        assert_eq!(taken(), None, "its time is over");
        assert_eq!((make(6), make(7), make(8)), (true, true, false));
        assert_eq!(take(&stock, &block, CallKind::Action), Some(4));
        assert_eq!((taken(), taken()), (Some(7), Some(6)));
        assert!(!budget.is_unused());
        assert!(!sweep(&stock) && budget.is_unused());
    }

    #[test]
    fn an_instance_that_was_made_ahead_ends_with_a_change_of_its_block() {
        let (stock, budget, block) = stock(1000);
        let again = Arc::new("block".to_owned());
        assert!(make_ahead(&stock, &budget, &block, 1));
        let place = stock.reserve(&block).expect("a place");
        stock.retain(vec![Arc::clone(&again)]);
        assert!(stock.take_ahead(&block).is_none() && stock.take_ahead(&again).is_none());
        assert!(stock.reserve(&block).is_none());
        assert!(!waits(place, &budget, 2, Instant::now() + Duration::from_secs(60)), "the block changed meanwhile");
        assert!(stock.state.lock().making.is_empty());
        assert!(!sweep(&stock) && budget.is_unused());
    }

    #[test]
    fn an_instance_is_made_ahead_only_in_a_free_place() {
        let (stock, budget, first) = stock(1 << 20);
        let blocks: Vec<_> = (0..5).map(|number: u32| Arc::new(number.to_string())).collect();
        stock.retain(std::iter::once(&first).chain(&blocks).cloned().collect());
        for number in 0..31 {
            assert_eq!(put(&stock, &budget, &first, CallKind::Action, number), None);
            assert_eq!(put(&stock, &budget, &blocks[0], CallKind::Action, 100 + number), None);
        }
        let (one, other) = (stock.reserve(&first).expect("a place"), stock.reserve(&blocks[1]).expect("a place"));
        assert_eq!((one.making(), other.making()), (1, 2), "only the second one counts both");
        assert!(stock.reserve(&blocks[2]).is_none(), "62 wait, and two are being made");
        assert_eq!(put(&stock, &budget, &blocks[2], CallKind::Action, 200), Some(0), "those two have their places already");
        drop(one);
        assert_eq!(other.making(), 2, "the number of its beginning");
        assert_eq!(put(&stock, &budget, &blocks[2], CallKind::Action, 201), None);
        drop(other);
        let leaving = Leaving::begin(&stock.leaving);
        assert!(stock.reserve(&blocks[3]).is_none(), "63 wait, and one is not gone yet");
        drop(leaving);
        assert!(make_ahead(&stock, &budget, &blocks[3], 300) && !make_ahead(&stock, &budget, &blocks[4], 301));
        assert_eq!(stock.state.lock().waiting.len(), KEPT_MAX as usize, "no other one goes for it");
    }

    #[test]
    fn an_instance_that_is_being_made_ahead_counts_as_one_of_its_block() {
        let (stock, budget, block) = stock(1 << 20);
        for number in 0..31 {
            assert_eq!(put(&stock, &budget, &block, CallKind::Action, number), None);
        }
        let place = stock.reserve(&block).expect("a place");
        assert!(stock.reserve(&block).is_none(), "31 of the block wait, and one is being made");
        assert_eq!(put(&stock, &budget, &block, CallKind::Action, 31), Some(0), "that one has its place already");
        assert!(waits(place, &budget, 100, Instant::now() + Duration::from_secs(60)));
        assert_eq!(stock.state.lock().waiting.len(), 32);
        assert_eq!(put(&stock, &budget, &block, CallKind::Action, 32), Some(1));
    }

    #[test]
    fn an_instance_that_was_made_ahead_has_only_memory_that_no_call_misses() {
        let (stock, budget, block) = stock(100);
        assert_eq!(put_large(&stock, &budget, &block, CallKind::Action, 1, 22), None);
        assert!(!make_ahead(&stock, &budget, &block, 2), "instances that wait have a quarter of the memory");
        assert_eq!(take(&stock, &block, CallKind::Action), Some(1), "no other one goes for it");
        assert!(make_ahead(&stock, &budget, &block, 3));
        let call = CallMemory::new(budget.clone());
        assert!(call.take(100));
        assert!(stock.take_ahead(&block).is_none(), "the call has its memory");
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
        let waiting = || stock.state.lock().waiting.iter().map(|waiting| waiting.kept.number).collect::<Vec<_>>();
        let call = CallMemory::new(one.clone());
        // Of the part that is short, the longest goes, and no other.
        assert!(call.take(52));
        assert_eq!(waiting(), [10, 1, 11, 2, 12]);
        assert!(call.take(8));
        assert_eq!(waiting(), [10, 11, 12]);
        assert!(!call.take(1), "the block has no more");
        let second = CallMemory::new(other.clone());
        assert!(!second.take(41), "there would be too little even without them, so they stay");
        assert_eq!(waiting(), [10, 11, 12]);
        assert!(second.take(40) && !second.take(1));
        assert_eq!(waiting(), [0; 0]);
        assert_eq!(stock.leaving.load(Ordering::Relaxed), 0);
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
            stock.put(&block, CallKind::Action, until, memory, kept).sweeper
        };
        let now = Instant::now();
        let sweeper = put(1, now + Duration::from_secs(60)).expect("the first one begins the sweeps");
        assert!(put(2, now).is_none(), "the first one has begun them");
        let Swept::One(sweeper) = stock.sweep_one(sweeper) else { panic!("the time of the second one is over") };
        let Swept::Others(sweeper) = stock.sweep_one(sweeper) else { panic!("the first one still waits") };
        assert_eq!((take(&stock, &block, CallKind::Action), take(&stock, &block, CallKind::Action)), (Some(1), None));
        assert!(matches!(stock.sweep_one(sweeper), Swept::All));
        assert!(put(3, now).is_some(), "the sweeps have ended");
        assert_eq!(take(&stock, &block, CallKind::Action), None, "its time is over, although it is still there");
        assert!(!budget.is_unused());
        assert!(!sweep(&stock) && budget.is_unused());
    }
}

//! The slots and the memory that calls share. The pool has room for a fixed number of slots. No block and no caller can take all
//! slots or all memory.
//!
//! Actions, hooks and event handlers have separate slots, so that very many calls of one kind do not stop the others. Within a
//! kind, blocks share the slots. Within a block, its callers share them, and are served in turn.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use blockbase_app::QuotaOwner;
use blockbase_app::schema::{Error, Result};
use blockbase_quota::{Place as QuotaPlace, Places as QuotaPlaces, PlacesRule};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::engine::CALLS_MAX;
use crate::engine::limits::{MemoryBudget, SpareInstances};

/// The maximum number of one block's calls that wait for a slot: of one caller, and of all callers. Each may have a body in
/// memory.
const WAITING_OF_A_CALLER_MAX: usize = 100;
const WAITING_OF_A_BLOCK_MAX: usize = 256;
/// The maximum number of calls of all blocks that wait.
const WAITING_MAX: usize = 1_000;
/// How long a request waits for a slot.
const REQUEST_WAIT: Duration = Duration::from_secs(5);

/// The kind of handler that a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallKind {
    Action,
    Hook,
    EventHandler,
}

impl CallKind {
    const ALL: [CallKind; 3] = [CallKind::Action, CallKind::Hook, CallKind::EventHandler];

    /// The maximum number of calls of this kind that run at a time.
    fn calls_max(self) -> usize {
        match self {
            CallKind::Action => CALLS_MAX as usize / 2,
            CallKind::Hook | CallKind::EventHandler => CALLS_MAX as usize / 4,
        }
    }

    /// The maximum number of calls of one block and of this kind that run at a time. The remaining slots are for other blocks, no
    /// matter how long these calls take.
    fn calls_of_a_block_max(self) -> usize {
        self.calls_max() / 4 * 3
    }
}

pub(crate) struct CallSlots {
    by_kind: [Arc<QuotaPlaces<Arc<str>>>; 3],
    memory: MemoryBudget,
    by_block: Mutex<HashMap<Arc<str>, Arc<Share>>>,
}

/// The share of one block.
struct Share {
    /// The block's name, as the owner of common slots. Cloning it costs no copy.
    block: Arc<str>,
    by_kind: [Arc<QuotaPlaces>; 3],
    memory: MemoryBudget,
}

/// The slot of a call. It becomes free when the call's instance is gone.
pub(crate) struct CallSlot {
    pub(crate) memory: MemoryBudget,
    _of_block: QuotaPlace,
    _of_all: QuotaPlace<Arc<str>>,
}

/// The memory that an instance of a block may have besides the calls. Until this is dropped, the block is not forgotten.
pub(crate) struct BlockMemory(Arc<Share>);

impl BlockMemory {
    pub(crate) fn budget(&self) -> MemoryBudget {
        self.0.memory.clone()
    }
}

impl CallSlots {
    /// `memory_bytes_max` is the maximum memory of all calls together, and `memory_of_a_call` that of one call. The memory of
    /// `spare` instances counts in it, but they go first.
    pub(crate) fn new(memory_bytes_max: usize, memory_of_a_call: usize, spare: Weak<dyn SpareInstances>) -> CallSlots {
        let places = |kind: CallKind| {
            QuotaPlaces::new(PlacesRule {
                all: kind.calls_max(),
                each: kind.calls_of_a_block_max(),
                waiting_each: WAITING_OF_A_BLOCK_MAX,
                waiting: WAITING_MAX,
                wait: REQUEST_WAIT,
            })
        };
        CallSlots {
            by_kind: CallKind::ALL.map(places),
            memory: MemoryBudget::with_spare(memory_bytes_max.max(memory_of_a_call), spare),
            by_block: Mutex::default(),
        }
    }

    /// Waits for a slot. A request waits a few seconds. An event has no client that waits, so it waits until its deadline.
    ///
    /// # Errors
    /// `unavailable` with `Retry-After` if no slot becomes free in time, or if too many calls are already waiting.
    pub(crate) async fn take(
        &self,
        block: &str,
        kind: CallKind,
        caller: &QuotaOwner,
        deadline: Instant,
        memory_of_a_call: usize,
    ) -> Result<CallSlot> {
        let share = self.share(block, memory_of_a_call);
        let until = match kind {
            CallKind::Action | CallKind::Hook => deadline.min(Instant::now() + REQUEST_WAIT),
            CallKind::EventHandler => deadline,
        };
        let places = async {
            // The slot of the block comes first. So a call never occupies one of the common slots while it waits for a slot of
            // its block.
            let of_block = share.by_kind[kind as usize].take_until(caller, until).await?;
            Ok((of_block, self.by_kind[kind as usize].take_until(&share.block, until).await?))
        };
        let (of_block, of_all) = places.await.map_err(|blockbase_quota::Busy| {
            let message = "As many block calls run as this server allows, or as it allows one caller. Try again later.";
            Error::busy(message)
        })?;
        Ok(CallSlot { memory: share.memory.clone(), _of_block: of_block, _of_all: of_all })
    }

    /// The memory of a block, for an instance that no call waits for. `making` instances are being made ahead, with this one.
    /// `None` if there is other work: more calls run and instances are being made than there are processors, or a call of the
    /// block waits for a slot.
    pub(crate) fn memory_at_leisure(
        &self,
        block: &str,
        memory_of_a_call: usize,
        making: usize,
        processors: usize,
    ) -> Option<BlockMemory> {
        let free = |kind: CallKind| self.by_kind[kind as usize].free();
        let running: usize = CallKind::ALL.into_iter().map(|kind| kind.calls_max() - free(kind)).sum();
        let share = self.share(block, memory_of_a_call);
        let nobody_waits = share.by_kind.iter().all(|places| places.waiting() == 0);
        (running + making <= processors && nobody_waits).then_some(BlockMemory(share))
    }

    fn share(&self, block: &str, memory_of_a_call: usize) -> Arc<Share> {
        let mut by_block = self.by_block.lock();
        if let Some(share) = by_block.get(block) {
            return Arc::clone(share);
        }
        let places = |kind: CallKind| {
            QuotaPlaces::new(PlacesRule {
                all: kind.calls_of_a_block_max(),
                each: kind.calls_of_a_block_max(),
                waiting_each: WAITING_OF_A_CALLER_MAX,
                waiting: WAITING_OF_A_BLOCK_MAX,
                wait: REQUEST_WAIT,
            })
        };
        let block: Arc<str> = block.into();
        let share = Arc::new(Share {
            block: Arc::clone(&block),
            by_kind: CallKind::ALL.map(places),
            memory: self.memory.part((self.memory.bytes_max() / 4 * 3).max(memory_of_a_call)),
        });
        by_block.insert(block, Arc::clone(&share));
        share
    }

    /// Forgets blocks that have no running calls, no waiting calls and no kept instances.
    pub(crate) fn sweep(&self) {
        let is_used = |share: &Arc<Share>| {
            Arc::strong_count(share) > 1 || !share.memory.is_unused() || share.by_kind.iter().any(|places| !places.is_idle())
        };
        self.by_block.lock().retain(|_, share| is_used(share));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::poll_immediate;

    use super::*;

    fn caller(number: u8) -> QuotaOwner {
        QuotaOwner::at(std::net::IpAddr::from([192, 0, 2, number]))
    }

    /// No instances are kept.
    fn nothing_spare() -> Weak<dyn SpareInstances> {
        struct Nothing;
        impl SpareInstances for Nothing {
            fn drop_one(&self, _: &MemoryBudget) -> bool {
                false
            }
        }
        let nothing: Weak<Nothing> = Weak::new();
        nothing
    }

    #[tokio::test]
    async fn a_caller_and_a_kind_leave_slots_to_others() {
        let slots = CallSlots::new(1 << 30, 1 << 20, nothing_spare());
        let soon = || Instant::now() + Duration::from_millis(20);
        let take = async |block: &str, kind, number: u8| slots.take(block, kind, &caller(number), soon(), 1 << 20).await;
        let mut held = Vec::new();
        while let Ok(slot) = take("slow", CallKind::Hook, 1).await {
            held.push(slot);
        }
        assert_eq!(held.len(), 21, "seven eighths of a block's hooks");
        held.push(take("slow", CallKind::Hook, 2).await.expect("a slot of the same hook for another"));
        held.push(take("slow", CallKind::Action, 1).await.expect("an action of the same block"));
        held.push(take("slow", CallKind::EventHandler, 1).await.expect("a handler of the same block"));
        held.push(take("other", CallKind::Hook, 1).await.expect("a hook of another block"));
        drop(held);
        slots.sweep();
        assert!(slots.by_block.lock().is_empty(), "nothing is remembered");
    }

    #[tokio::test]
    async fn an_instance_is_made_ahead_only_while_a_processor_is_free() {
        let slots = CallSlots::new(1 << 30, 1 << 20, nothing_spare());
        let soon = Instant::now() + Duration::from_secs(60);
        let take = async |block: &str, kind| slots.take(block, kind, &caller(1), soon, 1 << 20).await.expect("a slot");
        let is_there = |making: usize, processors: usize| slots.memory_at_leisure("hot", 1 << 20, making, processors).is_some();
        assert!(is_there(1, 1));
        assert!(!is_there(2, 1) && is_there(2, 2), "another instance that is being made has a processor");
        let action = take("other", CallKind::Action).await;
        let hook = take("hot", CallKind::Hook).await;
        assert!(is_there(1, 3) && !is_there(1, 2));
        drop((action, hook));
        let memory = slots.memory_at_leisure("hot", 1 << 20, 1, 1).expect("no call runs");
        slots.sweep();
        assert!(slots.by_block.lock().contains_key("hot"), "its instance is being made");
        assert!(memory.budget().take(1) && !memory.budget().is_unused());
        memory.budget().give_back(1);
        drop(memory);
        slots.sweep();
        assert!(slots.by_block.lock().is_empty());
    }

    #[tokio::test]
    async fn no_instance_is_made_ahead_while_a_call_of_its_block_waits() {
        let slots = CallSlots::new(1 << 30, 1 << 20, nothing_spare());
        let (caller, soon) = (caller(1), Instant::now() + Duration::from_secs(60));
        let is_there = |block: &str| slots.memory_at_leisure(block, 1 << 20, 1, 1_000).is_some();
        let mut held = Vec::new();
        let waits = loop {
            let mut call = Box::pin(slots.take("hot", CallKind::Hook, &caller, soon, 1 << 20));
            let polled = poll_immediate(&mut call).await;
            match polled {
                Some(slot) => held.push(slot.expect("a slot")),
                None => break call,
            }
        };
        assert!(!held.is_empty() && !is_there("hot") && is_there("other"));
        drop(waits);
        assert!(is_there("hot"), "nobody waits any more");
    }
}

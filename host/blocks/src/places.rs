//! What calls share: places, as many as the pool has room for, and memory; neither is all for one block.

use std::collections::HashMap;
use std::sync::Arc;

use blockbase_app::schema::{Code, Error, Result};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::engine::CALLS_MAX;
use crate::limits::MemoryBudget;

/// Calls of one block that run at a time: the rest is for others, however long this one's take.
const CALLS_OF_A_BLOCK_MAX: usize = CALLS_MAX as usize / 4 * 3;
/// Calls of one block that wait for a place; each may hold a body.
const WAITING_OF_A_BLOCK_MAX: usize = 256;

pub(crate) struct Places {
    all: Arc<Semaphore>,
    memory: MemoryBudget,
    by_block: Mutex<HashMap<String, Arc<Share>>>,
}

/// What one block may take.
struct Share {
    places: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    memory: MemoryBudget,
}

/// A place of a call. It is free again when the call's instance is gone.
pub(crate) struct Place {
    pub(crate) memory: MemoryBudget,
    _of_block: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Places {
    /// `memory_bytes_max` is of all calls; one of them may have `memory_of_a_call`.
    pub(crate) fn new(memory_bytes_max: usize, memory_of_a_call: usize) -> Places {
        Places {
            all: Arc::new(Semaphore::new(CALLS_MAX as usize)),
            memory: MemoryBudget::new(memory_bytes_max.max(memory_of_a_call)),
            by_block: Mutex::default(),
        }
    }

    /// Waits for a place.
    ///
    /// # Errors
    /// `unavailable` past the deadline, or where too many wait already.
    pub(crate) async fn take(&self, block: &str, deadline: Instant, memory_of_a_call: usize) -> Result<Place> {
        let share = self.share(block, memory_of_a_call);
        let full = || Error::new(Code::Unavailable, "As many block calls run as this server allows. Try again later.");
        let Ok(waiting) = Arc::clone(&share.waiting).try_acquire_owned() else { return Err(full()) };
        let places = timeout_at(deadline, async {
            // First among those of the block, so that it holds none of all while it waits for its own.
            let of_block = Arc::clone(&share.places).acquire_owned().await?;
            Ok::<_, tokio::sync::AcquireError>((of_block, Arc::clone(&self.all).acquire_owned().await?))
        });
        let (of_block, of_all) = places.await.map_err(|_| full())?.map_err(Error::internal)?;
        drop(waiting);
        Ok(Place { memory: share.memory.clone(), _of_block: of_block, _of_all: of_all })
    }

    fn share(&self, block: &str, memory_of_a_call: usize) -> Arc<Share> {
        let mut by_block = self.by_block.lock();
        if let Some(share) = by_block.get(block) {
            return Arc::clone(share);
        }
        let share = Arc::new(Share {
            places: Arc::new(Semaphore::new(CALLS_OF_A_BLOCK_MAX)),
            waiting: Arc::new(Semaphore::new(WAITING_OF_A_BLOCK_MAX)),
            memory: self.memory.part((self.memory.bytes_max() / 4 * 3).max(memory_of_a_call)),
        });
        by_block.insert(block.to_owned(), Arc::clone(&share));
        share
    }

    /// Forgets blocks of which nothing runs and nothing waits.
    pub(crate) fn sweep(&self) {
        self.by_block.lock().retain(|_, share| {
            Arc::strong_count(share) > 1
                || share.places.available_permits() < CALLS_OF_A_BLOCK_MAX
                || share.waiting.available_permits() < WAITING_OF_A_BLOCK_MAX
        });
    }
}

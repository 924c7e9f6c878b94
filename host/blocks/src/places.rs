//! Places for calls: as many as the pool has room for, and not all of them for one block.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::engine::CALLS_MAX;

/// Calls of one block that run at a time: the rest is for others, however long this one's take.
const CALLS_OF_A_BLOCK_MAX: u32 = CALLS_MAX / 4 * 3;

pub(crate) struct Places {
    all: Semaphore,
    by_block: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Places {
    pub(crate) fn new() -> Places {
        Places { all: Semaphore::new(CALLS_MAX as usize), by_block: Mutex::default() }
    }

    /// A place among those of the block; to be taken before one among all.
    pub(crate) async fn of_block(&self, block: &str) -> Result<OwnedSemaphorePermit, AcquireError> {
        let places = {
            let mut by_block = self.by_block.lock();
            match by_block.get(block) {
                Some(places) => Arc::clone(places),
                None => {
                    let places = Arc::new(Semaphore::new(CALLS_OF_A_BLOCK_MAX as usize));
                    by_block.insert(block.to_owned(), Arc::clone(&places));
                    places
                }
            }
        };
        places.acquire_owned().await
    }

    pub(crate) async fn any(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.all.acquire().await
    }

    /// Forgets blocks of which nothing runs.
    pub(crate) fn sweep(&self) {
        self.by_block
            .lock()
            .retain(|_, places| places.available_permits() < CALLS_OF_A_BLOCK_MAX as usize || Arc::strong_count(places) > 1);
    }
}

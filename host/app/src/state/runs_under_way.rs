//! The runs of tasks in progress on this instance.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedRwLockReadGuard, RwLock};

/// Counts the runs in progress here, so that the server can wait for them before it ends.
#[derive(Default)]
pub(crate) struct RunsUnderWay {
    gate: Arc<RwLock<()>>,
    is_draining: AtomicBool,
}

impl RunsUnderWay {
    /// Returns a guard that a run keeps until its end. `None` once the server drains.
    pub(crate) fn enter(&self) -> Option<OwnedRwLockReadGuard<()>> {
        if self.is_draining.load(Ordering::Acquire) {
            return None;
        }
        Arc::clone(&self.gate).try_read_owned().ok()
    }

    pub(crate) async fn drain(&self) {
        self.is_draining.store(true, Ordering::Release);
        drop(self.gate.write().await);
    }
}

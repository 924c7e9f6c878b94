//! The runs of tasks that are under way on this instance.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedRwLockReadGuard, RwLock};

/// Counts the runs that are under way here, so that the server can wait for them when it ends.
#[derive(Default)]
pub(crate) struct RunsUnderWay {
    gate: Arc<RwLock<()>>,
    is_draining: AtomicBool,
}

impl RunsUnderWay {
    /// A place to be held while a run is under way; `None` once the server drains.
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

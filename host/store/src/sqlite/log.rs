//! How the write-ahead log stays small while scans overlap.
//!
//! SQLite copies the log into the file by itself, but it begins the log anew only in a moment without readers. Overlapping scans leave no
//! such moment, and the log grows with each write. So while the log is large, new scans of callers wait until the running ones have ended and the log
//! is cut. Exports are not waited for: their time is bounded, and they are few.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, OwnedRwLockReadGuard, RwLock};

use super::Session;

/// A log that is larger is cut before a further scan begins.
const LARGE_BYTES: u64 = 64 * 1024 * 1024;
/// How long new scans wait for the running ones, for each [`LARGE_BYTES`] of the log.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest such wait: as long as a scan waits for its place. A scan may take longer; a later try may find a better moment.
const PATIENCE_MAX: Duration = Duration::from_secs(5);
/// The pause after each try, so that scans wait for a small part of the time even where no try succeeds.
const PAUSE: Duration = Duration::from_secs(20);
/// How long the cut waits for an export, while it keeps writes waiting.
const BUSY_WAIT: Duration = Duration::from_millis(100);

/// What every scan goes through.
#[derive(Default)]
pub(super) struct LogGate {
    scans: Arc<RwLock<()>>,
    /// Held by the one that cuts; when the last try ended.
    cutting: Mutex<Option<Instant>>,
}

impl LogGate {
    /// Lets a scan begin, which keeps the result as long as it reads.
    pub(super) async fn enter(&self, file: &Path) -> OwnedRwLockReadGuard<()> {
        let bytes = bytes(file);
        if bytes > LARGE_BYTES
            && let Ok(mut last) = self.cutting.try_lock()
            && last.is_none_or(|last| last.elapsed() > PAUSE)
        {
            // Also where the client of this scan leaves while it waits.
            *last = Some(Instant::now());
            let patience = PATIENCE.saturating_mul(u32::try_from(bytes / LARGE_BYTES).unwrap_or(u32::MAX)).min(PATIENCE_MAX);
            // Nobody enters while it waits.
            if let Ok(alone) = tokio::time::timeout(patience, self.scans.write()).await {
                let file = file.to_owned();
                let cut = tokio::task::spawn_blocking(move || cut(&file)).await;
                if !matches!(cut, Ok(Ok(true))) {
                    tracing::debug!(log.bytes = bytes, "the write-ahead log could not be cut; it is tried again");
                }
                drop(alone);
            }
            *last = Some(Instant::now());
        }
        Arc::clone(&self.scans).read_owned().await
    }
}

/// The size of the log.
fn bytes(file: &Path) -> u64 {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).map_or(0, |log| log.len())
}

/// Copies the log into the file, first without being in the way of anybody, and cuts it: whether that was possible.
fn cut(file: &Path) -> rusqlite::Result<bool> {
    let session = Session::open(file, false)?;
    session.busy_timeout(BUSY_WAIT)?;
    session.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    session.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| Ok(row.get::<_, i64>(0)? == 0))
}

//! Keeps the write-ahead log small while scans overlap.
//!
//! SQLite copies the log into the file by itself, but it can start at the beginning of the log again only when there are no
//! readers. While scans overlap, there are always readers, and the log grows with each write. So while the log is large, new
//! scans of callers wait until the running ones have ended and the log is truncated. If the log is larger than a second limit,
//! the server ends scans that still run after that wait. New scans do not wait for exports or for the service's own scans, and
//! the server does not end these, because their time is limited and they are few.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, OwnedRwLockReadGuard, RwLock};

use crate::drivers::sqlite::Session;

/// If the log is larger than this, it is truncated before a further scan begins.
const LARGE_BYTES: u64 = 64 * 1024 * 1024;
/// If the log is larger than this, the server ends scans that still run after the wait, so that it can truncate the log.
const TOO_LARGE_BYTES: u64 = 512 * 1024 * 1024;
/// How long new scans wait for the running ones, for each [`LARGE_BYTES`] in the log.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest wait for running scans. A scan may wait as long as this for its place, too. If a running scan takes longer, a
/// later attempt may succeed.
const PATIENCE_MAX: Duration = Duration::from_secs(5);
/// The pause after each attempt, so that scans rarely wait even if no attempt succeeds.
const PAUSE: Duration = Duration::from_secs(20);
/// How long the truncation waits for an export or a scan of the service. Writes wait during this time.
const BUSY_WAIT: Duration = Duration::from_millis(100);

/// The gate that every scan passes before it begins.
#[derive(Default)]
pub(super) struct LogGate {
    scans: Arc<RwLock<()>>,
    /// The time when the last attempt ended. The lock is held during an attempt.
    cutting: Mutex<Option<Instant>>,
    /// True while running scans have to end.
    ends_scans: Arc<AtomicBool>,
    /// The number of running exports and scans of the service. While there is one, the log cannot be truncated.
    others: Arc<AtomicUsize>,
}

/// A scan that has begun.
pub(super) struct ScanEntry {
    _scan: OwnedRwLockReadGuard<()>,
    /// True if the scan has to end early.
    pub(super) ends: Arc<AtomicBool>,
}

/// Counts a running export or scan of the service until it is dropped.
pub(super) struct ReadCount(Arc<AtomicUsize>);

impl Drop for ReadCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Resets the flag when it is dropped, even if the client of the waiting scan disconnects.
struct FlagGuard<'a>(&'a AtomicBool);

impl<'a> FlagGuard<'a> {
    fn new(flag: &'a AtomicBool) -> FlagGuard<'a> {
        flag.store(true, Ordering::Relaxed);
        FlagGuard(flag)
    }
}

impl Drop for FlagGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl LogGate {
    /// Lets a scan begin. The scan keeps the result while it reads.
    pub(super) async fn enter(&self, file: &Path) -> ScanEntry {
        let bytes = bytes(file);
        if bytes > LARGE_BYTES
            && let Ok(mut last) = self.cutting.try_lock()
            && last.is_none_or(|last| last.elapsed() > PAUSE)
        {
            // The time is set first, so that it also counts if the client of this scan disconnects while it waits.
            *last = Some(Instant::now());
            let patience = PATIENCE.saturating_mul(u32::try_from(bytes / LARGE_BYTES).unwrap_or(u32::MAX)).min(PATIENCE_MAX);
            // Both cases use the same wait, so no scan that would be ended at once can begin in between.
            let mut alone = pin!(self.scans.write());
            let entered = match tokio::time::timeout(patience, &mut alone).await {
                Err(_) if bytes > TOO_LARGE_BYTES && self.others.load(Ordering::Relaxed) == 0 => {
                    tracing::warn!(log.bytes = bytes, "scans are ended, so that the write-ahead log can be cut");
                    let _flag = FlagGuard::new(&self.ends_scans);
                    tokio::time::timeout(PATIENCE_MAX, &mut alone).await
                }
                entered => entered,
            };
            if let Ok(alone) = entered {
                let file = file.to_owned();
                let cut = tokio::task::spawn_blocking(move || cut(&file)).await;
                if !matches!(cut, Ok(Ok(true))) {
                    tracing::debug!(log.bytes = bytes, "the write-ahead log could not be cut; it is tried again");
                }
                drop(alone);
            }
            *last = Some(Instant::now());
        }
        ScanEntry { _scan: Arc::clone(&self.scans).read_owned().await, ends: Arc::clone(&self.ends_scans) }
    }

    /// Lets an export or a scan of the service begin. It keeps the result while it reads.
    pub(super) fn count_read(&self) -> ReadCount {
        self.others.fetch_add(1, Ordering::Relaxed);
        ReadCount(Arc::clone(&self.others))
    }
}

/// The size of the log.
fn bytes(file: &Path) -> u64 {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).map_or(0, |log| log.len())
}

/// Copies the log into the file, at first without blocking anybody, and truncates it. Returns whether it was truncated.
fn cut(file: &Path) -> rusqlite::Result<bool> {
    let session = Session::open(file, false)?;
    session.busy_timeout(BUSY_WAIT)?;
    session.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    session.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| Ok(row.get::<_, i64>(0)? == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gate whose log has this many bytes, and a scan that has already begun.
    async fn gate_of(bytes: u64) -> (std::path::PathBuf, Arc<LogGate>, ScanEntry) {
        let place = std::env::temp_dir().join(format!("blockbase-log-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&place).expect("a directory");
        let gate = Arc::new(LogGate::default());
        let scan = gate.enter(&place.join("svc.db")).await;
        // The file is sparse, so it needs no room on the disk.
        std::fs::File::create(place.join("svc.db-wal")).and_then(|log| log.set_len(bytes)).expect("a log");
        (place, gate, scan)
    }

    #[tokio::test]
    async fn scans_that_run_on_are_ended_where_the_log_is_too_large() {
        let (place, gate, scan) = gate_of(TOO_LARGE_BYTES + 1).await;
        let (next, file) = (Arc::clone(&gate), place.join("svc.db"));
        let next = tokio::spawn(async move { next.enter(&file).await });
        while !scan.ends.load(Ordering::Relaxed) {
            assert!(!next.is_finished(), "it entered beside a scan that runs on");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop(scan);
        let next = next.await.expect("it enters");
        assert!(!next.ends.load(Ordering::Relaxed), "it may run");
        std::fs::remove_dir_all(place).expect("the directory goes");
    }

    #[tokio::test]
    async fn scans_run_on_beside_an_export_and_while_the_log_is_merely_large() {
        for (bytes, exports) in [(TOO_LARGE_BYTES, false), (TOO_LARGE_BYTES + 1, true)] {
            let (place, gate, scan) = gate_of(bytes).await;
            let export = exports.then(|| gate.count_read());
            let file = place.join("svc.db");
            let next = gate.enter(&file);
            let is_ended = async {
                while !scan.ends.load(Ordering::Relaxed) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::select! {
                _ = next => {}
                () = is_ended => panic!("the scan is ended"),
            }
            drop(export);
            std::fs::remove_dir_all(place).expect("the directory goes");
        }
    }
}

//! Connections that callers use one after the other.
//!
//! sqlx's pool asks a connection for a sign of life whenever it is given back. For a read of one statement, this doubles the
//! round trips. A connection whose statements have all succeeded needs no such question. So the next caller gets it directly. It
//! still goes back to the pool from time to time, because the pool closes connections that are old, or that nobody uses.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::Postgres as Driver;
use sqlx::pool::PoolConnection;

/// How long a connection may be away from the pool in total, and how long without being used.
const AWAY_MAX: Duration = Duration::from_secs(60);
const UNUSED_MAX: Duration = Duration::from_secs(10);

/// A connection, and since when it is away from the pool.
pub(crate) struct Away {
    pub(crate) connection: PoolConnection<Driver>,
    since: Instant,
}

impl Away {
    /// A connection that the pool has just given.
    pub(crate) fn new(connection: PoolConnection<Driver>) -> Away {
        Away { connection, since: Instant::now() }
    }
}

/// The connections that wait for the next caller. The last one was used last. `None` after the end.
///
/// A caller needs a place before it looks here, and there are as many places as the pool has connections. If a caller finds none
/// here, fewer are in use than there are places, and the pool has one for it.
pub(crate) struct Kept(Mutex<Option<Vec<(Away, Instant)>>>);

impl Kept {
    /// Makes an empty list. A task gives back the connections that nobody uses, as long as the list exists.
    pub(crate) fn new() -> Arc<Kept> {
        let kept = Arc::new(Kept(Mutex::new(Some(Vec::new()))));
        tokio::spawn(give_back_unused(Arc::downgrade(&kept)));
        kept
    }

    /// The connection that was used last.
    pub(crate) fn take(&self) -> Option<Away> {
        self.0.lock().as_mut()?.pop().map(|(away, _)| away)
    }

    /// Keeps a connection for the next caller. It is ready for a statement, and not in a transaction.
    pub(crate) fn keep(&self, away: Away) {
        if away.since.elapsed() > AWAY_MAX {
            // It goes back to the pool.
            return;
        }
        if let Some(kept) = self.0.lock().as_mut() {
            kept.push((away, Instant::now()));
        }
    }

    /// Gives all connections back to the pool, and keeps no further one.
    pub(crate) fn end(&self) {
        let kept = self.0.lock().take();
        drop(kept);
    }

    /// Gives all connections back to the pool, which closes those that are broken.
    pub(crate) fn give_back_all(&self) {
        let all = self.0.lock().as_mut().map(std::mem::take);
        drop(all);
    }

    fn give_back_unused(&self) {
        let is_unused = |(_, used): &mut (Away, Instant)| used.elapsed() > UNUSED_MAX;
        let unused: Vec<(Away, Instant)> = self.0.lock().iter_mut().flat_map(|kept| kept.extract_if(.., is_unused)).collect();
        drop(unused);
    }
}

/// A connection that is dropped starts a task that brings it back to its pool. Here the runtime may have ended, so the
/// connections are closed instead.
impl Drop for Kept {
    fn drop(&mut self) {
        for (away, _) in self.0.get_mut().take().into_iter().flatten() {
            drop(away.connection.leak());
        }
    }
}

async fn give_back_unused(kept: Weak<Kept>) {
    loop {
        tokio::time::sleep(UNUSED_MAX).await;
        match kept.upgrade() {
            Some(kept) => kept.give_back_unused(),
            None => return,
        }
    }
}

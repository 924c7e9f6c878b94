//! The limits of sign-in attempts, in memory.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use blockbase_quota::{Place, Places, PlacesRule};
use blockbase_schema::Error;
use tokio::sync::Semaphore;

/// The maximum number of attempts that are delayed at the same time. Further attempts are not delayed, because the queue of the
/// password hasher limits them.
const SLOWED_MAX: usize = 512;
/// The maximum number of attempts for one account from one network that are in progress on one instance. Further attempts wait
/// for their turn.
const UNDER_WAY_MAX: usize = 2;
/// The maximum number of attempts that wait for their turn.
const WAITING_MAX: usize = 64;
/// The longest wait for a turn.
const TURN_WAIT: Duration = Duration::from_secs(30);

/// The part of the limits that is kept in memory.
pub(crate) struct TryLimits {
    pub(super) slowed: Semaphore,
    pub(super) cleaned_at: AtomicI64,
    /// Attempts in progress. The database already counts them, but they have no outcome yet.
    under_way: Arc<Places<TryKey>>,
}

impl Default for TryLimits {
    fn default() -> TryLimits {
        let under_way = Places::new(PlacesRule {
            all: usize::MAX,
            each: UNDER_WAY_MAX,
            waiting_each: WAITING_MAX,
            waiting: usize::MAX,
            wait: TURN_WAIT,
        });
        TryLimits { slowed: Semaphore::new(SLOWED_MAX), cleaned_at: AtomicI64::new(0), under_way }
    }
}

/// The account and the network of an attempt.
pub(super) type TryKey = (String, String);

impl TryLimits {
    /// Waits for the turn of an attempt.
    ///
    /// # Errors
    /// `unavailable` with `Retry-After` if too many attempts wait or the wait is too long.
    pub(super) async fn turn(&self, key: &TryKey) -> Result<Place<TryKey>, Error> {
        self.under_way
            .take(key)
            .await
            .map_err(|_| Error::busy("Too many sign-ins of this account are in progress. Try again later."))
    }

    /// The number of other attempts with this key in progress.
    pub(super) fn others_under_way(&self, key: &TryKey) -> i64 {
        i64::try_from(self.under_way.held(key)).unwrap_or(i64::MAX) - 1
    }
}

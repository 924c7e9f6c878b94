//! Limits the dispatcher's share of the database while requests write.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use blockbase_app::App;
use tokio::sync::Semaphore;

/// The maximum number of the dispatcher's transactions that run at the same time.
const TRANSACTIONS_MAX: usize = 4;
/// While requests write, a permit stays unused after a transaction for this multiple of the transaction's time.
const REST: u32 = 3;
/// The longest time for which a permit stays unused.
const REST_MAX: Duration = Duration::from_millis(50);

/// Limits the dispatcher's transactions, so that a backlog does not slow requests down.
pub(crate) struct Throttle {
    places: Semaphore,
    writes_seen: AtomicU64,
}

impl Throttle {
    pub(crate) fn new(app: &App) -> Throttle {
        // On SQLite, a single writer runs all transactions one after the other.
        let places = if app.is_shared() { TRANSACTIONS_MAX } else { 1 };
        Throttle { places: Semaphore::new(places), writes_seen: AtomicU64::new(0) }
    }

    /// Runs a transaction when it has a permit. If it works on a backlog and requests write, the permit stays unused for some
    /// time afterwards. This does not apply to transactions for new deliveries.
    pub(crate) async fn run<T>(&self, app: &App, is_backlog: bool, transaction: impl Future<Output = T>) -> T {
        let place = self.places.acquire().await;
        let began = Instant::now();
        let answer = transaction.await;
        let writes = app.writes();
        // Requests have written since the last check.
        if self.writes_seen.swap(writes, Ordering::Relaxed) != writes && is_backlog {
            tokio::time::sleep((began.elapsed() * REST).min(REST_MAX)).await;
        }
        drop(place);
        answer
    }
}

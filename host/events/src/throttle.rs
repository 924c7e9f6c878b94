//! How much of the database the dispatcher takes while requests write.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use blockbase_app::App;
use tokio::sync::Semaphore;

/// Transactions of the dispatcher at a time.
const TRANSACTIONS_MAX: usize = 4;
/// While requests write, how long a place rests after a transaction, in times of what the transaction took.
const REST: u32 = 3;
/// The longest rest.
const REST_MAX: Duration = Duration::from_millis(50);

/// Lets the dispatcher's transactions in, so that a backlog does not slow requests down.
pub(crate) struct Throttle {
    places: Semaphore,
    writes_seen: AtomicU64,
}

impl Throttle {
    pub(crate) fn new(app: &App) -> Throttle {
        // On SQLite one writer runs them all, one after the other.
        let places = if app.is_shared() { TRANSACTIONS_MAX } else { 1 };
        Throttle { places: Semaphore::new(places), writes_seen: AtomicU64::new(0) }
    }

    /// Runs a transaction in its turn. Where it works on a backlog, it rests while requests write; what is new goes at once.
    pub(crate) async fn run<T>(&self, app: &App, is_backlog: bool, transaction: impl Future<Output = T>) -> T {
        let place = self.places.acquire().await;
        let began = Instant::now();
        let answer = transaction.await;
        let writes = app.writes();
        // Requests have written since the last time that somebody looked.
        if self.writes_seen.swap(writes, Ordering::Relaxed) != writes && is_backlog {
            tokio::time::sleep((began.elapsed() * REST).min(REST_MAX)).await;
        }
        drop(place);
        answer
    }
}

//! Time and ids. The clock is a parameter, so that tests can set the time.
#![expect(clippy::disallowed_types, reason = "uuid's context is shared through a mutex of the standard library alone")]

use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use uuid::{ContextV7, Timestamp, Uuid};

/// Returns the time and makes ids from it.
#[derive(Clone)]
pub struct Clock {
    now_ms: Arc<dyn Fn() -> i64 + Send + Sync>,
    context: Arc<Mutex<ContextV7>>,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "all other code gets the time from this clock")]
    pub fn system() -> Clock {
        Clock::new(|| {
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
        })
    }

    /// `now_ms` returns milliseconds since the epoch.
    pub fn new(now_ms: impl Fn() -> i64 + Send + Sync + 'static) -> Clock {
        Clock { now_ms: Arc::new(now_ms), context: Arc::new(Mutex::new(ContextV7::new())) }
    }

    /// Milliseconds since the epoch.
    pub fn now(&self) -> i64 {
        (self.now_ms)()
    }

    /// A UUIDv7 of the instant `now`. The ids of one process increase.
    pub fn id(&self, now: i64) -> Uuid {
        let seconds = u64::try_from(now.div_euclid(1000)).unwrap_or(0);
        let nanos = u32::try_from(now.rem_euclid(1000)).unwrap_or(0) * 1_000_000;
        Uuid::new_v7(Timestamp::from_unix(&*self.context, seconds, nanos))
    }
}

//! Where a group looks for what is new.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long a group looks for what is new behind the place where it found some.
const FLOOR_MAX: Duration = Duration::from_secs(1);

/// Up to where a group had everything that is new, so that Postgres need not walk through what was delivered before and is still in
/// the index. What commits late, or is reset, may lie below: every so often all is looked at.
#[derive(Default)]
pub(super) struct Floor(Mutex<Option<(i64, Instant)>>);

impl Floor {
    /// Where to look from.
    pub(super) fn after(&self) -> i64 {
        let mut known = self.0.lock();
        match *known {
            Some((after, since)) if since.elapsed() < FLOOR_MAX => after,
            _ => {
                *known = None;
                0
            }
        }
    }

    /// Has the next claim look at all.
    pub(super) fn forget(&self) {
        *self.0.lock() = None;
    }

    /// Takes what a claim found first; where it found nothing, the next one looks at all.
    pub(super) fn found(&self, first_pending: Option<i64>) {
        let mut known = self.0.lock();
        *known = first_pending.map(|first| (first - 1, known.map_or_else(Instant::now, |(_, since)| since)));
    }
}

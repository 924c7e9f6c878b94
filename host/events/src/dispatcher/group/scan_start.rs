//! The number in the outbox from which a group looks for new deliveries.

use std::time::{Duration, Instant};

use blockbase_store::FirstPending;
use parking_lot::Mutex;

/// The longest time for which a group looks only at numbers after the one up to which it has claimed everything.
const SCAN_START_AGE_MAX: Duration = Duration::from_secs(1);

/// The number up to which a group has claimed all new deliveries. If a claim starts there, Postgres does not read the index
/// entries of finished deliveries. Deliveries that were made due again may have lower numbers, so from time to time a claim looks
/// at everything.
///
/// An event gets its number before its transaction commits. So a group uses a number only after all transactions have ended that
/// were open when it looked for deliveries. Otherwise the group would miss an event that commits late, and would claim a later
/// event of the same record before it.
#[derive(Default)]
pub(super) struct ScanStart(Mutex<Starts>);

#[derive(Default)]
struct Starts {
    /// The number in use, and the time since when it has been used.
    known: Option<(i64, Instant)>,
    /// The next number. It is used when all transactions with numbers below the second value have ended.
    next: Option<(i64, i64)>,
}

impl ScanStart {
    /// The number from which the next claim looks.
    pub(super) fn after(&self) -> i64 {
        let mut starts = self.0.lock();
        match starts.known {
            Some((after, since)) if since.elapsed() < SCAN_START_AGE_MAX => after,
            Some(_) => {
                *starts = Starts::default();
                0
            }
            None => 0,
        }
    }

    /// Makes the next claim look at all deliveries.
    pub(super) fn forget(&self) {
        *self.0.lock() = Starts::default();
    }

    /// Stores the first number that a claim found. If the claim found nothing, the next claim looks at all deliveries.
    pub(super) fn found(&self, first: Option<FirstPending>) {
        let mut starts = self.0.lock();
        let Some(FirstPending { seq, over_below, under_way_below }) = first else {
            *starts = Starts::default();
            return;
        };
        if let Some((next, _)) = starts.next.take_if(|(_, has_to_be_over)| over_below >= *has_to_be_over) {
            let since = starts.known.map_or_else(Instant::now, |(_, since)| since);
            starts.known = Some((next, since));
        }
        starts.next.get_or_insert((seq - 1, under_way_below));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(seq: i64, over_below: i64, under_way_below: i64) -> Option<FirstPending> {
        Some(FirstPending { seq, over_below, under_way_below })
    }

    #[test]
    fn a_place_counts_once_everything_is_over_that_may_commit_below() {
        let scan_start = ScanStart::default();
        scan_start.found(found(10, 100, 105));
        assert_eq!(scan_start.after(), 0, "a transaction below 105 may have an earlier number");
        scan_start.found(found(11, 105, 106));
        assert_eq!(scan_start.after(), 9);
    }

    #[test]
    fn a_place_counts_until_nothing_is_found_or_all_is_to_be_looked_at() {
        let scan_start = ScanStart::default();
        let take = |first| {
            scan_start.found(first);
            scan_start.0.lock().known.map(|(after, _)| after)
        };
        assert_eq!(take(found(10, 100, 105)), None);
        assert_eq!(take(found(12, 104, 110)), None, "transaction 104 is still open");
        assert_eq!(take(found(14, 105, 111)), Some(9));
        assert_eq!(take(found(20, 111, 112)), Some(13));
        assert_eq!((take(None), scan_start.after()), (None, 0));
        assert_eq!(take(found(30, 0, 0)), None);
        assert_eq!(take(found(31, 0, 0)), Some(29), "with a single writer, no earlier number can appear later");
        scan_start.forget();
        assert_eq!(scan_start.after(), 0);
    }
}

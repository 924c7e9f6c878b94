//! The activity of this process in the last hour. It is kept in memory, with numbers for each minute.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use blockbase_schema::time::MINUTE_MS;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

use crate::base::answer::Timestamp;

const STEP_SECONDS: i64 = MINUTE_MS / 1000;
/// The number of minutes that are shown, including the current one.
const MINUTES: usize = 60;

/// The numbers of one minute.
struct Slot {
    /// The minute that the slot counts, in minutes since the epoch.
    minute: AtomicI64,
    requests: AtomicU64,
    writes: AtomicU64,
    errors: AtomicU64,
}

/// The activity of this instance, with a number for each minute of the last hour. The last number is that of the current minute.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct ActivityAnswer {
    from: Timestamp,
    #[schemars(extend("const" = STEP_SECONDS))]
    step_seconds: i64,
    #[schemars(length(equal = MINUTES))]
    requests: Vec<u64>,
    #[schemars(length(equal = MINUTES))]
    writes: Vec<u64>,
    #[schemars(length(equal = MINUTES))]
    errors: Vec<u64>,
}

/// A ring of minutes.
pub(crate) struct Activity {
    slots: [Slot; MINUTES],
    /// Locked while a slot is reset for its next minute.
    turn: Mutex<()>,
}

impl Default for Activity {
    fn default() -> Activity {
        let empty = || Slot {
            minute: AtomicI64::new(i64::MIN),
            requests: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            errors: AtomicU64::new(0),
        };
        Activity { slots: std::array::from_fn(|_| empty()), turn: Mutex::new(()) }
    }
}

impl Activity {
    /// Counts an answered request. `is_error` is true for errors of the server, not for errors of the caller.
    pub(crate) fn answered(&self, now: i64, is_error: bool) {
        let slot = self.slot(now.div_euclid(MINUTE_MS));
        slot.requests.fetch_add(1, Ordering::Relaxed);
        if is_error {
            slot.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a call that writes records.
    pub(crate) fn wrote(&self, now: i64) {
        self.slot(now.div_euclid(MINUTE_MS)).writes.fetch_add(1, Ordering::Relaxed);
    }

    fn slot(&self, minute: i64) -> &Slot {
        let slot = self.place(minute);
        if slot.minute.load(Ordering::Acquire) != minute {
            let _turn = self.turn.lock();
            if slot.minute.load(Ordering::Acquire) != minute {
                for count in [&slot.requests, &slot.writes, &slot.errors] {
                    count.store(0, Ordering::Relaxed);
                }
                slot.minute.store(minute, Ordering::Release);
            }
        }
        slot
    }

    fn place(&self, minute: i64) -> &Slot {
        // The remainder is smaller than the number of slots, so the conversion always succeeds.
        &self.slots[usize::try_from(minute.rem_euclid(MINUTES as i64)).unwrap_or(0)]
    }

    /// The activity of the last hour.
    pub(crate) fn answer(&self, now: i64) -> ActivityAnswer {
        let last = now.div_euclid(MINUTE_MS);
        let first = last - (MINUTES as i64 - 1);
        let counts = |count: fn(&Slot) -> &AtomicU64| -> Vec<u64> {
            let shown = |minute| {
                let slot = self.place(minute);
                if slot.minute.load(Ordering::Acquire) == minute { count(slot).load(Ordering::Relaxed) } else { 0 }
            };
            (first..=last).map(shown).collect()
        };
        ActivityAnswer {
            from: Timestamp(first * MINUTE_MS),
            step_seconds: STEP_SECONDS,
            requests: counts(|slot| &slot.requests),
            writes: counts(|slot| &slot.writes),
            errors: counts(|slot| &slot.errors),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_kept_and_older_minutes_go() {
        let activity = Activity::default();
        let minute = |number: i64| number * MINUTE_MS + 17;
        for _ in 0..3 {
            activity.answered(minute(100), false);
        }
        activity.answered(minute(101), true);
        activity.wrote(minute(101));
        let shown = activity.answer(minute(101));
        assert_eq!(shown.from, Timestamp(42 * MINUTE_MS));
        assert_eq!(
            (&shown.requests[57..], &shown.errors[57..], &shown.writes[57..]),
            (&[0, 3, 1][..], &[0, 0, 1][..], &[0, 0, 1][..])
        );
        assert_eq!(shown.requests.len(), MINUTES);
        // An hour later, the same slots belong to other minutes.
        let shown = activity.answer(minute(160));
        assert_eq!((shown.requests[0], shown.requests[59]), (1, 0));
        activity.answered(minute(160), false);
        let shown = activity.answer(minute(160));
        assert_eq!((shown.requests[0], shown.requests[59]), (1, 1));
        let shown = activity.answer(minute(500));
        assert!(shown.requests.iter().all(|count| *count == 0));
    }
}

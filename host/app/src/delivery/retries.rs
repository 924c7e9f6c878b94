//! When a failed delivery is tried again, and how often.

use std::time::Duration;

use blockbase_schema::time::{DAY_MS, HOUR_MS, MINUTE_MS};

use crate::App;
use crate::state::routing::Target;

/// The maximum number of attempts of a delivery, if its target has no rule of its own.
pub(crate) const ATTEMPTS_MAX: i64 = 5;
/// The longest pause between two such attempts, as a multiple of the base pause.
const PAUSE_MAX_BASES: i64 = 60;
/// How long the server tries to send a mail, and the longest pause between two attempts. A mail server that restarts or rejects
/// mail for some time usually accepts it within this time. The validity of a link begins with the attempt that sent it, so a mail
/// that comes hours later is still useful.
const MAIL_TRIED_MS: i64 = 6 * HOUR_MS;
const MAIL_PAUSE_MAX_MS: i64 = 15 * MINUTE_MS;
/// How long a mail that could not be sent is kept. After that it would be too late.
pub(crate) const MAIL_KEPT_MS: i64 = 7 * DAY_MS;
/// The maximum number of times that a pause is doubled.
const DOUBLINGS_MAX: i64 = 40;

/// The rule of a group's retries: the pause begins with the base and doubles up to a maximum, until the maximum number of
/// attempts is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetryPolicy {
    base_ms: i64,
    pause_max_ms: i64,
    attempts_max: i64,
}

impl RetryPolicy {
    /// The rule for a target. A group that was deleted meanwhile has none.
    pub(crate) fn of(target: Option<&Target>, base_ms: i64) -> RetryPolicy {
        let base_ms = base_ms.max(1);
        match target {
            Some(Target::Mail) => {
                let mut policy = RetryPolicy { base_ms, pause_max_ms: MAIL_PAUSE_MAX_MS.max(base_ms), attempts_max: 1 };
                let mut tried_ms = 0;
                while tried_ms < MAIL_TRIED_MS {
                    tried_ms += policy.pause_ms(policy.attempts_max);
                    policy.attempts_max += 1;
                }
                policy
            }
            _ => RetryPolicy { base_ms, pause_max_ms: base_ms.saturating_mul(PAUSE_MAX_BASES), attempts_max: ATTEMPTS_MAX },
        }
    }

    fn pause_ms(self, attempts: i64) -> i64 {
        let doubled = 1_i64 << (attempts - 1).clamp(0, DOUBLINGS_MAX);
        self.base_ms.saturating_mul(doubled).min(self.pause_max_ms)
    }

    /// The pause in milliseconds before the next attempt, if `attempts` have failed. `None` if no attempt is left.
    pub(crate) fn next_ms(self, attempts: i64) -> Option<i64> {
        (attempts < self.attempts_max).then(|| self.pause_ms(attempts))
    }
}

impl App {
    /// The rule of a group's retries.
    pub(crate) fn retry_policy(&self, consumer: &str) -> RetryPolicy {
        let subscription = self.subscription(consumer);
        RetryPolicy::of(subscription.as_ref().map(|subscription| &subscription.target), self.settings.retry_base_ms)
    }

    /// The pause of a group after an attempt that fails now, after `attempts` earlier ones. `None` if no attempt is left.
    pub fn retry_pause(&self, consumer: &str, attempts: i64) -> Option<Duration> {
        let pause = self.retry_policy(consumer).next_ms(attempts + 1)?;
        Some(Duration::from_millis(u64::try_from(pause).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All pauses of a rule.
    fn pauses(target: Option<&Target>, base_ms: i64) -> Vec<i64> {
        let policy = RetryPolicy::of(target, base_ms);
        (1..).map_while(|attempts| policy.next_ms(attempts)).collect()
    }

    #[test]
    fn a_delivery_has_five_attempts_with_doubled_pauses() {
        assert_eq!(pauses(Some(&Target::LogEvent), 5000), [5000, 10_000, 20_000, 40_000]);
        assert_eq!(pauses(None, 1), [1, 2, 4, 8]);
        let policy = RetryPolicy::of(None, 5000);
        assert_eq!((policy.pause_ms(7), policy.pause_ms(1000)), (300_000, 300_000));
    }

    #[test]
    fn mail_is_tried_for_six_hours_whatever_the_base_is() {
        let usual = pauses(Some(&Target::Mail), 5000);
        assert_eq!(usual[..9], [5000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000, 900_000]);
        assert!(usual[9..].iter().all(|pause| *pause == 900_000), "{usual:?}");
        assert_eq!(usual.len() + 1, 32);
        for base_ms in [0, 1, 100, 5000, 60_000, 3_600_000] {
            let all = pauses(Some(&Target::Mail), base_ms);
            let (sum, last) = (all.iter().sum::<i64>(), all[all.len() - 1]);
            assert!(sum >= MAIL_TRIED_MS && sum - last < MAIL_TRIED_MS, "{base_ms}: {sum}");
            assert!(all.iter().all(|pause| *pause <= MAIL_PAUSE_MAX_MS.max(base_ms)), "{base_ms}: {all:?}");
        }
    }
}

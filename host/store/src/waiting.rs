//! Limits how many reads and writes of callers wait for a place, and how long. Both engines have the same limits.

use std::time::Duration;

/// The maximum number of waiting reads or writes of one caller.
pub(crate) const WAITING_OF_A_CALLER_MAX: usize = 1_000;
/// The maximum number of waiting reads or writes of all callers.
pub(crate) const WAITING_MAX: usize = 10_000;
pub(crate) const PLACE_WAIT: Duration = Duration::from_secs(5);

//! How many callers' reads and writes wait for a place, and how long. Both engines have the same bounds.

use std::time::Duration;

/// Reads or writes of one caller that wait.
pub(crate) const WAITING_OF_A_CALLER_MAX: usize = 1_000;
/// Reads or writes of all callers that wait.
pub(crate) const WAITING_MAX: usize = 10_000;
pub(crate) const PLACE_WAIT: Duration = Duration::from_secs(5);

//! The time that the call has left.

use crate::bindings::blockbase::block::deadline;

/// Milliseconds until the call is stopped.
pub fn remaining_ms() -> u64 {
    deadline::remaining_ms()
}

/// Whether the caller has disconnected, so that nobody waits for the result.
pub fn is_cancelled() -> bool {
    deadline::is_cancelled()
}

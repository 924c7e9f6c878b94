//! How long the call may still run.

/// Milliseconds until the call is stopped.
pub fn remaining_ms() -> u64 {
    crate::bindings::blockbase::block::deadline::remaining_ms()
}

//! Runs work that takes longer for larger requests.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Up to this number of bytes, the work runs on the request's thread without further measures.
const BYTES_IN_PLACE_MAX: usize = 64 * 1024;

/// Runs `work` on `bytes` bytes. If these are many bytes, the runtime first moves this thread's other tasks to another thread, so
/// that no other request waits.
pub fn run_offloaded<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let has_threads = || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    match bytes > BYTES_IN_PLACE_MAX && has_threads() {
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}

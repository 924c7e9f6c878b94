//! The blocks whose last call failed, on this instance since its start.

use std::collections::HashMap;

use blockbase_schema::{Code, Error};
use parking_lot::Mutex;

/// The maximum number of blocks in the list. It contains only names of installed blocks, and no server has that many.
const KEPT_MAX: usize = 1000;
/// The maximum number of characters of an error that are kept. The text is limited because a handler may have written it.
const ERROR_CHARS_MAX: usize = 500;

/// The failure of a block's call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockFault {
    pub(crate) error: String,
    /// Milliseconds since the epoch.
    pub(crate) at: i64,
}

/// The failure of each block whose last call failed.
#[derive(Default)]
pub(crate) struct BlockFaults(Mutex<HashMap<String, BlockFault>>);

impl BlockFaults {
    /// Stores the outcome of a call. An error that is the block's answer to its caller, such as a refused input, is not a failure.
    pub(crate) fn note(&self, block: &str, error: Option<&Error>, now: i64) {
        let fault = error.filter(|error| matches!(error.code, Code::ActionFailed | Code::ActionTimeout));
        let mut faults = self.0.lock();
        match fault {
            Some(error) if faults.len() < KEPT_MAX || faults.contains_key(block) => {
                let error = error.message.chars().take(ERROR_CHARS_MAX).collect();
                faults.insert(block.to_owned(), BlockFault { error, at: now });
            }
            Some(_) => {}
            None if error.is_none() => {
                faults.remove(block);
            }
            None => {}
        }
    }

    pub(crate) fn of(&self, block: &str) -> Option<BlockFault> {
        self.0.lock().get(block).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_call_counts_and_refusals_do_not() {
        let faults = BlockFaults::default();
        let failed = Error::new(Code::ActionFailed, "x".repeat(1000));
        faults.note("tasks", Some(&failed), 7);
        let fault = faults.of("tasks").expect("it failed");
        assert_eq!((fault.error.len(), fault.at), (ERROR_CHARS_MAX, 7));
        faults.note("tasks", Some(&Error::new(Code::ValidationFailed, "no")), 8);
        assert_eq!(faults.of("tasks"), Some(fault));
        faults.note("tasks", None, 9);
        assert_eq!(faults.of("tasks"), None);
    }
}

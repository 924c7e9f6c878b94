//! `deadline`: how long the call may still run.

use crate::host::bindings::blockbase::block::deadline::Host;
use crate::host::call::CallState;

impl Host for CallState {
    async fn remaining_ms(&mut self) -> wasmtime::Result<u64> {
        self.count_host_call()?;
        Ok(u64::try_from(self.remaining().as_millis()).unwrap_or(u64::MAX))
    }

    /// A call that is canceled or past its deadline is stopped. So a call that can still ask is usually neither canceled nor past
    /// its deadline.
    async fn is_cancelled(&mut self) -> wasmtime::Result<bool> {
        self.count_host_call()?;
        Ok(self.remaining().is_zero())
    }
}

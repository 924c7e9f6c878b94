//! `config`: the block's configuration.

use crate::host::bindings::blockbase::block::config::Host;
use crate::host::call::CallState;

impl Host for CallState {
    async fn get(&mut self) -> wasmtime::Result<String> {
        self.count_host_call()?;
        Ok(self.service.as_ref().map_or_else(|| "{}".to_owned(), |service| service.block.config.to_string()))
    }
}

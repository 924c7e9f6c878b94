//! `secrets`: the values that the installer gave the block.

use blockbase_app::schema::{Code, Error};

use super::guest_error;
use crate::host::bindings::blockbase::block::secrets::Host;
use crate::host::bindings::blockbase::block::types;
use crate::host::call::CallState;

impl Host for CallState {
    async fn get(&mut self, name: String) -> wasmtime::Result<Result<String, types::Error>> {
        self.count_host_call()?;
        let Some(service) = &self.service else {
            let message = "There are no secrets while a block is being installed.";
            return Ok(Err(guest_error(Error::new(Code::Unavailable, message))));
        };
        if let Err(error) = service.recheck(&self.executors).await {
            return Ok(Err(guest_error(error)));
        }
        Ok(service.app.block_secret(&service.block, &name).map_err(guest_error))
    }
}

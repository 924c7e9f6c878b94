//! `log`: lines for the block's log.

use crate::host::bindings::blockbase::block::log::Host;
use crate::host::call::CallState;

impl Host for CallState {
    async fn log(&mut self, level: String, message: String, fields: Option<String>) -> wasmtime::Result<()> {
        self.count_host_call()?;
        self.log.count(message.len() + fields.as_ref().map_or(0, String::len))?;
        // Text that is not JSON is kept as a string, so that it is not lost.
        let fields = fields.map(|fields| match serde_json::from_str::<serde::de::IgnoredAny>(&fields) {
            Ok(_) => fields,
            Err(_) => serde_json::Value::from(fields).to_string(),
        });
        self.log.write(&level, &message, fields);
        Ok(())
    }
}

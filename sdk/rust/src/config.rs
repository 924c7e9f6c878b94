//! The block's configuration. `config` in `block.json` is its schema.

use serde::de::DeserializeOwned;

use crate::Error;

/// The configuration, checked against the manifest's schema and with its defaults.
pub fn get<T: DeserializeOwned>() -> Result<T, Error> {
    Ok(serde_json::from_str(&crate::bindings::blockbase::block::config::get())?)
}

//! The block's configuration, whose schema is `config` in `block.json`.

use serde::de::DeserializeOwned;

use crate::Error;

/// The configuration, checked against the manifest's schema, defaults filled in.
pub fn get<T: DeserializeOwned>() -> Result<T, Error> {
    Ok(serde_json::from_str(&crate::bindings::blockbase::block::config::get())?)
}

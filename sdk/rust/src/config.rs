//! The block's configuration; `config` has to stand in the manifest's `requires.plugins`.

use serde::de::DeserializeOwned;

use crate::Error;

/// The configuration, checked against the manifest's schema, defaults filled in.
pub fn get<T: DeserializeOwned>() -> Result<T, Error> {
    Ok(serde_json::from_str(&crate::bindings::blockbase::block::config::get())?)
}

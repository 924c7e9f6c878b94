//! Secrets that the installer gave, of those that `permissions.secrets` of `block.json` names.

use crate::Error;

/// A secret by its name; an error where the manifest does not name it or nobody gave it.
pub fn get(name: &str) -> Result<String, Error> {
    crate::bindings::blockbase::block::secrets::get(name).map_err(Error::of_host)
}

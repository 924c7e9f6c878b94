//! Secrets that the installer set. `permissions.secrets` of `block.json` names them.

use crate::Error;

/// A secret by its name. Returns an error if the manifest does not name the secret, or if nobody has set it.
pub fn get(name: &str) -> Result<String, Error> {
    crate::bindings::blockbase::block::secrets::get(name).map_err(Error::of_host)
}

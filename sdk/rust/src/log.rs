//! Lines for the block's log; `log` has to stand in the manifest's `requires.plugins`.

use crate::bindings::blockbase::block::log::log;

pub fn error(message: &str) {
    log("error", message, None);
}

pub fn warn(message: &str) {
    log("warn", message, None);
}

pub fn info(message: &str) {
    log("info", message, None);
}

pub fn debug(message: &str) {
    log("debug", message, None);
}

/// A line with fields; what does not serialize is left out.
pub fn with_fields(level: &str, message: &str, fields: impl serde::Serialize) {
    log(level, message, serde_json::to_string(&fields).ok().as_deref());
}

//! Lines for the block's log.

use crate::bindings::blockbase::block::log::log;

/// Logs that something went wrong.
pub fn error(message: &str) {
    log("error", message, None);
}

/// Logs something that somebody should look at.
pub fn warn(message: &str) {
    log("warn", message, None);
}

/// Logs something that happened.
pub fn info(message: &str) {
    log("info", message, None);
}

/// Logs something that helps to find a mistake.
pub fn debug(message: &str) {
    log("debug", message, None);
}

/// Logs a line with fields, at one of the levels error, warn, info, debug and trace. Fields that cannot be serialized are left out.
pub fn with_fields(level: &str, message: &str, fields: impl serde::Serialize) {
    log(level, message, serde_json::to_string(&fields).ok().as_deref());
}

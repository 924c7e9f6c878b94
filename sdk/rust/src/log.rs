//! Lines for the block's log.

use crate::bindings::blockbase::block::log::log;

/// A line of something that went wrong.
pub fn error(message: &str) {
    log("error", message, None);
}

/// A line of something that somebody should look at.
pub fn warn(message: &str) {
    log("warn", message, None);
}

/// A line of something that happened.
pub fn info(message: &str) {
    log("info", message, None);
}

/// A line for somebody who looks for a mistake.
pub fn debug(message: &str) {
    log("debug", message, None);
}

/// A line with fields, at one of the levels error, warn, info, debug and trace; what does not serialize is left out.
pub fn with_fields(level: &str, message: &str, fields: impl serde::Serialize) {
    log(level, message, serde_json::to_string(&fields).ok().as_deref());
}

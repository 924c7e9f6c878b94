//! The functions that a block may call on its host. There is one file for each interface, and the state of a call, which all
//! interfaces use.

pub(crate) mod bindings;
pub(crate) mod call;
mod config;
mod data;
mod deadline;
mod hints;
mod http;
mod log;
mod log_sink;
mod secrets;
pub(crate) mod service;
mod wasi;
mod wasi_http;

use blockbase_app::schema::Error;

use bindings::blockbase::block::types;

/// The interfaces that a manifest's `requires.plugins` may name.
pub const INTERFACES: [&str; 5] = ["data", "secrets", "config", "log", "http"];

impl types::Host for call::CallState {}

/// Logs the cause of an error. Neither a guest nor its caller gets it.
pub(crate) fn log_cause(error: &Error) {
    if let Some(cause) = &error.cause {
        tracing::error!(error.code = error.code.as_str(), error.cause = %cause, "an operation of a block failed");
    }
}

/// A domain error in the form for guests, without the server's internals. Its details are `{ field, issues }`.
fn guest_error(error: Error) -> types::Error {
    log_cause(&error);
    let details = match (&error.field, error.issues.is_empty()) {
        (None, true) => None,
        (field, _) => Some(serde_json::json!({ "field": field, "issues": error.issues }).to_string()),
    };
    types::Error { code: error.code.as_str().to_owned(), message: error.message_for(hints::words).into_owned(), details }
}

//! The error of a handler, and of the service's own operations.

use crate::bindings::blockbase::block::types;

/// A failure with a code. `not_found`, `invalid_request`, `forbidden`, `conflict` and `unavailable` become the status of their
/// name; every other code is a failed action.
#[derive(Clone, Debug)]
pub struct Error {
    pub code: String,
    pub message: String,
    /// JSON text.
    pub details: Option<String>,
}

impl Error {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Error {
        Error { code: code.into(), message: message.into(), details: None }
    }

    /// 404: there is no such thing.
    pub fn not_found(what: &str) -> Error {
        Error::new("not_found", format!("No such {what}."))
    }

    /// 400: the caller has to change something.
    pub fn invalid_request(message: impl Into<String>) -> Error {
        Error::new("invalid_request", message)
    }

    /// 409: it does not fit what is there.
    pub fn conflict(message: impl Into<String>) -> Error {
        Error::new("conflict", message)
    }

    /// 500: the action failed.
    pub fn failed(message: impl Into<String>) -> Error {
        Error::new("action_failed", message)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Error {}

impl From<types::Error> for Error {
    fn from(error: types::Error) -> Self {
        Error { code: error.code, message: error.message, details: error.details }
    }
}

impl From<Error> for types::Error {
    fn from(error: Error) -> Self {
        types::Error { code: error.code, message: error.message, details: error.details }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Error::failed(error.to_string())
    }
}

//! The error of a handler and of the service's own operations.

use crate::bindings::blockbase::block::types;

/// A failure with a code. `not_found`, `invalid_request`, `forbidden`, `conflict` and `unavailable` become the status with their name.
/// Any other code makes the action fail.
///
/// Like the errors of anyhow, it does not implement [`std::error::Error`]. So `?` accepts every error that does, and makes it
/// `action_failed` with its message and those of its causes.
#[derive(Clone, Debug)]
pub struct Error {
    /// The code, as lower-case words joined by `_`.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// Further details as JSON text.
    pub details: Option<String>,
}

impl Error {
    /// A failure with a code of your choice.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Error {
        Error { code: code.into(), message: message.into(), details: None }
    }

    /// 404: the thing does not exist.
    pub fn not_found(what: &str) -> Error {
        Error::new("not_found", format!("No such {what}."))
    }

    /// 400: the caller has to change the request.
    pub fn invalid_request(message: impl Into<String>) -> Error {
        Error::new("invalid_request", message)
    }

    /// 403: the caller lacks the right.
    pub fn forbidden(message: impl Into<String>) -> Error {
        Error::new("forbidden", message)
    }

    /// 409: the request conflicts with the present data.
    pub fn conflict(message: impl Into<String>) -> Error {
        Error::new("conflict", message)
    }

    /// 503: something that the action needs is not available.
    pub fn unavailable(message: impl Into<String>) -> Error {
        Error::new("unavailable", message)
    }

    /// 500: the action failed.
    pub fn failed(message: impl Into<String>) -> Error {
        Error::new("action_failed", message)
    }

    /// Adds details for programs. Details that cannot be serialized are left out.
    #[must_use]
    pub fn with_details(mut self, details: impl serde::Serialize) -> Error {
        self.details = serde_json::to_string(&details).ok();
        self
    }

    /// The service's own error with its code. A plain `?` would treat it as a foreign error.
    pub(crate) fn of_host(error: types::Error) -> Error {
        Error { code: error.code, message: error.message, details: error.details }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.code, self.message)
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Error::failed(message)
    }
}

impl From<Error> for types::Error {
    fn from(error: Error) -> Self {
        types::Error { code: error.code, message: error.message, details: error.details }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Result<u32, Error> {
        Ok(text.parse::<u32>()?)
    }

    #[test]
    fn every_standard_error_is_a_failed_action_with_its_message() {
        let error = number("x").expect_err("an error");
        assert_eq!((error.code.as_str(), error.message.as_str()), ("action_failed", "invalid digit found in string"));
    }
}

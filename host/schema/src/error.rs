//! The domain error: a stable code, a sentence, and a hint for the caller. It shows nothing of the server's internals.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU16;

use crate::code::Code;
use crate::hint::{Hint, HintWords};
use crate::quote::{excerpt, shortened};

/// The result of every domain operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The number of seconds after which a caller may retry, if everything that the request needs was in use.
pub const BUSY_RETRY_AFTER_S: u16 = 5;

/// One of several failures.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(untagged)]
pub enum Issue {
    /// A failure in a document that was checked against a schema. `path` is a JSON Pointer into it.
    Document { path: String, message: String },
    /// A failure of a record's field, with the code and the message that it would have as a single error.
    Field { field: String, error: &'static str, message: String },
}

/// The reason why an operation may succeed if it is retried at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The schema changed after the operation was planned, so the operation has to be planned again.
    SchemaMoved,
    /// This instance does not know something that the operation names. Another instance may have created it a moment ago.
    MayBeNew,
    /// The operation conflicts with another transaction (a deadlock, or an upsert of the same record).
    Contended,
}

/// A failure, as the caller sees it. Only the log shows `cause`.
#[derive(Debug)]
pub struct Error {
    pub code: Code,
    /// The message without the hint, because each surface has its own words for hints: see [`Error::message_for`].
    pub message: String,
    pub hint: Option<Box<Hint>>,
    /// The column that caused the error, if it is known.
    pub field: Option<String>,
    /// Every failure of an action's input. Or, for a record with several faulty fields, the failure of each.
    pub issues: Box<[Issue]>,
    /// A document with more information. It has its own key beside the message.
    pub details: Option<Box<(&'static str, serde_json::Value)>>,
    /// The internal cause. It is never rendered.
    pub cause: Option<Box<dyn std::error::Error + Send + Sync>>,
    /// Set if the operations of `app` should retry by themselves.
    pub retry: Option<Retry>,
    /// The number of seconds after which the caller may retry. HTTP sends it as `Retry-After`.
    pub retry_after_s: Option<NonZeroU16>,
}

impl Error {
    /// Makes an error. Quoted parts of the message are shortened to an excerpt, because they may repeat the caller's text.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error {
            code,
            message: shortened(message.into()),
            hint: None,
            field: None,
            issues: Box::default(),
            details: None,
            cause: None,
            retry: None,
            retry_after_s: None,
        }
    }

    pub fn with_field(mut self, field: impl Into<String>) -> Self {
        let field: String = field.into();
        self.field = Some(excerpt(&field).into_owned());
        self
    }

    pub fn with_hint(mut self, hint: Hint) -> Self {
        self.hint = Some(Box::new(hint));
        self
    }

    /// Tells the caller when to retry.
    pub fn with_retry_after(mut self, seconds: u16) -> Self {
        self.retry_after_s = NonZeroU16::new(seconds.max(1));
        self
    }

    /// The error `unavailable`, for a request that needs things that other requests are using. The caller may retry after
    /// [`BUSY_RETRY_AFTER_S`].
    pub fn busy(message: impl Into<String>) -> Self {
        Error::new(Code::Unavailable, message).with_retry_after(BUSY_RETRY_AFTER_S)
    }

    /// A fault of the service itself. The caller gets no details, and `cause` goes to the log.
    pub fn internal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let mut error =
            Error::new(Code::Internal, "The server could not complete the request. The log has the cause under the request id.");
        error.cause = Some(cause.into());
        error
    }

    /// An error that makes the operation start again. The caller only sees it if no retry succeeds.
    pub fn retry(why: Retry, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let mut error = Error::new(Code::Unavailable, "The schema or the record is being changed by others. Try again shortly.");
        error.cause = Some(cause.into());
        error.retry = Some(why);
        error
    }

    pub fn invalid_request(message: impl Into<String>) -> Self {
        Error::new(Code::InvalidRequest, message)
    }

    /// The error of a list with more bytes than a response may have (`SVC_MAX_ANSWER_BYTES`).
    pub fn answer_too_large() -> Self {
        Error::new(Code::AnswerTooLarge, "The answer has more bytes than the server sends (`SVC_MAX_ANSWER_BYTES`).")
            .with_hint(Hint::FewerRecords)
    }

    /// The error of an operation that needs an authenticated caller.
    pub fn unauthenticated() -> Self {
        Error::new(Code::Unauthorized, "Authentication required.").with_hint(Hint::Authenticate)
    }

    pub fn not_found(what: &str) -> Self {
        Error::new(Code::NotFound, format!("No such {what}."))
    }

    /// The error for an object that does not exist, or that the caller may not know of.
    pub fn unknown_object(name: &str) -> Self {
        let mut error = Error::new(Code::NotFound, format!("There is no object `{name}`.")).with_hint(Hint::ListObjects);
        error.retry = Some(Retry::MayBeNew);
        error
    }

    pub fn unknown_field(object: &str, field: &str) -> Self {
        Error::new(Code::UnknownField, format!("`{object}` has no field `{field}`.")).with_field(field)
    }

    /// The error of a record. `errors` has the record's faults, at most one for each field. The result is the first error, with
    /// all of them as issues if there are several. `None` if there is no error.
    pub fn of_record(errors: Vec<Error>) -> Option<Error> {
        let mut issues = Vec::new();
        if errors.len() > 1 {
            issues.extend(errors.iter().map(|error| Issue::Field {
                field: error.field.clone().unwrap_or_default(),
                error: error.code.as_str(),
                message: error.message.clone(),
            }));
        }
        Some(Error { issues: issues.into(), ..errors.into_iter().next()? })
    }

    /// The message with its hint, in the words of a surface.
    pub fn message_for(&self, words: HintWords) -> Cow<'_, str> {
        match self.hint.as_deref().and_then(words) {
            Some(hint) => Cow::Owned(format!("{} {hint}", self.message)),
            None => Cow::Borrowed(&self.message),
        }
    }

    /// `{ error, message, field?, issues? }`, and the error's details under their own key. Every surface shows errors in this
    /// form.
    pub fn envelope(&self, words: HintWords) -> serde_json::Value {
        let mut envelope = serde_json::json!({ "error": self.code.as_str(), "message": self.message_for(words) });
        if let Some(field) = &self.field {
            envelope["field"] = serde_json::json!(field);
        }
        if !self.issues.is_empty() {
            envelope["issues"] = serde_json::json!(self.issues);
        }
        if let Some((key, details)) = self.details.as_deref() {
            envelope[*key] = details.clone();
        }
        envelope
    }

    /// A copy for another caller who waited for the same operation. The cause stays with the first error, because the first error
    /// is logged.
    pub fn shared(&self) -> Error {
        Error {
            code: self.code,
            message: self.message.clone(),
            hint: self.hint.clone(),
            field: self.field.clone(),
            issues: self.issues.clone(),
            details: self.details.clone(),
            cause: None,
            retry: self.retry,
            retry_after_s: self.retry_after_s,
        }
    }

    /// The same error with `place` in front of its message. `place` is the part of the request that the error is about.
    pub fn within(mut self, place: impl fmt::Display) -> Self {
        self.message = shortened(format!("{place}: {}", self.message));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code.as_str(), self.message)?;
        match &self.cause {
            Some(cause) => write!(formatter, " (cause: {cause})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_says_all_but_its_cause() {
        let mut error = Error::unknown_object("x").with_field("y").with_retry_after(7);
        error.issues = [Issue::Document { path: "/a".to_owned(), message: "It is not a number.".to_owned() }].into();
        error.details = Some(Box::new(("more", serde_json::json!([1]))));
        error.cause = Some("inside".into());
        let shared = error.shared();
        let words: HintWords = |hint| Some(format!("{hint:?}").into());
        assert_eq!(shared.envelope(words), error.envelope(words));
        assert_eq!((shared.retry, shared.retry_after_s), (error.retry, error.retry_after_s));
        assert!(shared.envelope(words)["message"].as_str().is_some_and(|message| message.ends_with(" ListObjects")));
        assert!(shared.cause.is_none());
    }
}

//! Reads documents that the platform's tables store as JSON text. The server wrote them, so an unreadable document is logged as
//! an error.
//!
//! One rule applies to all of them. A decision that needs an unreadable document requires every right or fails
//! ([`Place::decides`]), so that a damaged document gives no rights. An answer leaves the document out ([`Place::read`]), because
//! otherwise one damaged row would make the whole list fail, and administrators could not find the row.

use std::collections::BTreeSet;

use blockbase_schema::{Error, Result};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

/// The maximum number of damaged documents that are remembered, so that each is logged only once. If there are more, the server
/// forgets all of them and logs them again.
const LOGGED_MAX: usize = 1000;

// The log belongs to the process, and documents are read in conversions that have no `App`. So this is not a part of `App`.
static LOGGED: Mutex<Logged> = Mutex::new(Logged(BTreeSet::new()));

/// The damaged documents that were logged, by place and cause.
struct Logged(BTreeSet<String>);

impl Logged {
    fn is_new(&mut self, damage: String) -> bool {
        if self.0.len() >= LOGGED_MAX {
            self.0.clear();
        }
        self.0.insert(damage)
    }
}

/// The place of a stored document, for the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'r> {
    pub(crate) table: &'static str,
    pub(crate) column: &'static str,
    /// The key of the row.
    pub(crate) row: &'r str,
}

impl<'r> Place<'r> {
    pub(crate) fn new(table: &'static str, column: &'static str, row: &'r str) -> Place<'r> {
        Place { table, column, row }
    }

    /// The document for an answer. An unreadable document is replaced by the empty value.
    pub(crate) fn read<T: DeserializeOwned + Default>(self, text: &str) -> T {
        self.found(text).unwrap_or_default()
    }

    /// The document for a decision.
    ///
    /// # Errors
    /// `internal` if the document cannot be read.
    pub(crate) fn decides<T: DeserializeOwned>(self, text: &str) -> Result<T> {
        let Place { table, column, row } = self;
        self.found(text).ok_or_else(|| Error::internal(format!("`{column}` of `{row}` in {table} cannot be read")))
    }

    /// The document, or `None` if it cannot be read.
    pub(crate) fn found<T: DeserializeOwned>(self, text: &str) -> Option<T> {
        match serde_json::from_str(text) {
            Ok(document) => Some(document),
            Err(error) => {
                // The error's text is left out, because it can quote the document.
                self.log(&format!("{:?} error at line {}, column {}", error.classify(), error.line(), error.column()));
                None
            }
        }
    }

    /// Logs the fault of the document, and returns the empty value.
    pub(crate) fn damaged<T: Default>(self, cause: &str) -> T {
        self.log(cause);
        T::default()
    }

    fn log(self, cause: &str) {
        let Place { table, column, row } = self;
        if LOGGED.lock().is_new(format!("{table} {column} {row} {cause}")) {
            tracing::error!(table, column, row, error.cause = cause, "a stored document cannot be read");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_damaged_document_is_empty_where_it_answers_and_fails_where_it_decides() {
        let place = Place::new("svc_tasks", "config", "t");
        assert_eq!(place.read::<Value>("{\"a\":1}"), json!({ "a": 1 }));
        assert_eq!(place.read::<Value>("{\"a\":"), Value::Null);
        assert_eq!(place.read::<Vec<String>>("{}"), Vec::<String>::new());
        assert_eq!(place.decides::<Value>("{\"a\":1}").expect("a document"), json!({ "a": 1 }));
        let error = place.decides::<Vec<String>>("{}").expect_err("damage");
        assert_eq!(error.cause.expect("a cause").to_string(), "`config` of `t` in svc_tasks cannot be read");
    }

    #[test]
    fn a_damage_is_new_once_and_only_so_many_are_remembered() {
        let mut logged = Logged(BTreeSet::new());
        assert!(logged.is_new("a".to_owned()) && !logged.is_new("a".to_owned()));
        for number in 1..LOGGED_MAX {
            assert!(logged.is_new(number.to_string()));
        }
        assert_eq!(logged.0.len(), LOGGED_MAX);
        assert!(logged.is_new("a".to_owned()), "all documents were forgotten");
        assert_eq!(logged.0.len(), 1);
    }
}

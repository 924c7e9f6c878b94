//! Documents that the platform's tables hold as JSON text, read where one damaged row must not hide the others. Whoever decides by such a
//! document takes the empty value for the least that it can allow.

use serde::de::DeserializeOwned;

/// Where a document stands, for whoever reads the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'r> {
    pub(crate) table: &'static str,
    pub(crate) column: &'static str,
    /// What the row is known by.
    pub(crate) row: &'r str,
}

impl<'r> Place<'r> {
    pub(crate) fn new(table: &'static str, column: &'static str, row: &'r str) -> Place<'r> {
        Place { table, column, row }
    }

    /// The document of this place. The server wrote it, so one that cannot be read is an error in the log; the empty value stands
    /// for it, because one damaged row must not keep its administrators from the list in which they find it.
    pub(crate) fn read<T: DeserializeOwned + Default>(self, text: &str) -> T {
        serde_json::from_str(text).unwrap_or_else(|error| self.unreadable(&error))
    }

    /// Says in the log where reading ended, and gives the empty value. Without the error's text, which can quote the document.
    pub(crate) fn unreadable<T: Default>(self, error: &serde_json::Error) -> T {
        self.damaged(&format!("{:?} error at line {}, column {}", error.classify(), error.line(), error.column()))
    }

    /// Says in the log what is wrong with the document, and gives the empty value.
    pub(crate) fn damaged<T: Default>(self, cause: &str) -> T {
        let Place { table, column, row } = self;
        tracing::error!(table, column, row, error.cause = cause, "a stored document cannot be read");
        T::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_damaged_document_is_empty_and_a_whole_one_is_itself() {
        let place = Place::new("svc_tasks", "config", "t");
        assert_eq!(place.read::<Value>("{\"a\":1}"), json!({ "a": 1 }));
        assert_eq!(place.read::<Value>("{\"a\":"), Value::Null);
        assert_eq!(place.read::<Vec<String>>("{}"), Vec::<String>::new());
    }
}

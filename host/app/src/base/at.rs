//! The place of a failure in a call with several writes.

use blockbase_schema::Error;
use serde_json::json;

/// The error of one of several records.
pub(crate) fn at(index: usize, error: Error) -> Error {
    error.within(format_args!("At index {index}"))
}

/// The error of one of several operations. Its details have the index too.
pub(crate) fn at_operation(index: usize, error: Error) -> Error {
    let mut error = at(index, error);
    error.details.get_or_insert_with(|| Box::new(("index", json!(index))));
    error
}

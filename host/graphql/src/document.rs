//! Turns the text of a request into an operation that may be executed: checks its limits, reads its variables, and validates it.

pub(crate) mod check;
pub(crate) mod coerce;
pub(crate) mod collect;
pub(crate) mod lexical;
pub(crate) mod limits;
pub(crate) mod prepare;
pub(crate) mod request;

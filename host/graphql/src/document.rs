//! From the text of a request to an operation that may be executed: its bounds, its variables, validation.

pub(crate) mod check;
pub(crate) mod coerce;
pub(crate) mod collect;
pub(crate) mod lexical;
pub(crate) mod limits;
pub(crate) mod prepare;
pub(crate) mod request;

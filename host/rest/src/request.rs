//! Turns an HTTP request into the arguments of an operation: the caller, the query, the body and the preconditions.

pub(crate) mod admission;
pub(crate) mod body;
pub(crate) mod extract;
pub(crate) mod precondition;

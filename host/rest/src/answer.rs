//! Turns the result of an operation into an HTTP response.

pub(crate) mod auth;
pub(crate) mod error;
pub(crate) mod hints;
pub(crate) mod render;

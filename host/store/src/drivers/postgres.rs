//! A connection to Postgres.

pub(crate) mod kept;
pub(crate) mod session;
pub(crate) mod statement;

pub(crate) use kept::{Away, Kept};
pub(crate) use session::Session;

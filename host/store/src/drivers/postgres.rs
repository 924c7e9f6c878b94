//! A connection to Postgres.

pub(crate) mod session;
pub(crate) mod statement;

pub(crate) use session::Session;

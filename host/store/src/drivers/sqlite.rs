//! A connection to SQLite, with the functions that SQLite lacks.

mod contains;
mod functions;
pub(crate) mod meter;
pub(crate) mod session;
pub(crate) mod space;
pub(crate) mod statement;

pub(crate) use session::Session;
pub(crate) use statement::{batch, execute, fetch, fetch_json, fetch_record, fetch_records, spool_rows};

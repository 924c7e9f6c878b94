//! The parts that the transactions of readers and of the writer share.

use std::sync::atomic::{AtomicI64, Ordering};

use blockbase_schema::{Error, Result};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::error::DbError;

/// The version of the schema. A read compares it to find out whether the schema changed meanwhile.
///
/// The number is twice the version. While a version is being committed, the number is one less than twice that version.
pub(super) struct SchemaState(pub(super) AtomicI64);

impl SchemaState {
    fn is(&self, version: i64) -> bool {
        self.0.load(Ordering::Acquire) == version * 2
    }

    pub(super) fn check(&self, expected: Option<i64>) -> Result<(), DbError> {
        match expected.is_none_or(|version| self.is(version)) {
            true => Ok(()),
            false => Err(DbError::SchemaMoved("the schema has another version by now".into())),
        }
    }
}

/// Runs a body's future to its end. On SQLite a body never waits, so one poll is enough.
pub(super) fn run_now<T>(future: BoxFuture<'_, Result<T>>) -> Result<T> {
    future.now_or_never().unwrap_or_else(|| Err(Error::internal("a body waited for something other than its connection")))
}

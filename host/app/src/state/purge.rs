//! Deletes rows that no longer matter, in several transactions, so that none of them takes long.

use blockbase_schema::Result;
use blockbase_store::{Connection, DbError, Service};
use futures_util::future::BoxFuture;

use crate::App;

/// The maximum number of rows that one transaction deletes.
const PURGED_AT_ONCE: i64 = 500;

impl App {
    /// Calls `purge` in one transaction after another, until it deletes nothing. Returns the number of deleted rows.
    ///
    /// `purge` gets the current time, and the maximum number of rows to delete.
    pub(crate) async fn purge<F>(&self, purge: F) -> Result<u64>
    where
        F: for<'c> Fn(&'c mut Connection, i64, i64) -> BoxFuture<'c, Result<u64, DbError>> + Copy + Send + Sync + 'static,
    {
        let mut purged = 0;
        loop {
            let now = self.clock.now();
            let gone = self
                .store
                .write_in_reserve(Service, move |connection| {
                    Box::pin(async move { Ok(purge(connection, now, PURGED_AT_ONCE).await?) })
                })
                .await?;
            purged += gone;
            if gone == 0 {
                return Ok(purged);
            }
        }
    }
}

//! A caller's write on its way through the writer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use blockbase_schema::{Code, Error, Result};
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use crate::connection::Connection;
use crate::error::{DbError, storage_full, unavailable};
use crate::sqlite::transaction::run_now;

/// A caller's write in the queue of the writer.
pub(super) trait Job: Send {
    /// Whether the job changes the schema. Then it needs a separate commit.
    fn is_schema(&self) -> bool;
    /// Whether the caller still waits.
    fn is_wanted(&self) -> bool;
    /// Runs the body. Returns whether its changes should be committed.
    fn run(&mut self, connection: &mut Connection) -> bool;
    /// Whether the body failed because there was no room.
    fn found_no_room(&self) -> bool;
    /// Gives the result to the caller, or the reason why there was no commit.
    fn answer(self: Box<Self>, not_committed: Option<&NotCommitted>);
}

/// The reason why there was no commit.
pub(super) struct NotCommitted {
    why: String,
    /// Whether there was no room for it.
    is_full: bool,
}

impl NotCommitted {
    pub(super) fn new(what: &str, error: &DbError) -> NotCommitted {
        NotCommitted { why: format!("{what}: {error:?}"), is_full: matches!(error, DbError::StorageFull(_)) }
    }
}

pub(super) struct BodyJob<T, F> {
    pub(super) is_schema: bool,
    pub(super) body: Option<F>,
    pub(super) result: Option<Result<T>>,
    pub(super) reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Job for BodyJob<T, F>
where
    T: Send,
    F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send,
{
    fn is_schema(&self) -> bool {
        self.is_schema
    }

    fn is_wanted(&self) -> bool {
        !self.reply.is_closed()
    }

    fn run(&mut self, connection: &mut Connection) -> bool {
        let Some(body) = self.body.take() else { return false };
        // A panic in one body must not end the writer for all callers.
        let result = catch_unwind(AssertUnwindSafe(|| run_now(body(connection))))
            .unwrap_or_else(|_| Err(Error::internal("a write panicked")));
        let result = result.and_then(|value| connection.effects.check_committable().map(|()| value));
        let commit = result.is_ok();
        self.result = Some(result);
        commit
    }

    fn found_no_room(&self) -> bool {
        matches!(&self.result, Some(Err(error)) if error.code == Code::StorageFull)
    }

    fn answer(self: Box<Self>, not_committed: Option<&NotCommitted>) {
        let result = match (self.result, not_committed) {
            (Some(Err(error)), _) => Err(error),
            (_, Some(NotCommitted { why, is_full: true })) => Err(storage_full(Some(why.clone().into()))),
            (_, Some(NotCommitted { why, is_full: false })) => Err(unavailable(why.clone())),
            (Some(Ok(value)), None) => Ok(value),
            (None, None) => Err(Error::internal("a write was not run")),
        };
        // The caller may have disconnected, but the commit is final.
        let _ = self.reply.send(result);
    }
}

//! The one writer: it takes what is queued, runs each job in a savepoint, commits once, then answers all.
//!
//! While one commit waits for the disk the next batch gathers, so `synchronous=FULL` costs one sync a batch.

use std::panic::{AssertUnwindSafe, catch_unwind};

use blockbase_query::{Param, Statement};
use blockbase_schema::{Error, Result};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::run_now;
use super::statement::{batch, execute};
use crate::OnCommit;
use crate::connection::{Connection, Effects, Inner};
use crate::error::DbError;

/// Jobs that may wait; a caller past it waits for a place.
const QUEUE_MAX: usize = 4096;
/// Jobs of one commit.
const JOBS_A_COMMIT_MAX: usize = 256;

/// A caller's write, on its way through the writer.
trait Job: Send {
    /// Whether the caller still waits.
    fn is_wanted(&self) -> bool;
    /// Runs the body; tells whether it wants to be committed.
    fn run(&mut self, connection: &mut Connection) -> bool;
    /// Hands the result to the caller, or what kept the commit from happening.
    fn answer(self: Box<Self>, not_committed: Option<&str>);
}

struct BodyJob<T, F> {
    body: Option<F>,
    result: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Job for BodyJob<T, F>
where
    T: Send,
    F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send,
{
    fn is_wanted(&self) -> bool {
        !self.reply.is_closed()
    }

    fn run(&mut self, connection: &mut Connection) -> bool {
        let Some(body) = self.body.take() else { return false };
        // A defect in one body must not end the writer for all.
        let result = catch_unwind(AssertUnwindSafe(|| run_now(body(connection))))
            .unwrap_or_else(|_| Err(Error::internal("a write panicked")));
        let commit = result.is_ok();
        self.result = Some(result);
        commit
    }

    fn answer(self: Box<Self>, not_committed: Option<&str>) {
        let result = match (self.result, not_committed) {
            (Some(Err(error)), _) => Err(error),
            (_, Some(why)) => Err(crate::unavailable(why.to_owned())),
            (Some(Ok(value)), None) => Ok(value),
            (None, None) => Err(Error::internal("a write was not run")),
        };
        // The caller may have gone; the commit stands all the same.
        let _ = self.reply.send(result);
    }
}

pub(super) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Box<dyn Job>>>>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Writer {
    pub(super) fn start(connection: Connection, on_commit: OnCommit) -> Result<Writer, String> {
        let (queue, jobs) = mpsc::channel(QUEUE_MAX);
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || work(connection, jobs, &on_commit))
            .map_err(|error| format!("The writer thread cannot be started: {error}"))?;
        Ok(Writer { queue: Mutex::new(Some(queue)), thread: Mutex::new(Some(thread)) })
    }

    pub(super) async fn write<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        let queue = self.queue.lock().clone().ok_or_else(|| crate::unavailable("the server is shutting down"))?;
        let (reply, answer) = oneshot::channel();
        let job: Box<dyn Job> = Box::new(BodyJob { body: Some(body), result: None, reply });
        queue.send(job).await.map_err(|_| crate::unavailable("the writer has ended"))?;
        drop(queue);
        answer.await.map_err(|_| crate::unavailable("the writer has ended"))?
    }

    /// Lets the queued writes finish and ends the thread.
    pub(super) async fn close(&self) {
        self.queue.lock().take();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

fn work(mut connection: Connection, mut jobs: mpsc::Receiver<Box<dyn Job>>, on_commit: &OnCommit) {
    let mut gathered: Vec<Box<dyn Job>> = Vec::with_capacity(JOBS_A_COMMIT_MAX);
    while jobs.blocking_recv_many(&mut gathered, JOBS_A_COMMIT_MAX) > 0 {
        let jobs: Vec<Box<dyn Job>> = gathered.drain(..).filter(|job| job.is_wanted()).collect();
        if jobs.is_empty() {
            continue;
        }
        commit(&mut connection, jobs, on_commit);
    }
    // The last connection to close folds the log into the file.
    drop(connection);
}

fn commit(connection: &mut Connection, mut jobs: Vec<Box<dyn Job>>, on_commit: &OnCommit) {
    connection.effects = Effects::default();
    let outcome = run_all(connection, &mut jobs);
    let effects = std::mem::take(&mut connection.effects);
    let failure = match outcome {
        Ok(()) => None,
        Err(error) => {
            // Where the engine has not rolled back by itself already.
            let _ = batch(connection, "ROLLBACK");
            tracing::error!(store.error = ?error, store.jobs = jobs.len(), "a commit failed; its writes are undone");
            Some(format!("the commit failed: {error:?}"))
        }
    };
    if failure.is_none() && !effects.events.is_empty() {
        on_commit(effects.events);
    }
    for job in jobs {
        job.answer(failure.as_deref());
    }
}

fn run_all(connection: &mut Connection, jobs: &mut [Box<dyn Job>]) -> Result<(), DbError> {
    batch(connection, "BEGIN IMMEDIATE")?;
    for job in jobs {
        batch(connection, "SAVEPOINT svc_job")?;
        let (events, counts) = (connection.effects.events.len(), connection.effects.counts.len());
        if !job.run(connection) {
            connection.effects.events.truncate(events);
            connection.effects.counts.truncate(counts);
            // Fails where the engine gave up the whole transaction (disk full, I/O error): then nothing of the batch stands.
            batch(connection, "ROLLBACK TO svc_job")?;
        }
        batch(connection, "RELEASE svc_job")?;
    }
    apply_counts(connection)?;
    batch(connection, "COMMIT")
}

/// One statement an object and commit, whatever the number of records.
fn apply_counts(connection: &mut Connection) -> Result<(), DbError> {
    let mut differences = std::collections::BTreeMap::new();
    for (object_id, difference) in std::mem::take(&mut connection.effects.counts) {
        *differences.entry(object_id).or_insert(0) += difference;
    }
    let Inner::Sqlite(driver) = &mut connection.inner else { return Ok(()) };
    for (object_id, difference) in differences.into_iter().filter(|(_, difference)| *difference != 0) {
        let statement = Statement {
            sql: "UPDATE svc_counts SET rows = rows + ?2 WHERE object_id = ?1".to_owned(),
            params: vec![Param::from(object_id), Param::from(difference)],
        };
        execute(driver, &statement)?;
    }
    Ok(())
}

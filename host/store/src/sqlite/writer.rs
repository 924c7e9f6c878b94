//! The one writer: it takes what is queued, runs each job in a savepoint, commits once, then answers all.
//!
//! While one commit waits for the disk the next batch gathers, so `synchronous=FULL` costs one sync a batch.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use blockbase_query::{Param, Statement};
use blockbase_schema::{Code, Error, Result};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::statement::{batch, db_error, execute};
use super::{SchemaState, run_now};
use crate::OnCommit;
use crate::connection::{Connection, Effects, Emitted, Inner, SearchChange};
use crate::error::DbError;
use crate::events::COMMIT_BYTES_FULL;

/// Jobs that may wait; a caller past it waits for a place.
const QUEUE_MAX: usize = 4096;
/// Jobs of one commit.
const JOBS_A_COMMIT_MAX: usize = 256;

/// A caller's write, on its way through the writer.
trait Job: Send {
    /// Whether it changes the schema, and so has a commit of its own.
    fn is_schema(&self) -> bool;
    /// Whether the caller still waits.
    fn is_wanted(&self) -> bool;
    /// Runs the body; tells whether it wants to be committed.
    fn run(&mut self, connection: &mut Connection) -> bool;
    /// Whether the body that ran found no room.
    fn found_no_room(&self) -> bool;
    /// Hands the result to the caller, or what kept the commit from happening.
    fn answer(self: Box<Self>, not_committed: Option<&NotCommitted>);
}

/// Why a commit did not happen.
struct NotCommitted {
    why: String,
    /// Whether there was no room for it.
    is_full: bool,
}

impl NotCommitted {
    fn new(what: &str, error: &DbError) -> NotCommitted {
        NotCommitted { why: format!("{what}: {error:?}"), is_full: matches!(error, DbError::StorageFull(_)) }
    }
}

struct BodyJob<T, F> {
    is_schema: bool,
    body: Option<F>,
    result: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
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
        // A defect in one body must not end the writer for all.
        let result = catch_unwind(AssertUnwindSafe(|| run_now(body(connection))))
            .unwrap_or_else(|_| Err(Error::internal("a write panicked")));
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
            (_, Some(NotCommitted { why, is_full: true })) => Err(crate::storage_full(Some(why.clone().into()))),
            (_, Some(NotCommitted { why, is_full: false })) => Err(crate::unavailable(why.clone())),
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
    pub(super) fn start(connection: Connection, on_commit: OnCommit, schema: Arc<SchemaState>) -> Result<Writer, String> {
        let (queue, jobs) = mpsc::channel(QUEUE_MAX);
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || work(connection, jobs, &on_commit, &schema))
            .map_err(|error| format!("The writer thread cannot be started: {error}"))?;
        Ok(Writer { queue: Mutex::new(Some(queue)), thread: Mutex::new(Some(thread)) })
    }

    pub(super) async fn write<T, F>(&self, is_schema: bool, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        let queue = self.queue.lock().clone().ok_or_else(|| crate::unavailable("the server is shutting down"))?;
        let (reply, answer) = oneshot::channel();
        let job: Box<dyn Job> = Box::new(BodyJob { is_schema, body: Some(body), result: None, reply });
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

fn work(mut connection: Connection, mut jobs: mpsc::Receiver<Box<dyn Job>>, on_commit: &OnCommit, schema: &SchemaState) {
    let mut gathered: Vec<Box<dyn Job>> = Vec::with_capacity(JOBS_A_COMMIT_MAX);
    while jobs.blocking_recv_many(&mut gathered, JOBS_A_COMMIT_MAX) > 0 {
        let mut batch: Vec<Box<dyn Job>> = Vec::with_capacity(gathered.len());
        for job in gathered.drain(..).filter(|job| job.is_wanted()) {
            match job.is_schema() {
                false => batch.push(job),
                true => {
                    commit(&mut connection, std::mem::take(&mut batch), on_commit, schema);
                    change_schema(&mut connection, job, on_commit, schema);
                }
            }
        }
        commit(&mut connection, batch, on_commit, schema);
    }
    // The last connection to close folds the log into the file.
    drop(connection);
}

/// Foreign keys can be turned off between transactions alone; with them on, dropping a table would delete its rows first.
fn change_schema(connection: &mut Connection, job: Box<dyn Job>, on_commit: &OnCommit, schema: &SchemaState) {
    let off = batch(connection, "PRAGMA foreign_keys = OFF");
    match off {
        Ok(()) => commit(connection, vec![job], on_commit, schema),
        Err(error) => job.answer(Some(&NotCommitted::new("foreign keys cannot be turned off", &error))),
    }
    let on = batch(connection, "PRAGMA foreign_keys = ON").and_then(|()| match &mut connection.inner {
        Inner::Sqlite(driver) => driver.pragma_query_value(None, "foreign_keys", |row| row.get::<_, bool>(0)).map_err(db_error),
        Inner::Postgres(_) => Ok(true),
    });
    if !matches!(on, Ok(true)) {
        // Without them references would rot silently. The writer ends, and with it every write, until the process starts anew.
        tracing::error!(store.error = ?on, "foreign keys cannot be turned on again; no more writes are taken");
        panic!("foreign keys stay off");
    }
}

fn commit(connection: &mut Connection, mut jobs: Vec<Box<dyn Job>>, on_commit: &OnCommit, schema: &SchemaState) {
    while !jobs.is_empty() {
        commit_some(connection, &mut jobs, on_commit, schema);
    }
}

/// Commits the first jobs, as many as one commit may have, and takes them out.
fn commit_some(connection: &mut Connection, jobs: &mut Vec<Box<dyn Job>>, on_commit: &OnCommit, schema: &SchemaState) {
    connection.effects = Effects::default();
    let before = schema.0.load(Ordering::Relaxed);
    let outcome = run_some(connection, jobs, schema);
    let effects = std::mem::take(&mut connection.effects);
    let mut ran = jobs.len();
    let failure = match outcome {
        Ok(committed) => {
            ran = committed;
            blockbase_telemetry::commit_batch(committed);
            if let Some(version) = effects.schema_version {
                schema.0.store(version * 2, Ordering::Release);
            }
            None
        }
        Err(error) => {
            // Where the engine has not rolled back by itself already.
            let _ = batch(connection, "ROLLBACK");
            schema.0.store(before, Ordering::Release);
            tracing::error!(store.error = ?error, store.jobs = jobs.len(), "a commit failed; its writes are undone");
            Some(NotCommitted::new("the commit failed", &error))
        }
    };
    if failure.is_none()
        && let Some(commit) = effects.commit()
    {
        on_commit(commit);
    }
    for job in jobs.drain(..ran) {
        job.answer(failure.as_ref());
    }
}

/// Runs jobs in order until all have run or their events fill a commit: how many.
fn run_some(connection: &mut Connection, jobs: &mut [Box<dyn Job>], schema: &SchemaState) -> Result<usize, DbError> {
    batch(connection, "BEGIN IMMEDIATE")?;
    // What is committed together is held in memory until then.
    let (mut ran, mut event_bytes) = (0, 0);
    for job in jobs {
        if event_bytes > COMMIT_BYTES_FULL {
            break;
        }
        ran += 1;
        connection.effects.emitted = Emitted::default();
        batch(connection, "SAVEPOINT svc_job")?;
        let effects = &connection.effects;
        let (events, topics) = (effects.events.len(), effects.topics.len());
        let (counts, search) = (effects.counts.len(), effects.search.len());
        if !job.run(connection) {
            connection.effects.events.truncate(events);
            // A group that has nothing to get after all is looked at in vain, and that is all.
            connection.effects.topics.truncate(topics);
            connection.effects.counts.truncate(counts);
            connection.effects.search.truncate(search);
            connection.effects.schema_version = None;
            // Fails where the engine gave up the whole transaction (disk full, I/O error): then nothing of the batch stands.
            // The error then says that the savepoint is gone; only the job knows that there was no room.
            batch(connection, "ROLLBACK TO svc_job").map_err(|error| match job.found_no_room() {
                true => DbError::StorageFull(format!("{error:?}").into()),
                false => error,
            })?;
        } else {
            event_bytes += connection.effects.emitted.bytes;
        }
        batch(connection, "RELEASE svc_job")?;
    }
    apply_counts(connection)?;
    apply_search(connection)?;
    if let Some(version) = connection.effects.schema_version {
        schema.0.store(version * 2 - 1, Ordering::Release);
    }
    batch(connection, "COMMIT")?;
    Ok(ran)
}

/// The search indexes once a commit and in the order of rows: each savepoint, and each step back, would end a segment of theirs.
fn apply_search(connection: &mut Connection) -> Result<(), DbError> {
    let mut last: BTreeMap<(i64, i64), SearchChange> = BTreeMap::new();
    for mut change in std::mem::take(&mut connection.effects.search) {
        let place = (change.object_id, change.row);
        // What counts is whether the index knew the row before the transaction: one that was made in it is not there yet, one
        // that was deleted in it and whose number another took is.
        change.is_new = last.get(&place).map_or(change.is_new, |before| before.is_new);
        last.insert(place, change);
    }
    let Inner::Sqlite(driver) = &mut connection.inner else { return Ok(()) };
    let mut apply = |verb: &str, object_id: i64, params: Vec<Param>| {
        let sql = match verb {
            "delete" => format!("DELETE FROM svc_ft_{object_id} WHERE rowid = ?1"),
            _ => format!("INSERT INTO svc_ft_{object_id} (rowid, document) VALUES (?1, ?2)"),
        };
        execute(driver, &Statement { sql, params }).map(|_| ())
    };
    for change in last.values().filter(|change| !change.is_new) {
        apply("delete", change.object_id, vec![change.row.into()])?;
    }
    for (_, change) in last {
        if let Some(document) = change.document {
            apply("insert", change.object_id, vec![change.row.into(), document.into()])?;
        }
    }
    Ok(())
}

/// One statement an object and commit, whatever the number of records.
fn apply_counts(connection: &mut Connection) -> Result<(), DbError> {
    let mut differences = BTreeMap::new();
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::AtomicI64;

    use super::super::Session;
    use super::*;

    fn queued<F>(body: F) -> (Box<dyn Job>, oneshot::Receiver<Result<u64>>)
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<u64>> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        (Box::new(BodyJob { is_schema: false, body: Some(body), result: None, reply }), answer)
    }

    fn storing(bytes: i64) -> (Box<dyn Job>, oneshot::Receiver<Result<u64>>) {
        queued(move |connection| {
            Box::pin(async move { Ok(connection.run("INSERT INTO t VALUES (zeroblob($1))", vec![Param::from(bytes)]).await?) })
        })
    }

    #[test]
    fn a_commit_whose_events_are_large_takes_no_further_job() {
        for (bytes, commits) in [(1, 1), (COMMIT_BYTES_FULL, 2), (COMMIT_BYTES_FULL + 1, 3)] {
            let session = Session::open(Path::new(":memory:"), true).expect("a database");
            let (queue, jobs) = mpsc::channel(3);
            let mut answers = Vec::new();
            for _ in 0..3 {
                let (job, answer) = queued(move |connection| {
                    connection.effects.emitted.bytes += bytes;
                    connection.effects.topics.push("data.task.created".to_owned());
                    Box::pin(async { Ok(0) })
                });
                assert!(queue.try_send(job).is_ok());
                answers.push(answer);
            }
            drop(queue);
            let seen = Arc::new(AtomicI64::new(0));
            let counted = Arc::clone(&seen);
            let on_commit: OnCommit = Arc::new(move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
            });
            work(Connection::new(Inner::Sqlite(session)), jobs, &on_commit, &SchemaState(AtomicI64::new(2)));
            for answer in answers {
                answer.blocking_recv().expect("an answer").expect("a commit");
            }
            assert_eq!(seen.load(Ordering::Relaxed), commits, "{bytes}");
        }
    }

    #[test]
    fn where_one_job_finds_no_room_all_of_its_commit_are_told_so() {
        let session = Session::open(Path::new(":memory:"), true).expect("a database");
        session.execute_batch("CREATE TABLE t (b BLOB)").expect("a table");
        session.pragma_update(None, "max_page_count", 50).expect("a bound");
        let ((small, first), (large, second), (other, third)) = (storing(1), storing(1_000_000), storing(1));
        let (queue, jobs) = mpsc::channel(3);
        for job in [small, large, other] {
            assert!(queue.try_send(job).is_ok());
        }
        drop(queue);
        let on_commit: OnCommit = Arc::new(|_| {});
        work(Connection::new(Inner::Sqlite(session)), jobs, &on_commit, &SchemaState(AtomicI64::new(2)));
        for answer in [first, second, third] {
            let error = answer.blocking_recv().expect("an answer").expect_err("no room");
            assert_eq!(error.code, Code::StorageFull);
        }
    }
}

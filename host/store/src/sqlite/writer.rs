//! The only writer. It takes queued jobs, runs each in a savepoint, commits once, and then answers all callers.
//!
//! While one commit waits for the disk, jobs for the next batch arrive. So `synchronous=FULL` costs one sync for each batch.
//! Callers are served in turn, and the service's own jobs alternate with theirs. So a caller with many or large writes delays
//! only their own writes. A commit takes the jobs that waited when it began. It ends early if they have written much or taken
//! long.

mod job;
mod queue;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use std::time::{Duration, Instant};

use blockbase_query::{Param, Statement};
use blockbase_quota::QuotaOwner;
use blockbase_schema::Result;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use job::{BodyJob, Job, NotCommitted};
use queue::Queue;

use super::transaction::SchemaState;
use crate::commit::OnCommit;
use crate::connection::{Connection, Effects, Emitted, Inner, SearchChange};
use crate::drivers::sqlite::statement::{db_error, execute};
use crate::error::{DbError, unavailable};
use crate::events::COMMIT_BYTES_FULL;
use crate::sql_trace::trace_sql;

/// The maximum number of jobs in one commit.
const JOBS_A_COMMIT_MAX: usize = 256;
/// After this time, no further job begins in a commit. Each caller in the commit waits for all of its jobs.
const JOBS_TIME_A_COMMIT: Duration = Duration::from_millis(50);

pub(super) struct Writer {
    queue: Arc<Queue>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Writer {
    pub(super) fn start(connection: Connection, on_commit: OnCommit, schema: Arc<SchemaState>) -> Result<Writer, String> {
        let queue = Arc::new(Queue::new());
        let jobs = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || work(connection, &jobs, &on_commit, &schema))
            .map_err(|error| format!("The writer thread cannot be started: {error}"))?;
        Ok(Writer { queue, thread: Mutex::new(Some(thread)) })
    }

    pub(super) async fn write<T, F>(&self, owner: QuotaOwner, is_schema: bool, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        // The place is kept until the job is answered.
        let _place = self.queue.place(&owner).await?;
        let (reply, answer) = oneshot::channel();
        let job: Box<dyn Job> = Box::new(BodyJob { is_schema, body: Some(body), result: None, reply });
        let queued = self.queue.push(owner, job)?;
        let answer = answer.await;
        queued.answered();
        answer.map_err(|_| unavailable("the writer has ended"))?
    }

    /// Lets the queued writes finish and ends the thread.
    pub(super) async fn close(&self) {
        self.queue.close();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

fn work(mut connection: Connection, queue: &Queue, on_commit: &OnCommit, schema: &SchemaState) {
    // When the thread ends for any reason, no caller may wait for it any more.
    let _closed = queue.close_on_drop();
    let mut held_back = None;
    while let Some(job) = held_back.take().or_else(|| queue.wait()) {
        if !job.is_wanted() {
            continue;
        }
        match job.is_schema() {
            false => held_back = commit(&mut connection, job, Some(queue), on_commit, schema),
            true => change_schema(&mut connection, job, on_commit, schema),
        }
    }
    // The connection that closes last copies the log into the file.
    drop(connection);
}

/// Runs a change of the schema. Foreign keys are off, because dropping a table would delete its rows first. They can only be turned off
/// between transactions.
fn change_schema(connection: &mut Connection, job: Box<dyn Job>, on_commit: &OnCommit, schema: &SchemaState) {
    let off = connection.batch("PRAGMA foreign_keys = OFF");
    match off {
        Ok(()) => drop(commit(connection, job, None, on_commit, schema)),
        Err(error) => job.answer(Some(&NotCommitted::new("foreign keys cannot be turned off", &error))),
    }
    let on = connection.batch("PRAGMA foreign_keys = ON").and_then(|()| match &mut connection.inner {
        Inner::Sqlite(driver) => driver.pragma_query_value(None, "foreign_keys", |row| row.get::<_, bool>(0)).map_err(db_error),
        Inner::Postgres(_) => Ok(true),
    });
    if !matches!(on, Ok(true)) {
        // Without foreign keys, nobody would notice broken references. So the writer ends, and all writes fail until the process
        // restarts.
        tracing::error!(store.error = ?on, "foreign keys cannot be turned on again; no more writes are taken");
        panic!("foreign keys stay off");
    }
}

/// Commits a job together with jobs that wait in the queue, if it may share a commit. If the queue has a job that needs a
/// separate commit, returns that job.
fn commit(
    connection: &mut Connection,
    first: Box<dyn Job>,
    queue: Option<&Queue>,
    on_commit: &OnCommit,
    schema: &SchemaState,
) -> Option<Box<dyn Job>> {
    connection.effects = Effects::default();
    let before = schema.0.load(Ordering::Relaxed);
    let (mut jobs, mut held_back) = (vec![first], None);
    let outcome = run_all(connection, &mut jobs, queue, &mut held_back, schema);
    let effects = std::mem::take(&mut connection.effects);
    let failure = match outcome {
        Ok(()) => {
            blockbase_telemetry::commit_batch(jobs.len());
            if let Some(version) = effects.schema_version {
                schema.0.store(version * 2, Ordering::Release);
            }
            None
        }
        Err(error) => {
            // The engine may already have rolled back by itself.
            let _ = connection.batch("ROLLBACK");
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
    for job in jobs {
        job.answer(failure.as_ref());
    }
    held_back
}

/// Runs the first job, and then the jobs that waited when it began.
fn run_all(
    connection: &mut Connection,
    jobs: &mut Vec<Box<dyn Job>>,
    queue: Option<&Queue>,
    held_back: &mut Option<Box<dyn Job>>,
    schema: &SchemaState,
) -> Result<(), DbError> {
    connection.batch("BEGIN IMMEDIATE")?;
    let begun = Instant::now();
    let mut further = queue.map_or(0, Queue::len).min(JOBS_A_COMMIT_MAX - 1);
    // The events of one commit stay in memory until the commit, so their size is limited.
    let mut event_bytes = 0;
    if let [first, ..] = jobs.as_mut_slice() {
        event_bytes += run_one(connection, first.as_mut())?;
    }
    while let Some(queue) = queue
        && further > 0
        && event_bytes <= COMMIT_BYTES_FULL
        && begun.elapsed() < JOBS_TIME_A_COMMIT
        && let Some(mut job) = queue.next()
    {
        further -= 1;
        if job.is_schema() {
            *held_back = Some(job);
            break;
        }
        if !job.is_wanted() {
            continue;
        }
        let ran = run_one(connection, job.as_mut());
        jobs.push(job);
        event_bytes += ran?;
    }
    apply_counts(connection)?;
    apply_search(connection)?;
    if let Some(version) = connection.effects.schema_version {
        schema.0.store(version * 2 - 1, Ordering::Release);
    }
    connection.batch("COMMIT")
}

/// Runs a job in a savepoint, and undoes it if it fails. Returns the number of bytes of its events.
fn run_one(connection: &mut Connection, job: &mut dyn Job) -> Result<usize, DbError> {
    connection.effects.emitted = Emitted::default();
    connection.batch("SAVEPOINT svc_job")?;
    let before = connection.effects.begin_nested();
    if job.run(connection) {
        connection.effects.commit_nested(before);
    } else {
        connection.effects.undo_nested(before);
        // This fails if the engine rolled back the whole transaction (disk full, I/O error). Then all jobs of the batch are
        // undone. The error says only that the savepoint is gone, so the job tells whether there was no room.
        connection.batch("ROLLBACK TO svc_job").map_err(|error| match job.found_no_room() {
            true => DbError::StorageFull(format!("{error:?}").into()),
            false => error,
        })?;
    }
    connection.batch("RELEASE svc_job")?;
    Ok(connection.effects.emitted.bytes)
}

/// Writes the search indexes once for each commit, in the order of rows. Otherwise, each savepoint and each rollback to a
/// savepoint would end a segment of the index.
fn apply_search(connection: &mut Connection) -> Result<(), DbError> {
    let mut last: BTreeMap<(i64, i64), SearchChange> = BTreeMap::new();
    for mut change in std::mem::take(&mut connection.effects.search) {
        let place = (change.object_id, change.row);
        // The index has to know whether it contained the row before the transaction. It did not contain a row that the
        // transaction has made. It did contain a row that the transaction has deleted, even if a new row has the same number.
        change.is_new = last.get(&place).map_or(change.is_new, |before| before.is_new);
        last.insert(place, change);
    }
    let Inner::Sqlite(driver) = &mut connection.inner else { return Ok(()) };
    let mut apply = |verb: &str, object_id: i64, params: Vec<Param>| {
        let sql = match verb {
            "delete" => format!("DELETE FROM svc_ft_{object_id} WHERE rowid = ?1"),
            _ => format!("INSERT INTO svc_ft_{object_id} (rowid, document) VALUES (?1, ?2)"),
        };
        let statement = Statement { sql: sql.into(), params };
        trace_sql(&statement.sql);
        execute(driver, &statement).map(|_| ())
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

/// Runs one statement for each object and commit. The number of records does not matter.
fn apply_counts(connection: &mut Connection) -> Result<(), DbError> {
    let mut differences = BTreeMap::new();
    for (object_id, difference) in std::mem::take(&mut connection.effects.counts) {
        *differences.entry(object_id).or_insert(0) += difference;
    }
    let Inner::Sqlite(driver) = &mut connection.inner else { return Ok(()) };
    for (object_id, difference) in differences.into_iter().filter(|(_, difference)| *difference != 0) {
        let statement = Statement {
            sql: "UPDATE svc_counts SET rows = rows + ?2 WHERE object_id = ?1".to_owned().into(),
            params: vec![Param::from(object_id), Param::from(difference)],
        };
        trace_sql(&statement.sql);
        execute(driver, &statement)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::AtomicI64;

    use blockbase_schema::{Code, Error};

    use super::*;
    use crate::committed_event::{CommittedEvent, EventText};
    use crate::drivers::sqlite::Session;

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
            let queue = Queue::new();
            let mut answers = Vec::new();
            for _ in 0..3 {
                let (job, answer) = queued(move |connection| {
                    connection.effects.emitted.bytes += bytes;
                    connection.effects.topics.push("data.task.created".to_owned());
                    Box::pin(async { Ok(0) })
                });
                queue.push(QuotaOwner::Service, job).expect("an open queue").answered();
                answers.push(answer);
            }
            queue.close();
            let seen = Arc::new(AtomicI64::new(0));
            let counted = Arc::clone(&seen);
            let on_commit: OnCommit = Arc::new(move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
            });
            work(Connection::new(Inner::Sqlite(session)), &queue, &on_commit, &SchemaState(AtomicI64::new(2)));
            for answer in answers {
                answer.blocking_recv().expect("an answer").expect("a commit");
            }
            assert_eq!(seen.load(Ordering::Relaxed), commits, "{bytes}");
        }
    }

    /// A job that has every effect. It fails at its end if `fails` is true.
    fn with_effects(number: i64, fails: bool) -> (Box<dyn Job>, oneshot::Receiver<Result<u64>>) {
        queued(move |connection| {
            Box::pin(async move {
                connection.run("INSERT INTO t VALUES ($1)", vec![Param::from(number)]).await?;
                connection.index_row(number, Some(number), None);
                connection.count_rows(number, 1);
                let text = EventText { id: "e", topic: "data.task.created", payload: "{}", occurred_at: 0 };
                let effects = &mut connection.effects;
                effects.events.push(Arc::new(CommittedEvent::new(number, &text, None, None, 0)));
                effects.emitted.bytes += 100;
                effects.topics.push(format!("topic {number}"));
                effects.consumers.insert(format!("group {number}"));
                effects.schema_version = Some(number);
                if fails { Err(Error::internal("the job fails")) } else { Ok(0) }
            })
        })
    }

    #[test]
    fn a_job_that_is_rolled_back_leaves_no_effect() {
        let session = Session::open(Path::new(":memory:"), true).expect("a database");
        session.execute_batch("CREATE TABLE t (number INTEGER)").expect("a table");
        let mut connection = Connection::new(Inner::Sqlite(session));
        connection.batch("BEGIN IMMEDIATE").expect("a transaction");
        for (number, fails, bytes) in [(1, false, 100), (2, true, 0), (3, false, 100), (4, true, 0)] {
            let (mut job, _answer) = with_effects(number, fails);
            assert_eq!(run_one(&mut connection, job.as_mut()).expect("a savepoint"), bytes, "{number}");
        }
        let effects = &connection.effects;
        assert_eq!(effects.events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(effects.search.iter().map(|change| change.row).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(effects.counts, [(1, 1), (3, 1)]);
        assert_eq!(effects.topics, ["topic 1", "topic 3"]);
        assert_eq!(effects.consumers.iter().collect::<Vec<_>>(), ["group 1", "group 3"]);
        assert_eq!((effects.schema_version, effects.emitted.bytes), (Some(3), 0));
        let Inner::Sqlite(driver) = &connection.inner else { panic!("the engine is SQLite") };
        let stored: String =
            driver.query_row("SELECT group_concat(number) FROM t", [], |row| row.get(0)).expect("the rows that stay");
        assert_eq!(stored, "1,3");
    }

    #[test]
    fn where_one_job_finds_no_room_all_of_its_commit_are_told_so() {
        let session = Session::open(Path::new(":memory:"), true).expect("a database");
        session.execute_batch("CREATE TABLE t (b BLOB)").expect("a table");
        session.pragma_update(None, "max_page_count", 50).expect("a bound");
        let ((small, first), (large, second), (other, third)) = (storing(1), storing(1_000_000), storing(1));
        let queue = Queue::new();
        for job in [small, large, other] {
            queue.push(QuotaOwner::Service, job).expect("an open queue").answered();
        }
        queue.close();
        let on_commit: OnCommit = Arc::new(|_| {});
        work(Connection::new(Inner::Sqlite(session)), &queue, &on_commit, &SchemaState(AtomicI64::new(2)));
        for answer in [first, second] {
            let error = answer.blocking_recv().expect("an answer").expect_err("no room");
            assert_eq!(error.code, Code::StorageFull);
        }
        assert_eq!(third.blocking_recv().expect("an answer").expect("room for what is small"), 1);
    }
}

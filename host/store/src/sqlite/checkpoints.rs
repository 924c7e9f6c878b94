//! Copies the write-ahead log into the file while the writer goes on.
//!
//! By default, SQLite copies the log on the thread of the writer, at the end of a commit. All callers would then wait until the
//! changed pages of the file are on the disk, which takes longer than several commits. Here, another thread copies them and waits
//! for the disk. SQLite begins the log anew only after it was copied to its end, and while others commit, this thread does not
//! reach the end. So when the log is long, the writer copies the rest of it, which is short, between two commits.

use std::cell::Cell;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use rusqlite::Connection as Driver;

use crate::connection::{Connection, Inner};
use crate::drivers::sqlite::Session;

/// The number of new pages in the log, of 4 KB each, after which they are copied.
const PAGES_A_COPY: u32 = 1_000;
/// From this number of pages in the log, the writer copies the rest of it. They have half of the bytes that make scans wait until
/// the log is truncated.
const LOG_PAGES_MAX: u32 = 8_192;

/// Held while the log is copied. SQLite refuses to copy it twice at the same time.
pub(super) type CheckpointLock = Arc<Mutex<()>>;

thread_local! {
    /// The number of pages in the log after this thread's last commit.
    static LOG_PAGES: Cell<u32> = const { Cell::new(0) };
}

/// Makes the commits of the writer's connection note the length of the log, and no longer copy it.
fn watch(session: &Session) {
    session.wal_hook(Some(|_, pages| {
        LOG_PAGES.set(u32::try_from(pages).unwrap_or(0));
        Ok(())
    }));
}

/// Copies as much of the log as readers allow, without waiting for them.
fn copy(driver: &Driver) -> rusqlite::Result<()> {
    driver.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// The copying of the log, as the writer sees it. By default there is no thread that copies.
#[derive(Default)]
pub(super) struct Checkpoints {
    schedule: Schedule,
    lock: CheckpointLock,
    /// Tells the thread that a copy is due. The thread ends when this is dropped.
    due: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpoints {
    /// Starts the thread. From now on, `writer` does not copy the log within its commits.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(super) fn start(file: &Path, writer: &Session, lock: CheckpointLock) -> Result<Checkpoints, String> {
        let explain =
            |error: &dyn std::fmt::Display| format!("The log of the SQLite file {} cannot be copied: {error}", file.display());
        let session = Session::open(file, false).map_err(|error| explain(&error))?;
        // It is never closed. When a process closes any descriptor of a file, it loses the locks that SQLite has on that file.
        let pages = ManuallyDrop::new(File::open(file).map_err(|error| explain(&error))?);
        let (due, asked) = sync_channel(1);
        let shared = Arc::clone(&lock);
        let thread = std::thread::Builder::new()
            .name("sqlite-checkpoints".to_owned())
            .spawn(move || copy_when_due(&session, &pages, &asked, &shared))
            .map_err(|error| explain(&error))?;
        watch(writer);
        Ok(Checkpoints { schedule: Schedule::default(), lock, due: Some(due), thread: Some(thread) })
    }

    /// Does what is due after the writer's last commit.
    pub(super) fn after_commit(&mut self, connection: &Connection) {
        match self.schedule.due(LOG_PAGES.get()) {
            Due::Nothing => {}
            Due::Copy => {
                // If the channel is full, a copy that has not begun yet includes these pages.
                if let Some(due) = &self.due {
                    let _ = due.try_send(());
                }
            }
            Due::Rest => self.copy_now(connection),
        }
    }

    /// Copies the log to its end, on the thread of the writer. If no reader needs the log, the next commit begins it anew.
    pub(super) fn copy_now(&self, connection: &Connection) {
        let Inner::Sqlite(session) = &connection.inner else { return };
        let _lock = self.lock.lock();
        if let Err(error) = copy(session) {
            tracing::warn!(store.error = ?error, "the writer could not copy the write-ahead log; it tries again later");
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.due.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The work of the thread.
fn copy_when_due(session: &Session, pages: &File, asked: &Receiver<()>, lock: &Mutex<()>) {
    while asked.recv().is_ok() {
        let copied = {
            let _lock = lock.lock();
            copy(session)
        };
        if let Err(error) = copied {
            tracing::debug!(store.error = ?error, "the write-ahead log could not be copied; it is tried again later");
            continue;
        }
        // SQLite itself only waits for the disk when the log was copied to its end. If these pages are on the disk by then, the
        // writer does not wait for them.
        if let Err(error) = pages.sync_data() {
            tracing::debug!(store.error = ?error, "copied pages may not be on the disk yet; SQLite waits for them later");
        }
    }
}

/// What is due after a commit.
#[derive(Debug, PartialEq, Eq)]
enum Due {
    Nothing,
    /// The thread copies the log, as far as it goes by then.
    Copy,
    /// The writer copies what is left.
    Rest,
}

/// Decides when the log is copied.
#[derive(Default)]
struct Schedule {
    /// The number of pages in the log when a copy was last due.
    last: u32,
}

impl Schedule {
    /// `pages` is the number of pages in the log.
    fn due(&mut self, pages: u32) -> Due {
        // The log has begun anew.
        if pages < self.last {
            self.last = 0;
        }
        if pages - self.last < PAGES_A_COPY {
            return Due::Nothing;
        }
        self.last = pages;
        if pages < LOG_PAGES_MAX { Due::Copy } else { Due::Rest }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test waits for a thread, and its own thread serves nobody")]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A file with a table `t`, and the writer's connection to it.
    fn written() -> (tempfile::TempDir, Connection, Checkpoints) {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("svc.db");
        let session = Session::open(&file, true).expect("a database");
        session.execute_batch("CREATE TABLE t (b BLOB)").expect("a table");
        let checkpoints = Checkpoints::start(&file, &session, CheckpointLock::default()).expect("a thread");
        (place, Connection::new(Inner::Sqlite(session)), checkpoints)
    }

    /// Commits a row that has at least so many pages.
    fn commit(connection: &Connection, pages: u32) {
        let Inner::Sqlite(session) = &connection.inner else { panic!("the engine is SQLite") };
        session.execute("INSERT INTO t VALUES (zeroblob(?1))", [i64::from(pages) * 4096]).expect("a commit");
    }

    /// The numbers of pages in the log, and of those that were copied.
    fn log(connection: &Connection) -> (u32, u32) {
        let Inner::Sqlite(session) = &connection.inner else { panic!("the engine is SQLite") };
        let state = session.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| Ok((row.get(1)?, row.get(2)?)));
        state.expect("the state of the log")
    }

    #[test]
    fn another_thread_copies_the_log() {
        let (_place, connection, mut checkpoints) = written();
        commit(&connection, 10);
        checkpoints.after_commit(&connection);
        assert_eq!(log(&connection).1, 0, "the log is short");
        commit(&connection, PAGES_A_COPY);
        assert_eq!(log(&connection).1, 0, "the commit does not copy it");
        checkpoints.after_commit(&connection);
        loop {
            let (pages, copied) = log(&connection);
            if copied == pages {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(LOG_PAGES.get(), log(&connection).0);
    }

    #[test]
    fn a_long_log_is_copied_by_the_writer_and_begins_anew() {
        let (_place, connection, mut checkpoints) = written();
        commit(&connection, LOG_PAGES_MAX);
        checkpoints.after_commit(&connection);
        let (pages, copied) = log(&connection);
        assert!(copied == pages && pages >= LOG_PAGES_MAX, "{copied} of {pages}");
        commit(&connection, 10);
        let (pages, copied) = log(&connection);
        assert!(copied == 0 && pages < 100, "{copied} of {pages}");
    }

    #[test]
    fn a_reader_of_an_old_snapshot_sees_it_after_the_log_was_copied() {
        let (place, connection, mut checkpoints) = written();
        let reader = Session::open(&place.path().join("svc.db"), false).expect("a reader");
        let count = || reader.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).expect("a number");
        reader.execute_batch("BEGIN").expect("a snapshot");
        assert_eq!(count(), 0);
        commit(&connection, LOG_PAGES_MAX);
        checkpoints.after_commit(&connection);
        assert_eq!(count(), 0);
        let (pages, copied) = log(&connection);
        assert!(copied < pages, "{copied} of {pages}");
        reader.execute_batch("COMMIT").expect("the end of the snapshot");
        assert_eq!(count(), 1);
        checkpoints.copy_now(&connection);
        let (pages, copied) = log(&connection);
        assert_eq!(copied, pages);
    }

    #[test]
    fn a_copy_is_due_after_so_many_new_pages() {
        use Due::{Copy, Nothing, Rest};
        let mut schedule = Schedule::default();
        let dues: Vec<Due> = [10, 999, 1_000, 1_500, 2_100, 500, 1_499, 1_500, 9_000, 9_500, 10_000]
            .into_iter()
            .map(|pages| schedule.due(pages))
            .collect();
        assert_eq!(dues, [Nothing, Nothing, Copy, Nothing, Copy, Nothing, Copy, Nothing, Rest, Nothing, Rest]);
    }
}

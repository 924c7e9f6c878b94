//! SQLite: a pool of readers on WAL and the one writer.

mod functions;
mod statement;
mod writer;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use blockbase_schema::{Error, Result};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::{Connection as Driver, OpenFlags};
use tokio::sync::Semaphore;

use crate::connection::{Connection, Inner};
use crate::error::DbError;
use crate::{OnCommit, ReadCost, migrate};

use statement::Watch;
pub(crate) use statement::{execute, fetch, fetch_json, fetch_record, fetch_records};

/// Reads that may scan, at a time.
const SCANS_MAX: usize = 4;
/// Steps of SQLite's virtual machine that a read of unknown cost may take on the calling thread: about a millisecond.
const BUDGET_STEPS: i32 = 50_000;
/// How often a scan looks whether somebody still waits for it, in the same steps.
const SCAN_STEPS: i32 = 200_000;
/// How long a scan may take, as a statement on Postgres.
const SCAN_TIME_MAX: Duration = Duration::from_secs(60);
/// Prepared statements kept by each connection.
const STATEMENTS_KEPT: usize = 256;
/// Page cache of one reader, in KiB.
const READER_CACHE_KIB: i64 = 4 * 1024;
/// Page cache of the writer, in KiB.
const WRITER_CACHE_KIB: i64 = 16 * 1024;
/// How much of the file a connection maps, the most that SQLite maps: reads then come from the cache of the system, which all
/// connections share. docs/benchmarks.md has what less of it costs.
const MAPPED_BYTES: i64 = 2 * 1024 * 1024 * 1024 - 64 * 1024;
/// How long a connection waits for a lock that a foreign process (a backup, a shell) holds.
const BUSY_WAIT: Duration = Duration::from_secs(5);

pub(crate) struct Sqlite {
    file: std::path::PathBuf,
    idle: Mutex<Vec<Connection>>,
    idle_max: usize,
    scans: std::sync::Arc<Semaphore>,
    writer: writer::Writer,
    schema: std::sync::Arc<SchemaState>,
}

/// The version of the schema, so that a read learns whether it changed under it.
///
/// Twice the version, and one less while it is being committed.
pub(crate) struct SchemaState(AtomicI64);

impl SchemaState {
    fn is(&self, version: i64) -> bool {
        self.0.load(Ordering::Acquire) == version * 2
    }

    fn check(&self, expected: Option<i64>) -> Result<(), DbError> {
        match expected.is_none_or(|version| self.is(version)) {
            true => Ok(()),
            false => Err(DbError::SchemaMoved("the schema has another version by now".into())),
        }
    }
}

impl Sqlite {
    pub(crate) fn open(file: &Path, connections_max: Option<u32>, on_commit: OnCommit) -> Result<Sqlite, String> {
        let explain = |error: DbError| format!("The SQLite file {} cannot be opened: {error:?}", file.display());
        let mut writer = open_driver(file, true).map_err(|error| explain(statement::db_error(error)))?;
        migrate::sqlite(&mut writer)?;
        let version: i64 = writer
            .query_row("SELECT version FROM svc_versions WHERE name = 'schema'", [], |row| row.get(0))
            .map_err(|error| explain(statement::db_error(error)))?;
        let schema = std::sync::Arc::new(SchemaState(AtomicI64::new(version * 2)));
        Ok(Sqlite {
            file: file.to_owned(),
            idle: Mutex::new(Vec::new()),
            idle_max: connections_max.map_or(8, |most| most as usize),
            scans: std::sync::Arc::new(Semaphore::new(SCANS_MAX)),
            writer: writer::Writer::start(Connection::new(Inner::Sqlite(writer)), on_commit, std::sync::Arc::clone(&schema))?,
            schema,
        })
    }

    fn take(&self) -> Result<Connection, DbError> {
        if let Some(connection) = self.idle.lock().pop() {
            return Ok(connection);
        }
        let driver = open_driver(&self.file, false).map_err(statement::db_error)?;
        Ok(Connection::new(Inner::Sqlite(driver)))
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock();
        if idle.len() < self.idle_max {
            idle.push(connection);
        }
    }

    /// Runs a body that reads, in one view of the database, and makes sure that it was on the expected schema all the time.
    fn read_on<T, F>(&self, mut connection: Connection, schema: Option<i64>, body: F) -> Result<T>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>>,
    {
        self.schema.check(schema)?;
        statement::batch(&mut connection, "BEGIN")?;
        let answer = run_now(body(&mut connection));
        // A connection whose transaction cannot be ended is dropped, not reused.
        if statement::batch(&mut connection, "COMMIT").is_ok() {
            self.give_back(connection);
        }
        self.schema.check(schema)?;
        answer
    }

    pub(crate) async fn read<T, F>(self: &std::sync::Arc<Self>, cost: ReadCost, schema: Option<i64>, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        match cost {
            ReadCost::Rows => self.read_on(self.take()?, schema, body),
            ReadCost::Scan => {
                let permit = std::sync::Arc::clone(&self.scans).acquire_owned().await.map_err(crate::unavailable)?;
                let sqlite = std::sync::Arc::clone(self);
                let abandoned = std::sync::Arc::new(AtomicBool::new(false));
                // Raised when this future is dropped: nobody waits for the scan any more.
                let _raise = RaiseOnDrop(std::sync::Arc::clone(&abandoned));
                let scan = move || {
                    let _permit = permit;
                    let mut connection = sqlite.take()?;
                    statement::watch(
                        &mut connection,
                        Some((SCAN_STEPS, Watch::Abandoned(abandoned, Instant::now() + SCAN_TIME_MAX))),
                    )?;
                    sqlite.read_on(connection, schema, move |connection| {
                        Box::pin(async move {
                            let answer = body(connection).await;
                            statement::watch(connection, None)?;
                            answer
                        })
                    })
                };
                tokio::task::spawn_blocking(scan).await.map_err(Error::internal)?
            }
        }
    }

    pub(crate) async fn read_of_unknown_cost<T, F>(self: &std::sync::Arc<Self>, schema: i64, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> Fn(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + Sync + 'static,
    {
        let body = std::sync::Arc::new(body);
        let spent = std::sync::Arc::new(AtomicBool::new(false));
        let within_budget = {
            let connection = self.take()?;
            let (flag, body) = (std::sync::Arc::clone(&spent), std::sync::Arc::clone(&body));
            self.read_on(connection, Some(schema), move |connection| {
                Box::pin(async move {
                    statement::watch(connection, Some((BUDGET_STEPS, Watch::Budget(flag))))?;
                    let answer = body(connection).await;
                    statement::watch(connection, None)?;
                    answer
                })
            })
        };
        match spent.load(Ordering::Relaxed) {
            false => within_budget,
            true => self.read(ReadCost::Scan, Some(schema), move |connection| body(connection)).await,
        }
    }

    pub(crate) async fn write<T, F>(&self, is_schema: bool, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        self.writer.write(is_schema, body).await
    }

    pub(crate) async fn close(&self) {
        self.writer.close().await;
        self.idle.lock().clear();
    }
}

/// Raises a flag when it is dropped.
struct RaiseOnDrop(std::sync::Arc<AtomicBool>);

impl Drop for RaiseOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a body's future to its end. On SQLite none ever waits, so one poll is all.
fn run_now<T>(future: BoxFuture<'_, Result<T>>) -> Result<T> {
    future.now_or_never().unwrap_or_else(|| Err(Error::internal("a body waited for something other than its connection")))
}

fn open_driver(file: &Path, is_writer: bool) -> rusqlite::Result<Driver> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if is_writer {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let driver = Driver::open_with_flags(file, flags)?;
    driver.busy_timeout(BUSY_WAIT)?;
    driver.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    driver.pragma_update(None, "journal_mode", "WAL")?;
    driver.pragma_update(None, "synchronous", "FULL")?;
    driver.pragma_update(None, "foreign_keys", true)?;
    driver.pragma_update(None, "trusted_schema", false)?;
    driver.pragma_update(None, "temp_store", "MEMORY")?;
    driver.pragma_update(None, "mmap_size", MAPPED_BYTES)?;
    driver.pragma_update(None, "cache_size", if is_writer { -WRITER_CACHE_KIB } else { -READER_CACHE_KIB })?;
    driver.pragma_update(None, "query_only", !is_writer)?;
    // Without it a value bound to LIMIT expires the prepared statement, and every list is parsed and planned anew.
    driver.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    functions::register(&driver)?;
    Ok(driver)
}

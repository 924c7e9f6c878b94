//! SQLite: a pool of readers on the write-ahead log, and the only writer.

mod log;
mod transaction;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use blockbase_query::Statement;
use blockbase_quota::QuotaOwner;
use blockbase_schema::{Column, Error, Result};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::connection::{Connection, Inner};
use crate::drivers::sqlite::meter::Meter;
use crate::drivers::sqlite::session::BUSY_WAIT;
use crate::drivers::sqlite::{Session, space, statement};
use crate::error::{DbError, unavailable};
use crate::{Cost, OnCommit, Read, ReadCost, Record, Room, Row, Snapshot, migrate};

use transaction::{SchemaState, run_now};

/// The maximum number of the service's own scans that run at a time. Callers' scans have separate places, so the service never
/// waits for them.
const OWN_SCANS_MAX: usize = 4;
/// The maximum number of callers' scans that run at a time.
const CALLERS_SCANS_MAX: usize = 8;

pub(crate) struct Sqlite {
    file: std::path::PathBuf,
    idle: Mutex<Vec<Connection>>,
    idle_max: usize,
    own_scans: Arc<Semaphore>,
    log: log::LogGate,
    space: space::Space,
    sort_room: Arc<space::SortRoom>,
    writer: writer::Writer,
    schema: Arc<SchemaState>,
}

impl Sqlite {
    pub(crate) fn open(file: &Path, connections_max: Option<u32>, on_commit: OnCommit) -> Result<Sqlite, String> {
        let explain = |error: DbError| format!("The SQLite file {} cannot be opened: {error:?}", file.display());
        let mut session = Session::open(file, true).map_err(|error| explain(statement::db_error(error)))?;
        let sort_room = space::SortRoom::new(file)
            .map_err(|error| format!("The directory for sorts beside {} cannot be used: {error}", file.display()))?;
        // The setting applies to the whole process, so it is set before there is another connection. SQLite only accepts a path
        // in UTF-8.
        if let Some(directory) = sort_room.directory().to_str() {
            let set = session.pragma_update(None, "temp_store_directory", directory);
            set.map_err(|error| explain(statement::db_error(error)))?;
        }
        migrate::sqlite(&mut session)?;
        let version: i64 = session
            .query_row("SELECT version FROM svc_versions WHERE name = 'schema'", [], |row| row.get(0))
            .map_err(|error| explain(statement::db_error(error)))?;
        let schema = Arc::new(SchemaState(AtomicI64::new(version * 2)));
        Ok(Sqlite {
            file: file.to_owned(),
            idle: Mutex::new(Vec::new()),
            idle_max: connections_max.map_or(8, |most| most as usize),
            space: space::Space::default(),
            sort_room: Arc::new(sort_room),
            log: log::LogGate::default(),
            own_scans: Arc::new(Semaphore::new(OWN_SCANS_MAX)),
            writer: writer::Writer::start(Connection::new(Inner::Sqlite(session)), on_commit, Arc::clone(&schema))?,
            schema,
        })
    }

    fn take(&self) -> Result<Connection, DbError> {
        if let Some(connection) = self.idle.lock().pop() {
            return Ok(connection);
        }
        let session = Session::open(&self.file, false).map_err(statement::db_error)?;
        Ok(Connection::new(Inner::Sqlite(session)))
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock();
        if idle.len() < self.idle_max {
            idle.push(connection);
        }
    }

    /// Runs a reading body on one snapshot, and checks that the schema was the expected one all the time. Also returns whether
    /// the body exceeded its budget. The transaction begins with the first statement, unless this is also the last one
    /// ([`Connection::ends_with_next`]).
    fn read_on<T, F>(&self, mut connection: Connection, schema: Option<i64>, body: F) -> (Result<T>, bool)
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>>,
    {
        if let Err(error) = self.schema.check(schema) {
            return (Err(error.into()), connection.meter().end());
        }
        connection.begin_read();
        let answer = run_now(body(&mut connection));
        // The meter ends before the connection is returned, because the next thread that takes the connection uses the same
        // meter.
        let is_spent = connection.meter().end();
        // If the transaction cannot be ended, the connection is dropped and not used again.
        if connection.end_read().is_ok() {
            self.give_back(connection);
        }
        (self.schema.check(schema).map_err(Error::from).and(answer), is_spent)
    }

    pub(crate) fn callers_scans_max(&self) -> usize {
        CALLERS_SCANS_MAX
    }

    pub(crate) async fn read<T, F>(self: &Arc<Self>, cost: ReadCost, schema: Option<i64>, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        match cost {
            ReadCost::Rows => self.read_on(self.take()?, schema, body).0,
            ReadCost::Scan => {
                let permit = Arc::clone(&self.own_scans).acquire_owned().await.map_err(unavailable)?;
                self.scan_now((permit, self.log.count_read()), None, schema, body).await
            }
        }
    }

    /// Runs a caller's scan, when the log gate lets it begin. The service's own scans never wait for callers' scans.
    pub(crate) async fn scan<T, F, P>(self: &Arc<Self>, permit: P, schema: Option<i64>, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
        P: Send + 'static,
    {
        let entered = self.log.enter(&self.file).await;
        let ends = Arc::clone(&entered.ends);
        self.scan_now((permit, entered), Some(ends), schema, body).await
    }

    /// Runs a body on the blocking pool until it ends or nobody waits for it. `permit` is kept while it runs, which may be a
    /// moment longer than the caller waits. With `log_ends_it`, the body ends early.
    async fn scan_now<T, F, P>(
        self: &Arc<Self>,
        permit: P,
        log_ends_it: Option<Arc<AtomicBool>>,
        schema: Option<i64>,
        body: F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
        P: Send + 'static,
    {
        let sqlite = Arc::clone(self);
        let abandoned = Arc::new(AtomicBool::new(false));
        // The flag is set when this future is dropped, because nobody waits for the scan any more.
        let _raise = RaiseOnDrop(Arc::clone(&abandoned));
        let scan = move || {
            let _permit = permit;
            if abandoned.load(Ordering::Relaxed) {
                return Err(unavailable("nobody waits for the read"));
            }
            let connection = sqlite.take()?;
            // Only reads of records need room for sorts, because records may be many and large. Lists of system tables have a
            // limited size, and people need them to free room.
            let sort_room = schema.is_some().then(|| Arc::clone(&sqlite.sort_room));
            connection.meter().begin_scan(abandoned, log_ends_it, sort_room);
            sqlite.read_on(connection, schema, body).0
        };
        tokio::task::spawn_blocking(scan).await.map_err(Error::internal)?
    }

    pub(crate) async fn read_metered<T, F, P, W>(self: &Arc<Self>, read: Read, permit: W, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> Fn(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + Sync + 'static,
        P: Send + 'static,
        W: Future<Output = Result<P>> + Send,
    {
        if read.cost == Cost::Unknown {
            let connection = self.take()?;
            connection.meter().begin_budget();
            let (answer, is_spent) = self.read_on(connection, Some(read.schema), &body);
            if !is_spent {
                return answer;
            }
        }
        let permit = permit.await?;
        self.scan(permit, Some(read.schema), body).await
    }

    /// Runs a body on one snapshot, on the blocking pool and a separate connection. The snapshot may have any number of rows, so
    /// sorts use a file and not memory.
    pub(crate) async fn read_snapshot<T, F, P>(self: &Arc<Self>, snapshot: Snapshot, permit: P, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
        P: Send + 'static,
    {
        let sqlite = Arc::clone(self);
        let abandoned = Arc::new(AtomicBool::new(false));
        // The flag is set when this future is dropped, because nobody waits for the read any more.
        let _raise = RaiseOnDrop(Arc::clone(&abandoned));
        let exporting = self.log.count_read();
        let read = move || {
            let _held = (permit, exporting);
            let session = Session::open(&sqlite.file, false).map_err(statement::db_error)?;
            // Mapped pages count as memory of the process, and this read may map the complete file.
            session.pragma_update(None, "mmap_size", 0).map_err(statement::db_error)?;
            let mut connection = Connection::new(Inner::Sqlite(session));
            connection.meter().begin_snapshot(abandoned, Arc::clone(&sqlite.sort_room), snapshot.time_max);
            connection.batch("BEGIN")?;
            // The first read takes the snapshot, so this version belongs to the tables of the snapshot. A later change does not
            // matter.
            run_now(Box::pin(async { check_version(&mut connection, snapshot.schema).await }))?;
            run_now(body(&mut connection))
        };
        tokio::task::spawn_blocking(read).await.map_err(Error::internal)?
    }

    /// Whether there is room for more data. Free pages of the file count as room, because after a deletion they stay in the file,
    /// which keeps its size.
    pub(crate) fn has_room(&self) -> bool {
        self.space.has_room(&self.file, || {
            let Ok(connection) = self.take() else { return 0 };
            let free = match &connection.inner {
                Inner::Sqlite(session) => {
                    // Log pages that were copied into the file become free when the log is truncated. This does not wait for
                    // readers.
                    let _ = session.busy_timeout(Duration::ZERO);
                    let _ = session.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
                    let _ = session.busy_timeout(BUSY_WAIT);
                    let number = |name: &str| session.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap_or(0);
                    u64::try_from(number("freelist_count").saturating_mul(number("page_size"))).unwrap_or(0)
                }
                Inner::Postgres(_) => 0,
            };
            self.give_back(connection);
            free
        })
    }

    /// The disk space of the file and its log, and that of the file system. It may wait for the file system.
    pub(crate) fn room(&self) -> Room {
        let bytes = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let mut log = self.file.clone().into_os_string();
        log.push("-wal");
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        let system = rustix::fs::statvfs(&self.file).ok();
        Room {
            size_bytes: bytes(size(&self.file).saturating_add(size(Path::new(&log)))),
            free_bytes: system.as_ref().map(|system| bytes(system.f_bavail.saturating_mul(system.f_frsize))),
            total_bytes: system.as_ref().map(|system| bytes(system.f_blocks.saturating_mul(system.f_frsize))),
            is_enough: self.has_room(),
        }
    }

    pub(crate) async fn write<T, F>(&self, owner: QuotaOwner, is_schema: bool, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        self.writer.write(owner, is_schema, body).await
    }

    /// Copies the write-ahead log into the file and truncates it. If readers prevent that, a later checkpoint truncates the log.
    pub(crate) fn cut_log(&self) -> Result<()> {
        let driver = Session::open(&self.file, false).map_err(statement::db_error)?;
        driver.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(statement::db_error)?;
        Ok(())
    }

    pub(crate) async fn close(&self) {
        self.writer.close().await;
        self.idle.lock().clear();
    }
}

/// Checks that the tables in a snapshot are in the version on which the statements were planned.
async fn check_version(connection: &mut Connection, expected: i64) -> Result<()> {
    match connection.version("schema").await? == expected {
        true => Ok(()),
        false => Err(DbError::SchemaMoved("the schema has another version by now".into()).into()),
    }
}

/// Sets a flag when it is dropped.
struct RaiseOnDrop(Arc<AtomicBool>);

impl Drop for RaiseOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Connection {
    /// Runs a query that looks for the rows of a write, after the write has begun. On SQLite, all other writes wait meanwhile, so
    /// the query may take at most a second.
    ///
    /// # Errors
    /// [`DbError::Interrupted`] if the query takes longer, otherwise the query's own errors.
    pub async fn look(&mut self, statement: Statement) -> Result<Vec<Row>, DbError> {
        let meter = self.meter();
        meter.begin_look();
        let rows = self.fetch_rows(statement).await;
        meter.end();
        rows
    }

    /// Does the same for a record.
    ///
    /// # Errors
    /// The errors of [`Connection::look`].
    pub async fn look_record(&mut self, statement: Statement, columns: &[Column]) -> Result<Option<Record>, DbError> {
        let meter = self.meter();
        meter.begin_look();
        let record = self.fetch_record(statement, columns).await;
        meter.end();
        record
    }

    /// The meter of a SQLite connection.
    fn meter(&self) -> Arc<Meter> {
        match &self.inner {
            Inner::Sqlite(session) => Arc::clone(&session.meter),
            Inner::Postgres(_) => Arc::default(),
        }
    }
}

//! Postgres: connections of the service and of callers. A write is a transaction on one of them.
//!
//! The service's own reads and writes never wait behind those of callers. Callers share the other connections. Each caller first
//! takes a place in a queue that serves callers in turn.

mod statement;

use std::pin::pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use blockbase_query::Statement;
use blockbase_quota::{Place, Places, PlacesRule, QuotaOwner};
use blockbase_schema::{Column, Error, Result};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryStreamExt};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions, PgQueryResult, PgRow};
use sqlx::{AssertSqlSafe, Connection as _, Postgres as Driver};

use crate::connection::{Connection, Inner};
use crate::error::DbError;
use crate::record::{Page, Record, RecordWriter, SpooledRows};
use crate::row::Row;
use crate::spool::{Spool, Unwanted};
use crate::waiting::{PLACE_WAIT, WAITING_MAX, WAITING_OF_A_CALLER_MAX};
use crate::{Cost, OnCommit, Read, Snapshot, migrate};

const CONNECTIONS_DEFAULT: u32 = 16;
/// Of every eight connections, this many are for the service itself. The service always has at least one. Deliveries use four at
/// a time.
const OWN_OF_EIGHT: u32 = 3;
/// How long a caller's statement waits for a lock. Callers who wait for the same rows must not occupy the connections that others
/// need.
const LOCK_TIMEOUT: &str = "5s";
/// How long one statement may run, so that abandoned statements do not occupy the pool.
const STATEMENT_TIMEOUT: &str = "60s";
/// How long a transaction may wait for its instance. An instance that stopped in the middle of a transaction must not keep a lock
/// forever.
const IDLE_IN_TRANSACTION: &str = "30s";
/// How long a request waits for a connection.
const ACQUIRE_WAIT: Duration = Duration::from_secs(10);

/// How soon Postgres notices that the client of a running statement has disconnected.
const CLIENT_CHECK: &str = "50ms";
/// How long a read of unknown cost may run before it counts as a scan.
const CHEAP_READ: Duration = Duration::from_millis(25);
/// One snapshot of the database for all statements of a read.
const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// The number of bytes of rows that are rendered before other tasks of the thread get their turn.
const BYTES_A_TURN: usize = 256 * 1024;

/// How long a change of the schema waits for other transactions on its table, and how long it may run.
const SCHEMA_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = '30min'";

#[derive(Clone)]
pub(crate) struct Postgres {
    /// The connections of the service itself.
    own: PgPool,
    /// The connections for callers. The places below decide which caller gets one.
    callers: PgPool,
    places: Arc<Places>,
    callers_connections_max: u32,
    /// The URL for connections outside the pools. It may contain a password.
    url: Arc<str>,
    on_commit: OnCommit,
    has_trigrams: bool,
}

/// The connection on which a body runs. It belongs to a pool, and may have a transaction.
pub(crate) struct Session {
    /// `None` after it was returned to the pool or closed.
    connection: Option<PoolConnection<Driver>>,
    /// Whether a statement is running, or still has rows that were not read.
    is_busy: bool,
    in_transaction: bool,
    /// The caller's place. It becomes free when the connection does.
    _place: Option<Place>,
}

/// Reads the URL of a database.
pub(crate) fn options(url: &str) -> Result<PgConnectOptions, String> {
    // The parser's own message may show a part of the URL, and so a password.
    PgConnectOptions::from_str(url)
        .map_err(|_| "SVC_DATABASE_URL is not a Postgres URL like postgres://user:password@host:5432/name.".to_owned())
}

impl Postgres {
    pub(crate) async fn open(url: &str, connections_max: Option<u32>, on_commit: OnCommit) -> Result<Postgres, String> {
        let mut options = options(url)?.application_name("blockbase").statement_cache_capacity(500).options([
            ("timezone", "UTC"),
            ("statement_timeout", STATEMENT_TIMEOUT),
            ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION),
        ]);
        // The first connection is made without the pool. A pool would retry until its timeout before it reports the error.
        let explain = |error: String| format!("Postgres (SVC_DATABASE_URL) cannot be reached: {error}.");
        match tokio::time::timeout(ACQUIRE_WAIT, sqlx::PgConnection::connect_with(&options)).await {
            Ok(Ok(mut connection)) => {
                let check = format!("SET client_connection_check_interval = '{CLIENT_CHECK}'");
                match sqlx::raw_sql(AssertSqlSafe(check)).execute(&mut connection).await {
                    Ok(_) => options = options.options([("client_connection_check_interval", CLIENT_CHECK)]),
                    Err(error) => tracing::warn!(
                        store.error = %error,
                        "This Postgres does not notice clients that leave (14 on Linux and later do): an abandoned statement runs \
                         on for up to {STATEMENT_TIMEOUT}"
                    ),
                }
                drop(connection.close().await);
            }
            Ok(Err(error)) => return Err(explain(error.to_string())),
            Err(_) => return Err(explain("no answer in time".to_owned())),
        }
        let connections_max = connections_max.unwrap_or(CONNECTIONS_DEFAULT);
        let own_connections_max = (connections_max * OWN_OF_EIGHT / 8).max(1);
        let callers_connections_max = connections_max.saturating_sub(own_connections_max).max(1);
        let pool = |connections_max: u32, options: PgConnectOptions| {
            PgPoolOptions::new()
                .max_connections(connections_max)
                .acquire_timeout(ACQUIRE_WAIT)
                // The pool does not ping a connection before it is used, which would cost a round trip. The first statement shows
                // whether the connection is dead.
                .test_before_acquire(false)
                .connect_lazy_with(options)
        };
        let callers = pool(callers_connections_max, options.clone().options([("lock_timeout", LOCK_TIMEOUT)]));
        let own = pool(own_connections_max, options);
        migrate::postgres(&own).await?;
        let has_trigrams = match migrate::postgres_trigrams(&own).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(
                    store.error = %error,
                    "Postgres has no extension pg_trgm and none can be made: every search is a scan. \
                     Have an administrator run CREATE EXTENSION pg_trgm and start again"
                );
                false
            }
        };
        let connections = callers_connections_max as usize;
        let places = Places::new(PlacesRule {
            all: connections,
            each: connections,
            waiting_each: WAITING_OF_A_CALLER_MAX,
            waiting: WAITING_MAX,
            wait: PLACE_WAIT,
        });
        Ok(Postgres { own, callers, places, callers_connections_max, url: url.into(), on_commit, has_trigrams })
    }

    pub(crate) fn has_trigrams(&self) -> bool {
        self.has_trigrams
    }

    /// Half of the callers' connections. The others are for short reads and for writes.
    pub(crate) fn callers_scans_max(&self) -> usize {
        (self.callers_connections_max as usize / 2).max(1)
    }

    /// One of the service's own connections, or one for a caller.
    async fn session(&self, owner: &QuotaOwner) -> Result<Session> {
        let (pool, place) = match owner.is_service() {
            true => (&self.own, None),
            false => {
                let place = self.places.take(owner).await.map_err(|_| {
                    let message = "Too many requests wait for the database, or too many of yours. Try again later.";
                    Error::busy(message)
                })?;
                (&self.callers, Some(place))
            }
        };
        let connection = pool.acquire().await.map_err(statement::db_error)?;
        Ok(Session { connection: Some(connection), is_busy: false, in_transaction: false, _place: place })
    }

    /// Runs a body that reads. A body with several statements names its tables in `one_moment`, and reads them in one snapshot of
    /// the database.
    pub(crate) async fn read<T, F>(&self, owner: &QuotaOwner, one_moment: Option<&[String]>, body: F) -> Result<T>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>>,
    {
        read_on(self.session(owner).await?, one_moment, body).await
    }

    pub(crate) async fn read_metered<T, F, P, W>(&self, owner: &QuotaOwner, read: Read, permit: W, body: F) -> Result<T>
    where
        F: for<'c> Fn(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + Sync,
        W: Future<Output = Result<P>>,
    {
        let mut permit = pin!(permit);
        let one_moment = read.tables_of_one_moment.as_deref();
        if read.cost == Cost::Unknown {
            let session = self.session(owner).await?;
            let mut attempt = pin!(read_on(session, one_moment, &body));
            if let Ok(answer) = tokio::time::timeout(CHEAP_READ, &mut attempt).await {
                return answer;
            }
            if let Some(permit) = permit.as_mut().now_or_never() {
                let _permit = permit?;
                return attempt.await;
            }
            // Too many scans run. This read gives up its connection, and starts again when it gets a permit.
        }
        let _permit = permit.await?;
        self.read(owner, one_moment, body).await
    }

    /// Runs a body on one snapshot, without the usual time limit. Its tables are locked against changes of the schema before the
    /// snapshot is taken.
    pub(crate) async fn read_snapshot<T, F>(&self, snapshot: Snapshot, body: F) -> Result<T>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>>,
    {
        let Snapshot { owner, schema, tables, time_max } = snapshot;
        let mut session = self.session(&owner).await?;
        session.begin(format!("{}; SET LOCAL statement_timeout = {}", begin_snapshot(&tables), time_max.as_millis())).await?;
        let mut connection = Connection::new(Inner::Postgres(session));
        let answer = match connection.version("schema").await {
            Ok(version) if version == schema => {
                let read = tokio::time::timeout(time_max, body(&mut connection)).await;
                read.unwrap_or_else(|_| Err(DbError::Interrupted.into()))
            }
            Ok(_) => Err(DbError::SchemaMoved("the schema has another version by now".into()).into()),
            Err(error) => Err(error.into()),
        };
        if let Inner::Postgres(session) = connection.inner {
            session.end_later("COMMIT");
        }
        answer
    }

    pub(crate) async fn write<T, F>(&self, owner: &QuotaOwner, is_schema: bool, body: F) -> Result<T>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>>,
    {
        let mut session = self.session(owner).await?;
        session.begin("BEGIN").await?;
        if is_schema {
            // While this waits for a table, all other transactions wait behind it. So the wait is short.
            session.run(SCHEMA_LOCK_TIMEOUT).await?;
        }
        let mut connection = Connection::new(Inner::Postgres(session));
        let answer = match write_body(&mut connection, body).await {
            Ok(answer) => answer,
            Err(error) => {
                if let Inner::Postgres(session) = connection.inner {
                    session.end_later("ROLLBACK");
                }
                return Err(error);
            }
        };
        if let Inner::Postgres(mut session) = connection.inner {
            session.end("COMMIT").await?;
        }
        if let Some(commit) = connection.effects.commit() {
            (self.on_commit)(commit);
        }
        Ok(answer)
    }

    /// Listens on a connection of its own, which stays open as long as the server runs.
    pub(crate) async fn listen(&self) -> Result<Hints> {
        let mut listener = PgListener::connect(&self.url).await.map_err(statement::db_error)?;
        listener.listen(HINTS).await.map_err(statement::db_error)?;
        Ok(Hints { listener })
    }

    pub(crate) async fn close(&self) {
        tokio::join!(self.own.close(), self.callers.close());
    }
}

/// The channel on which instances announce new deliveries.
const HINTS: &str = "svc_deliveries";

/// The hints between instances. A hint can be lost, so a waiting instance also polls.
pub struct Hints {
    listener: PgListener,
}

impl Hints {
    /// The name of the instance that gave the next hint. If the connection is lost, this continues on a new one.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn next(&mut self) -> Result<String> {
        let hint = self.listener.recv().await.map_err(statement::db_error)?;
        Ok(hint.payload().to_owned())
    }
}

impl Connection {
    /// Announces new deliveries to the other instances.
    pub async fn hint(&mut self, instance: &str) -> Result<(), DbError> {
        let sql = "SELECT 1::bigint FROM (SELECT pg_notify($1, $2)) AS hint";
        self.fetch(sql, vec![HINTS.into(), instance.into()]).await.map(|_| ())
    }
}

async fn read_on<T, F>(mut session: Session, one_moment: Option<&[String]>, body: F) -> Result<T>
where
    F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>>,
{
    if let Some(tables) = one_moment {
        session.begin(begin_snapshot(tables)).await?;
    }
    let mut connection = Connection::new(Inner::Postgres(session));
    let answer = body(&mut connection).await;
    if let Inner::Postgres(session) = connection.inner {
        session.end_later("COMMIT");
    }
    answer
}

/// The statement that begins a snapshot. It locks the tables against changes of the schema before it takes the snapshot, in the
/// same round trip. If a table were rewritten after the snapshot was taken, it would look empty in the snapshot.
fn begin_snapshot(tables: &[String]) -> String {
    let mut names: Vec<String> = tables.iter().map(|name| format!("\"{name}\"")).collect();
    // The order is fixed, so that two transactions that lock the same tables deadlock less often.
    names.sort();
    names.dedup();
    match names.is_empty() {
        true => BEGIN_SNAPSHOT.to_owned(),
        false => format!("{BEGIN_SNAPSHOT}; LOCK TABLE {} IN ACCESS SHARE MODE", names.join(", ")),
    }
}

async fn write_body<T, F>(connection: &mut Connection, body: F) -> Result<T>
where
    F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>>,
{
    let answer = body(connection).await?;
    let mut differences = std::collections::BTreeMap::new();
    for (object_id, difference) in std::mem::take(&mut connection.effects.counts) {
        *differences.entry(object_id).or_insert(0) += difference;
    }
    for (object_id, difference) in differences {
        // Each difference is a row, so that writers of one object never wait for each other. `fold_counts` adds them up.
        connection
            .run("INSERT INTO svc_counts (object_id, rows) VALUES ($1, $2)", vec![object_id.into(), i64::into(difference)])
            .await?;
    }
    Ok(answer)
}

/// Closes a connection if its statement or its transaction has not ended. Postgres then ends both. To return it to the pool, the
/// server would have to wait for both.
impl Drop for Session {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && (self.is_busy || self.in_transaction)
        {
            drop(connection.detach());
        }
    }
}

impl Session {
    fn driver(&mut self) -> Result<&mut sqlx::PgConnection, DbError> {
        match &mut self.connection {
            Some(connection) => Ok(connection),
            None => Err(DbError::Other("the connection was given back".into())),
        }
    }

    /// Runs statements without parameters.
    async fn run(&mut self, sql: impl Into<String>) -> Result<(), DbError> {
        self.is_busy = true;
        let ran = sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(self.driver()?).await.map_err(statement::db_error);
        self.is_busy = false;
        ran.map(|_| ())
    }

    async fn end(&mut self, sql: &'static str) -> Result<(), DbError> {
        self.run(sql).await?;
        self.in_transaction = false;
        Ok(())
    }

    async fn begin(&mut self, sql: impl Into<String>) -> Result<(), DbError> {
        self.in_transaction = true;
        self.run(sql).await
    }

    /// Ends the transaction, if there is one, and returns the connection to the pool. The caller does not wait for it.
    fn end_later(mut self, sql: &'static str) {
        if self.in_transaction && !self.is_busy {
            tokio::spawn(async move { self.end(sql).await });
        }
    }

    pub(crate) async fn execute(&mut self, statement: Statement) -> Result<u64, DbError> {
        let is_plain = statement.params.is_empty();
        let arguments = statement::arguments(statement.params)?;
        self.is_busy = true;
        let answer: Result<PgQueryResult, sqlx::Error> = match is_plain {
            // Definitions are not prepared, because they would only fill the statement cache.
            true => sqlx::raw_sql(AssertSqlSafe(statement.sql)).execute(self.driver()?).await,
            false => sqlx::query_with(AssertSqlSafe(statement.sql), arguments).execute(self.driver()?).await,
        };
        self.is_busy = false;
        Ok(answer.map_err(statement::db_error)?.rows_affected())
    }

    /// Gives each row to `take` when it arrives, so that only few rows are in memory. If `take` fails, the rest is not read and the
    /// connection is closed.
    async fn each_row(
        &mut self,
        statement: Statement,
        mut take: impl FnMut(&PgRow) -> Result<usize, DbError>,
    ) -> Result<(), DbError> {
        let arguments = statement::arguments(statement.params)?;
        self.is_busy = true;
        let mut rows = sqlx::query_with(AssertSqlSafe(statement.sql), arguments).fetch(self.driver()?);
        let mut bytes_of_turn = 0;
        loop {
            match rows.try_next().await {
                Ok(Some(row)) => bytes_of_turn += take(&row)?,
                Ok(None) => break,
                Err(error) => {
                    drop(rows);
                    self.is_busy = false;
                    return Err(statement::db_error(error));
                }
            }
            if bytes_of_turn > BYTES_A_TURN {
                bytes_of_turn = 0;
                tokio::task::yield_now().await;
            }
        }
        drop(rows);
        self.is_busy = false;
        Ok(())
    }

    pub(crate) async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, DbError> {
        let mut found = Vec::new();
        self.each_row(statement, |row| {
            found.push(statement::system_row(row)?);
            Ok(0)
        })
        .await?;
        Ok(found)
    }

    pub(crate) async fn fetch_json(
        &mut self,
        statement: Statement,
        columns: &[&Column],
        rows_max: usize,
        bytes_max: usize,
    ) -> Result<Page, DbError> {
        let mut writer = RecordWriter::new(columns.iter().copied(), 8 * 1024, rows_max, bytes_max);
        let mut is_first = true;
        self.each_row(statement, |row| {
            if is_first {
                is_first = false;
                statement::check_types(Some(row), columns.iter().map(|column| column.ty))?;
                writer.tail(statement::total(row, columns.len())?);
            }
            writer.row(|index, out| statement::write_cell(out, columns[index].ty, row, index))
        })
        .await?;
        Ok(writer.finish())
    }

    /// Puts rows into a spool. While the spool is full, no row is read, and the database server waits.
    pub(crate) async fn spool_rows(
        &mut self,
        statement: Statement,
        columns: &[&Column],
        mut spooled: SpooledRows<'_>,
        spool: &Spool,
    ) -> Result<(), DbError> {
        let arguments = statement::arguments(statement.params)?;
        // The connection stays busy until all rows are read. So a failure in between closes it.
        self.is_busy = true;
        let mut rows = sqlx::query_with(AssertSqlSafe(statement.sql), arguments).fetch(self.driver()?);
        let mut is_first = true;
        while let Some(row) = rows.try_next().await.map_err(statement::db_error)? {
            if std::mem::take(&mut is_first) {
                statement::check_types(Some(&row), columns.iter().map(|column| column.ty))?;
            }
            spooled.row(|index, out| statement::write_cell(out, columns[index].ty, &row, index))?;
            if let Some(bytes) = spooled.due() {
                spool.put(bytes).await.map_err(|Unwanted| DbError::Interrupted)?;
                // Rows may arrive so fast that the runtime would not run any other task.
                tokio::task::yield_now().await;
            }
        }
        drop(rows);
        self.is_busy = false;
        match spooled.rest() {
            Some(bytes) => spool.put(bytes).await.map_err(|Unwanted| DbError::Interrupted),
            None => Ok(()),
        }
    }

    pub(crate) async fn fetch_record(&mut self, statement: Statement, columns: &[Column]) -> Result<Option<Record>, DbError> {
        let writer = RecordWriter::new(columns, 0, 1, usize::MAX);
        let mut found = None;
        self.each_row(statement, |row| {
            if found.is_none() {
                statement::check_types(Some(row), columns.iter().map(|column| column.ty))?;
                let beyond = statement::beyond(row, columns.len())?;
                found = Some(writer.record(0, beyond, |index, out| statement::write_cell(out, columns[index].ty, row, index))?);
            }
            Ok(0)
        })
        .await?;
        Ok(found)
    }

    pub(crate) async fn fetch_records(
        &mut self,
        statement: Statement,
        columns: &[&Column],
        hidden: usize,
        bytes_max: usize,
    ) -> Result<Vec<Record>, DbError> {
        let writer = RecordWriter::new(columns.iter().copied(), 0, 0, usize::MAX);
        let (mut records, mut bytes) = (Vec::new(), 0);
        self.each_row(statement, |row| {
            if records.is_empty() {
                statement::check_types(Some(row), columns.iter().map(|column| column.ty))?;
            }
            let beyond = statement::beyond(row, columns.len())?;
            let record = writer.record(hidden, beyond, |index, out| statement::write_cell(out, columns[index].ty, row, index))?;
            let size = record.bytes();
            bytes += size;
            if bytes > bytes_max {
                return Err(DbError::AnswerTooLarge);
            }
            records.push(record);
            Ok(size)
        })
        .await?;
        Ok(records)
    }
}

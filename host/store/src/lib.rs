//! The one crate that knows databases: SQLite and Postgres behind one executor.
//!
//! [`Store::read_rows`] and [`Store::write`] run a body, an async function over a [`Connection`], on either engine. On SQLite a
//! body never waits: reads run where they are called (or on the blocking pool when they may scan), writes run on the one
//! writer thread, which commits many callers' writes at once. On Postgres a body runs on a pooled connection, a write in
//! a transaction of its own. This crate must not know of HTTP, permissions or blocks; it maps driver errors to domain
//! errors and lets none of them out.
#![forbid(unsafe_code)]

mod accounts;
mod blocks;
mod catalogue;
mod connection;
mod deliveries;
mod error;
mod events;
mod instances;
mod makers;
mod migrate;
mod outbox_size;
mod packing;
mod postgres;
mod record;
mod row;
mod spool;
mod sqlite;
mod subscriptions;
mod tasks;
mod webhooks;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use blockbase_query::Dialect;
use blockbase_quota::QuotaOwner;
use blockbase_schema::{Error, Result};
use futures_util::future::BoxFuture;

pub use accounts::{
    ALL_NETWORKS, ApiKeyRow, KeyHolder, NewApiKey, NewSession, RoleRow, SessionHolder, SessionRow, SignInTries, UserRow,
};
pub use blocks::{BlockLogFilter, BlockLogPage, BlockLogRow, BlockRow, BlockSecretRow, BlockVersionRow, KeptLogLine};
pub use catalogue::{Held, ObjectRow, RelationshipRow, SchemaChangeRow, Versions};
pub use connection::Connection;
pub use deliveries::{
    ATTEMPTS_KEPT, AttemptRow, Attempted, Claim, Claimed, ClaimedDelivery, ClaimedEvent, DeadWindow, FirstPending, GroupCounts,
    LedgerFilter, LedgerRow, Outcome, QueueDepth, VisibleEvents,
};
pub use error::DbError;
pub use events::{CommittedEvent, EventHead, EventPage, EventText, FeedMark, HeadFilter, NewDelivery, NewEvent, ReplayFilter};
pub use instances::InstanceRow;
pub use makers::{Made, Maker, MakerPart, Suspension, SuspensionReason, Thing, Unsettled};
pub use outbox_size::OutboxSize;
pub use postgres::Hints;
pub use record::{Page, Record};
pub use row::Row;
pub use spool::{Incomplete, Spool, SpoolReader, SpoolRoom, spool};
pub use subscriptions::SubscriptionRow;
pub use tasks::{TaskRow, TaskRunRow};
pub use webhooks::{PreviousSecret, WebhookRow};

/// What a commit reports about its events in the outbox.
#[derive(Debug, Default)]
pub struct Commit {
    /// Its events in commit order. Only on SQLite, where this process is the only writer; a feed of Postgres reads the outbox.
    pub events: Vec<Arc<CommittedEvent>>,
    /// The topics of its events.
    pub topics: Vec<String>,
    /// The consumer groups that have something to get.
    pub consumers: BTreeSet<String>,
}

/// Called after each commit that left something in the outbox.
pub type OnCommit = Arc<dyn Fn(Commit) + Send + Sync>;

/// What a read may cost, so that SQLite runs it in the right place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadCost {
    /// A few rows by index: on the calling thread, without a hop.
    Rows,
    /// Possibly a scan: on the blocking pool, a bounded number at a time.
    Scan,
}

/// What a read by a caller costs, as far as its plan tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Perhaps little: it begins at once, and needs a permit when it turns out to be a scan.
    Unknown,
    /// It goes through rows or texts: it needs a permit to begin.
    Scan,
}

/// A read by a caller.
#[derive(Clone, Debug)]
pub struct Read {
    /// The version of the schema that its statements were planned on.
    pub schema: i64,
    pub cost: Cost,
    /// The tables of a read with several statements, which have to see the same moment; `None` for a single statement.
    pub tables_of_one_moment: Option<Vec<String>>,
}

/// A read of one snapshot that may take long.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The caller whose connections it uses.
    pub owner: QuotaOwner,
    /// The version of the schema that its statements were planned on.
    pub schema: i64,
    /// The tables that its statements read.
    pub tables: Vec<String>,
    /// How long it may be held.
    pub time_max: Duration,
}

/// The room that the database takes and has, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// On SQLite the file with its write-ahead log.
    pub size_bytes: i64,
    /// Of the file system, where it is known: on SQLite.
    pub free_bytes: Option<i64>,
    pub total_bytes: Option<i64>,
    /// Whether writes are taken, as far as this process knows.
    pub is_enough: bool,
}

/// Which database, and with how many connections.
#[derive(Clone, Debug)]
pub enum Location {
    Sqlite { file: PathBuf },
    Postgres { url: String },
}

impl Location {
    /// Whether the URL of a database can be read at all. It says nothing of what answers there.
    ///
    /// # Errors
    /// A sentence for the operator. It shows nothing of the URL, which may hold a password.
    pub fn check_url(url: &str) -> std::result::Result<(), String> {
        postgres::options(url).map(|_| ())
    }
}

/// The database.
#[derive(Clone)]
pub struct Store {
    engine: Engine,
}

#[derive(Clone)]
enum Engine {
    Sqlite(Arc<sqlite::Sqlite>),
    Postgres(postgres::Postgres),
}

impl Store {
    /// Opens the database and brings its system tables to this version.
    ///
    /// # Errors
    /// A sentence for the operator: the database cannot be reached, or was migrated by a newer version.
    pub async fn open(location: Location, connections_max: Option<u32>, on_commit: OnCommit) -> Result<Store, String> {
        let engine = match location {
            Location::Sqlite { file } => {
                let opened = tokio::task::spawn_blocking(move || sqlite::Sqlite::open(&file, connections_max, on_commit));
                Engine::Sqlite(Arc::new(opened.await.map_err(|error| error.to_string())??))
            }
            Location::Postgres { url } => Engine::Postgres(postgres::Postgres::open(&url, connections_max, on_commit).await?),
        };
        Ok(Store { engine })
    }

    pub fn dialect(&self) -> Dialect {
        match self.engine {
            Engine::Sqlite(_) => Dialect::Sqlite,
            Engine::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Runs `body` on a connection that reads, for the service itself: it waits for no caller, and nobody's rights are asked for. What
    /// callers ask for names its [`Reader`] instead.
    pub async fn read_as_service<T, F>(&self, cost: ReadCost, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(cost, None, body).await,
            Engine::Postgres(postgres) => {
                postgres.read(&QuotaOwner::Service, (cost == ReadCost::Scan).then_some(&[]), body).await
            }
        }
    }

    /// Reads a few rows for a caller, who uses their share of connections: of objects by statements that were planned on version `schema`
    /// of the schema, or of system tables alone.
    ///
    /// # Errors
    /// An error to retry if the schema has changed.
    pub async fn read_rows<T, F>(&self, reader: impl Reader, schema: Option<i64>, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        let (owner, body) = (reader.owner(), asked(reader, body));
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(ReadCost::Rows, schema, body).await,
            // Its statements name columns, and rows are checked for their types.
            Engine::Postgres(postgres) => postgres.read(&owner, None, body).await,
        }
    }

    /// As [`Store::read_rows`], for a body that may be a scan.
    ///
    /// A scan needs what `permit` resolves to, and holds it as long as it runs. A read of unknown cost begins without one: on
    /// SQLite on the calling thread, where most reads end within their budget, on Postgres on a connection. One that goes on is
    /// given up and run again as a scan, which is why `body` may be called twice.
    ///
    /// # Errors
    /// What `permit` failed with, beside the body's own.
    pub async fn read_metered<T, F, P, W>(&self, reader: impl Reader, read: Read, permit: W, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> Fn(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + Sync + 'static,
        P: Send + 'static,
        W: Future<Output = Result<P>> + Send,
    {
        let (owner, body) = (reader.owner(), asked_again(reader, body));
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read_metered(read, permit, body).await,
            Engine::Postgres(postgres) => postgres.read_metered(&owner, read, permit, body).await,
        }
    }

    /// Runs `body` as a caller's scan of system tables. It holds `permit` as long as it runs, and none of the places that the service
    /// has for its own scans.
    pub async fn scan<T, F, P>(&self, reader: impl Reader, permit: P, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
        P: Send + 'static,
    {
        let (owner, body) = (reader.owner(), asked(reader, body));
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.scan(permit, None, body).await,
            Engine::Postgres(postgres) => {
                let _permit = permit;
                postgres.read(&owner, Some(&[]), body).await
            }
        }
    }

    /// Runs `body` on one snapshot of the database, on a connection that does nothing else. `permit` is held as long as
    /// it runs. A body that goes on until a client takes its rows puts them into a [`Spool`].
    ///
    /// # Errors
    /// An error to retry if the schema has changed: nothing of the body has run then. `unavailable` past `time_max`.
    pub async fn read_snapshot<T, F, P>(&self, snapshot: Snapshot, permit: P, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
        P: Send + 'static,
    {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read_snapshot(snapshot, permit, body).await,
            Engine::Postgres(postgres) => {
                let _permit = permit;
                postgres.read_snapshot(snapshot, body).await
            }
        }
    }

    /// How many scans of callers the engine has places for. What is left of its connections is for everything else.
    pub fn callers_scans_max(&self) -> usize {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.callers_scans_max(),
            Engine::Postgres(postgres) => postgres.callers_scans_max(),
        }
    }

    /// Runs `body` in a transaction and commits it if it answers `Ok`. An answer means that the commit is durable.
    ///
    /// `writer` is asked in that transaction, before the body runs. A caller that goes away before its turn leaves nothing behind.
    ///
    /// # Errors
    /// `storage_full`, beside the writer's and the body's own.
    pub async fn write<T, F>(&self, writer: impl Writer, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        self.check_room()?;
        self.write_in_reserve(writer, body).await
    }

    /// Whether there is room for more.
    ///
    /// # Errors
    /// `storage_full`. Postgres says so itself, when a statement finds no room.
    pub fn check_room(&self) -> Result<()> {
        match &self.engine {
            Engine::Sqlite(sqlite) if !sqlite.has_room() => Err(storage_full(None)),
            Engine::Sqlite(_) | Engine::Postgres(_) => Ok(()),
        }
    }

    /// As [`Store::write`], also while there is too little room: for what frees room, and for the small writes without which
    /// nobody could free any or an outcome would be lost.
    pub async fn write_in_reserve<T, F>(&self, writer: impl Writer, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        let (owner, body) = (writer.owner(), admitted(writer, body));
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.write(owner, false, body).await,
            Engine::Postgres(postgres) => postgres.write(&owner, false, body).await,
        }
    }

    /// As [`Store::write`], for a change of the schema: alone in its commit on SQLite, and with foreign keys off, so that a
    /// table can be replaced by its next version. On Postgres it waits a few seconds at most for what runs on the table.
    pub async fn write_schema<T, F>(&self, writer: impl Writer, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        let (owner, body) = (writer.owner(), admitted(writer, body));
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.write(owner, true, body).await,
            Engine::Postgres(postgres) => postgres.write(&owner, true, body).await,
        }
    }

    /// Whether the engine can keep search indexes. SQLite always can; Postgres where it has, or may have, pg_trgm.
    pub fn can_index_search(&self) -> bool {
        match &self.engine {
            Engine::Sqlite(_) => true,
            Engine::Postgres(postgres) => postgres.has_trigrams(),
        }
    }

    /// Hears of what other instances have for the dispatchers. Only Postgres has other instances.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn listen(&self) -> Result<Option<Hints>> {
        match &self.engine {
            Engine::Sqlite(_) => Ok(None),
            Engine::Postgres(postgres) => postgres.listen().await.map(Some),
        }
    }

    /// Takes what was deleted out of files where the engine can do so by itself. On SQLite the write-ahead log still holds it
    /// until it is copied back and cut; on Postgres the vacuum is the server's own.
    pub async fn forget_deleted(&self) -> Result<()> {
        match &self.engine {
            Engine::Sqlite(sqlite) => {
                let sqlite = Arc::clone(sqlite);
                tokio::task::spawn_blocking(move || sqlite.cut_log()).await.map_err(Error::internal)?
            }
            Engine::Postgres(_) => Ok(()),
        }
    }

    /// Whether the database answers.
    pub async fn is_ready(&self) -> bool {
        self.read_as_service(ReadCost::Rows, |connection| {
            Box::pin(async move { Ok(!connection.fetch("SELECT 1", Vec::new()).await?.is_empty()) })
        })
        .await
        .unwrap_or(false)
    }

    /// How much room the database takes, and how much there is.
    pub async fn room(&self) -> Result<Room> {
        match &self.engine {
            Engine::Sqlite(sqlite) => {
                let sqlite = Arc::clone(sqlite);
                // File systems of other machines may take their time.
                tokio::task::spawn_blocking(move || sqlite.room()).await.map_err(Error::internal)
            }
            Engine::Postgres(_) => {
                let size_bytes = self
                    .read_as_service(ReadCost::Rows, |connection| {
                        Box::pin(async move {
                            let rows = connection.fetch("SELECT pg_database_size(current_database())", Vec::new()).await?;
                            Ok(rows.first().map_or(Ok(0), |row| row.integer(0))?)
                        })
                    })
                    .await?;
                Ok(Room { size_bytes, free_bytes: None, total_bytes: None, is_enough: true })
            }
        }
    }

    /// Ends the writer after what is queued, and closes the connections.
    pub async fn close(&self) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.close().await,
            Engine::Postgres(postgres) => postgres.close().await,
        }
    }
}

/// Who a read is for. It is asked on the connection: after all that the read has waited for, and before anything else of it runs.
pub trait Reader: Send + Sync + 'static {
    /// The owner whose share it uses, and in whose turn it runs.
    fn owner(&self) -> QuotaOwner;

    /// A check that has to pass, or `None` if nothing can have changed since the caller was judged.
    fn check<'c>(&'c self, connection: &'c mut Connection) -> Option<BoxFuture<'c, Result<()>>>;
}

/// Who a transaction writes for. It is asked in the transaction, as the reader of a read is.
///
/// Every write names its writer, so that none can be written that does not ask whether its caller may still do it.
pub trait Writer: Reader {
    /// The same check before the commit, on an engine where others commit while the transaction runs.
    fn check_before_commit<'c>(&'c self, connection: &'c mut Connection) -> Option<BoxFuture<'c, Result<()>>>;
}

/// The service itself writes, which nobody can take a right from.
#[derive(Clone, Copy, Debug)]
pub struct Service;

impl Reader for Service {
    fn owner(&self) -> QuotaOwner {
        QuotaOwner::Service
    }

    fn check<'c>(&'c self, _connection: &'c mut Connection) -> Option<BoxFuture<'c, Result<()>>> {
        None
    }
}

impl Writer for Service {
    fn check_before_commit<'c>(&'c self, _connection: &'c mut Connection) -> Option<BoxFuture<'c, Result<()>>> {
        None
    }
}

/// Asks `reader` on the connection that it has got.
async fn admit(reader: &impl Reader, connection: &mut Connection) -> Result<()> {
    match reader.check(connection) {
        Some(check) => check.await,
        None => Ok(()),
    }
}

/// The body of a read behind the check of its reader.
fn asked<T, F>(
    reader: impl Reader,
    body: F,
) -> impl for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static
where
    T: Send + 'static,
    F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
{
    move |connection| {
        Box::pin(async move {
            admit(&reader, connection).await?;
            body(connection).await
        })
    }
}

/// The same of a body that may run again.
fn asked_again<T, F>(
    reader: impl Reader,
    body: F,
) -> impl for<'c> Fn(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + Sync + 'static
where
    T: Send + 'static,
    F: for<'c> Fn(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + Sync + 'static,
{
    let asked = Arc::new((reader, body));
    move |connection| {
        let asked = Arc::clone(&asked);
        Box::pin(async move {
            let (reader, body) = asked.as_ref();
            admit(reader, connection).await?;
            body(connection).await
        })
    }
}

/// The body of a transaction behind the check of its writer.
fn admitted<T, F>(
    writer: impl Writer,
    body: F,
) -> impl for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static
where
    T: Send + 'static,
    F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
{
    move |connection| {
        Box::pin(async move {
            admit(&writer, connection).await?;
            let answer = body(connection).await?;
            // SQLite has one writer, so nothing came in between.
            if connection.dialect() == Dialect::Postgres
                && let Some(check) = writer.check_before_commit(connection)
            {
                check.await?;
            }
            Ok(answer)
        })
    }
}

/// The answer while the database has no room for more.
pub(crate) fn storage_full(cause: Option<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let mut error = Error::new(
        blockbase_schema::Code::StorageFull,
        "The server's storage is full. Nothing can be written until there is room again. Reads go on, and so do deletions of records and objects.",
    );
    error.cause = cause;
    error
}

/// The answer while the database cannot be used.
pub(crate) fn unavailable(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let mut error =
        Error::new(blockbase_schema::Code::Unavailable, "The database cannot be reached at the moment. Try again shortly.");
    error.cause = Some(cause.into());
    error
}

//! The only crate that knows databases: SQLite and Postgres behind one executor.
//!
//! [`Store::read_rows`] and [`Store::write`] run a body on either engine. A body is an async function with a [`Connection`] as
//! its parameter. On SQLite a body never waits. Reads run on the calling thread, or on the blocking pool if they may scan. Writes
//! run on the only writer thread, which commits the writes of many callers at once. On Postgres, a body runs on a pooled
//! connection, and each write has its own transaction. This crate must not know HTTP, permissions or blocks. It maps driver
//! errors to domain errors, and returns no driver error.
#![forbid(unsafe_code)]

mod accounts;
mod audit;
mod blocks;
mod catalogue;
mod commit;
mod committed_event;
mod connection;
mod deliveries;
mod dialect_sql;
mod drivers;
mod error;
mod events;
mod instances;
mod makers;
mod migrate;
mod new_record;
mod outbox_size;
mod packing;
mod postgres;
mod read;
mod record;
mod room;
mod row;
mod spool;
mod sql_trace;
mod sqlite;
mod subscriptions;
mod tasks;
mod topic_match;
mod waiting;
mod webhooks;

use std::path::PathBuf;
use std::sync::Arc;

use blockbase_query::Dialect;
use blockbase_quota::QuotaOwner;
use blockbase_schema::{Error, Result};
use futures_util::future::BoxFuture;

pub use accounts::{
    AccountTokenRow, ApiKeyRow, KeyHolder, MailKind, MailRow, NewApiKey, NewSession, RoleRow, SessionHolder, SessionRow,
    SignInState, SignInTries, StreamTicketRow, TicketCredential, TicketStored, TokenKind, TriesOfAccount, UserRow,
};
pub use audit::{AuditFilter, AuditRow, REPLACED};
pub use blocks::{BlockLogFilter, BlockLogPage, BlockLogRow, BlockRow, BlockSecretRow, BlockVersionRow, KeptLogLine};
pub use catalogue::{ObjectRow, ObjectState, RelationshipRow, SchemaChangeRow, Versions};
pub use commit::{Commit, OnCommit};
pub use committed_event::{CommittedEvent, EventText};
pub use connection::{Connection, NestedTransaction, Savepoint};
pub use deliveries::{
    ATTEMPTS_KEPT, AttemptRow, Attempted, Claim, Claimed, ClaimedDelivery, ClaimedEvent, DeadWindow, FirstPending, GroupCounts,
    LedgerFilter, LedgerRow, Outcome, QueueDepth, UndecidedEvents, UndecidedMax, VisibleEvents,
};
pub use error::DbError;
use error::storage_full;
pub use events::{EventHead, EventPage, FeedMark, HeadFilter, NewDelivery, NewEvent, ReplayFilter};
pub use instances::InstanceRow;
pub use makers::{Maker, MakerPart, Suspension, SuspensionReason, Thing, ThingKind, Unsettled};
pub use new_record::NewRecord;
pub use outbox_size::OutboxSize;
pub use postgres::Hints;
pub use read::{Cost, Read, ReadCost, Snapshot};
pub use record::{Page, Record, RecordsMax};
pub use room::Room;
pub use row::Row;
pub use spool::{Incomplete, Spool, SpoolReader, SpoolRoom, spool};
pub use subscriptions::SubscriptionRow;
pub use tasks::{TaskRow, TaskRunRow};
pub use webhooks::{PreviousSecret, WebhookRow};

/// The database's location, and its number of connections.
#[derive(Clone, Debug)]
pub enum Location {
    Sqlite { file: PathBuf },
    Postgres { url: String },
}

impl Location {
    /// Checks that the URL of a database can be parsed. It does not connect.
    ///
    /// # Errors
    /// A sentence for the operator. It shows no part of the URL, which may contain a password.
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
    /// A sentence for the operator: the server cannot connect to the database, or a newer version has migrated it.
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

    /// Runs `body` on a connection that reads for the service itself. It does not wait behind callers, and checks no rights. A
    /// read for a caller names its [`Reader`] instead.
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

    /// Reads a few rows for a caller, within the caller's share of connections. The statements read system tables only, or objects in
    /// version `schema` of the schema.
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
            // The statements name their columns, and the types of the rows are checked. So the version of the schema need not be
            // checked.
            Engine::Postgres(postgres) => postgres.read(&owner, None, body).await,
        }
    }

    /// Does the same as [`Store::read_rows`], for a body that may be a scan.
    ///
    /// A scan needs the permit that `permit` resolves to, and keeps it while it runs. A read of unknown cost begins without a
    /// permit. On SQLite it begins on the calling thread, where most reads end within their budget. On Postgres it begins on a
    /// connection. If the read takes longer, it is stopped and runs again as a scan. So `body` may be called twice.
    ///
    /// # Errors
    /// The error of `permit`, in addition to the body's own.
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

    /// Runs `body` as a caller's scan of system tables. It keeps `permit` while it runs, and does not use the places for the
    /// service's own scans.
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

    /// Runs `body` on one snapshot of the database, on a connection that does nothing else. `permit` is kept while it runs. If a client
    /// takes the rows slowly, the body puts them into a [`Spool`].
    ///
    /// # Errors
    /// An error to retry if the schema has changed before the body ran. `unavailable` after `time_max`.
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

    /// The maximum number of callers' scans that the engine runs at a time. The remaining connections are for everything else.
    pub fn callers_scans_max(&self) -> usize {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.callers_scans_max(),
            Engine::Postgres(postgres) => postgres.callers_scans_max(),
        }
    }

    /// Runs `body` in a transaction and commits if it returns `Ok`. When this function returns, the commit is durable.
    ///
    /// `writer` is checked in that transaction, before the body runs. If the caller disconnects before its turn, nothing is written.
    ///
    /// # Errors
    /// `storage_full`, in addition to the errors of the writer and the body.
    pub async fn write<T, F>(&self, writer: impl Writer, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        self.check_room()?;
        self.write_in_reserve(writer, body).await
    }

    /// Whether there is room for more data.
    ///
    /// # Errors
    /// `storage_full`, on SQLite. On Postgres, the statement itself fails when there is no room.
    pub fn check_room(&self) -> Result<()> {
        match &self.engine {
            Engine::Sqlite(sqlite) if !sqlite.has_room() => Err(storage_full(None)),
            Engine::Sqlite(_) | Engine::Postgres(_) => Ok(()),
        }
    }

    /// Does the same as [`Store::write`], also when there is too little room. It is for writes that free room, and for small
    /// writes that are needed to free room or to store an outcome.
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

    /// Does the same as [`Store::write`], for a change of the schema. On SQLite, the commit contains no other transaction, and
    /// foreign keys are off, so that a table can be replaced by its next version. On Postgres, it waits at most a few seconds for
    /// other transactions on the table.
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

    /// Whether the engine can keep search indexes. SQLite always can. Postgres can if pg_trgm is installed or may be installed.
    pub fn can_index_search(&self) -> bool {
        match &self.engine {
            Engine::Sqlite(_) => true,
            Engine::Postgres(postgres) => postgres.has_trigrams(),
        }
    }

    /// Listens for hints that other instances give to the dispatchers. Other instances exist only on Postgres.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn listen(&self) -> Result<Option<Hints>> {
        match &self.engine {
            Engine::Sqlite(_) => Ok(None),
            Engine::Postgres(postgres) => postgres.listen().await.map(Some),
        }
    }

    /// Removes deleted data from files, if this process can. On SQLite, the write-ahead log still contains it until the log is
    /// copied into the file and truncated. On Postgres, the server's own vacuum does this.
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

    /// The disk space that the database uses, and the space that is left.
    pub async fn room(&self) -> Result<Room> {
        match &self.engine {
            Engine::Sqlite(sqlite) => {
                let sqlite = Arc::clone(sqlite);
                // A file system on another machine may be slow.
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

    /// Ends the writer after its queued writes, and closes the connections.
    pub async fn close(&self) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.close().await,
            Engine::Postgres(postgres) => postgres.close().await,
        }
    }
}

/// The caller of a read. The caller's check runs on the connection after all waits, and before any other statement of the read.
pub trait Reader: Send + Sync + 'static {
    /// The owner whose share the read uses, and in whose turn it runs.
    fn owner(&self) -> QuotaOwner;

    /// The check that has to pass. `None` if nothing can have changed since the caller's rights were checked.
    fn check<'c>(&'c self, connection: &'c mut Connection) -> Option<BoxFuture<'c, Result<()>>>;
}

/// The caller of a write. The caller's check runs in the transaction, as the check of a reader runs on its connection.
///
/// Every write has to name its writer. So no write can forget to check whether its caller still has the right.
pub trait Writer: Reader {
    /// Makes the same check before the commit, for an engine on which other transactions commit meanwhile.
    fn check_before_commit<'c>(&'c self, connection: &'c mut Connection) -> Option<BoxFuture<'c, Result<()>>>;
}

/// The service itself is the writer. Nobody can take a right from it.
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

/// Checks the rights of `reader` on its connection.
async fn admit(reader: &impl Reader, connection: &mut Connection) -> Result<()> {
    match reader.check(connection) {
        Some(check) => check.await,
        None => Ok(()),
    }
}

/// Makes the body of a read that checks its reader first.
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

/// Does the same for a body that may run again.
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

/// Makes the body of a transaction that checks its writer first.
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
            // SQLite has only one writer, so nothing was committed in the meantime.
            if connection.dialect() == Dialect::Postgres
                && let Some(check) = writer.check_before_commit(connection)
            {
                check.await?;
            }
            Ok(answer)
        })
    }
}

//! The one crate that knows databases: SQLite and Postgres behind one executor.
//!
//! [`Store::read`] and [`Store::write`] run a body, an async function over a [`Connection`], on either engine. On SQLite a
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
mod migrate;
mod postgres;
mod record;
mod row;
mod sqlite;
mod subscriptions;
mod tasks;
mod webhooks;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use blockbase_query::Dialect;
use blockbase_schema::{Error, Result};
use futures_util::future::BoxFuture;

pub use accounts::{ApiKeyRow, KeyHolder, NewApiKey, NewSession, RoleRow, SessionHolder, SessionRow, UserRow};
pub use blocks::{BlockLogRow, BlockRow, BlockSecretRow, BlockVersionRow};
pub use catalogue::{Held, ObjectRow, RelationshipRow, SchemaChangeRow};
pub use connection::Connection;
pub use deliveries::{Claim, Claimed, ClaimedDelivery, ClaimedEvent, LedgerFilter, LedgerRow, Outcome, QueueDepth};
pub use error::DbError;
pub use events::{CommittedEvent, EventHead, EventPage, EventText, FeedMark, NewDelivery, NewEvent};
pub use postgres::Hints;
pub use record::{Page, Record};
pub use row::Row;
pub use subscriptions::SubscriptionRow;
pub use tasks::{TaskRow, TaskRunRow};
pub use webhooks::{PreviousSecret, WebhookRow};

/// What a commit tells of what it left in the outbox.
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

/// Which database, and with how many connections.
#[derive(Clone, Debug)]
pub enum Location {
    Sqlite { file: PathBuf },
    Postgres { url: String },
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

    /// Runs `body` on a connection that reads.
    pub async fn read<T, F>(&self, cost: ReadCost, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(cost, None, body).await,
            Engine::Postgres(postgres) => postgres.read(body).await,
        }
    }

    /// As [`Store::read`] of a few rows, for statements that were planned on version `schema` of the schema.
    ///
    /// # Errors
    /// One to retry where the schema is another by now.
    pub async fn read_rows<T, F>(&self, schema: i64, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(ReadCost::Rows, Some(schema), body).await,
            // Its statements name columns, and rows are checked for their types.
            Engine::Postgres(postgres) => postgres.read(body).await,
        }
    }

    /// As [`Store::read_rows`], for a body whose cost nobody knows beforehand.
    ///
    /// On SQLite it begins on the calling thread, where most reads end within their budget. One that does not is given up and
    /// run again on the blocking pool, which is why `body` may be called twice.
    pub async fn read_of_unknown_cost<T, F>(&self, schema: i64, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> Fn(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + Sync + 'static,
    {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read_of_unknown_cost(schema, body).await,
            Engine::Postgres(postgres) => postgres.read(body).await,
        }
    }

    /// Runs `body` in a transaction and commits it if it answers `Ok`. An answer means that the commit is durable.
    ///
    /// A caller that goes away before its turn leaves nothing behind.
    pub async fn write<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.write(false, body).await,
            Engine::Postgres(postgres) => postgres.write(false, body).await,
        }
    }

    /// As [`Store::write`], for a change of the schema: alone in its commit on SQLite, and with foreign keys off, so that a
    /// table can be replaced by its next version. On Postgres it waits a few seconds at most for what runs on the table.
    pub async fn write_schema<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.write(true, body).await,
            Engine::Postgres(postgres) => postgres.write(true, body).await,
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

    /// Whether the database answers.
    pub async fn is_ready(&self) -> bool {
        self.read(ReadCost::Rows, |connection| {
            Box::pin(async move { Ok(!connection.fetch("SELECT 1", Vec::new()).await?.is_empty()) })
        })
        .await
        .unwrap_or(false)
    }

    /// Ends the writer after what is queued, and closes the connections.
    pub async fn close(&self) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.close().await,
            Engine::Postgres(postgres) => postgres.close().await,
        }
    }
}

/// The answer while the database cannot be used.
pub(crate) fn unavailable(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let mut error =
        Error::new(blockbase_schema::Code::Unavailable, "The database cannot be reached at the moment. Try again shortly.");
    error.cause = Some(cause.into());
    error
}

//! Postgres: a pool; a write is a transaction on one of its connections.

mod statement;

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use blockbase_query::Statement;
use blockbase_schema::{Column, Result};
use futures_util::future::BoxFuture;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions, PgQueryResult, PgRow};
use sqlx::{AssertSqlSafe, Connection as _, Postgres as Driver, Transaction};

use crate::connection::{Connection, Inner};
use crate::error::DbError;
use crate::record::{Page, Record, RecordWriter};
use crate::row::Row;
use crate::{OnCommit, migrate};

const CONNECTIONS_DEFAULT: u32 = 16;
/// How long one statement may run, so that abandoned ones do not hold the pool.
const STATEMENT_TIMEOUT: &str = "60s";
/// How long a transaction may wait for its instance, so that one that was stopped in the middle holds no lock for ever.
const IDLE_IN_TRANSACTION: &str = "30s";
/// How long a request waits for a connection.
const ACQUIRE_WAIT: Duration = Duration::from_secs(10);

/// How long a change of the schema waits for what runs on its table, and runs itself.
const SCHEMA_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = '30min'";

#[derive(Clone)]
pub(crate) struct Postgres {
    pool: PgPool,
    /// For connections that are not of the pool. It may hold a password.
    url: Arc<str>,
    on_commit: OnCommit,
    has_trigrams: bool,
}

/// What a body runs on.
pub(crate) enum Session {
    Plain(PoolConnection<Driver>),
    Transaction(Transaction<'static, Driver>),
}

impl Postgres {
    pub(crate) async fn open(url: &str, connections_max: Option<u32>, on_commit: OnCommit) -> Result<Postgres, String> {
        // The URL may hold a password, so only the parser's own words are shown.
        let options = PgConnectOptions::from_str(url)
            .map_err(|_| "SVC_DATABASE_URL is not a Postgres URL like postgres://user:password@host:5432/name.".to_owned())?
            .application_name("blockbase")
            .statement_cache_capacity(500)
            .options([
                ("timezone", "UTC"),
                ("statement_timeout", STATEMENT_TIMEOUT),
                ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION),
            ]);
        // Once by itself first: a pool would try again until its time is over before it says what is wrong.
        let explain = |error: String| format!("Postgres (SVC_DATABASE_URL) cannot be reached: {error}.");
        match tokio::time::timeout(ACQUIRE_WAIT, sqlx::PgConnection::connect_with(&options)).await {
            Ok(Ok(connection)) => drop(connection.close().await),
            Ok(Err(error)) => return Err(explain(error.to_string())),
            Err(_) => return Err(explain("no answer in time".to_owned())),
        }
        let pool = PgPoolOptions::new()
            .max_connections(connections_max.unwrap_or(CONNECTIONS_DEFAULT))
            .acquire_timeout(ACQUIRE_WAIT)
            // A dead connection shows at its first statement; a ping before each would cost a round trip a request.
            .test_before_acquire(false)
            .connect_lazy_with(options);
        migrate::postgres(&pool).await?;
        let has_trigrams = match sqlx::raw_sql("CREATE EXTENSION IF NOT EXISTS pg_trgm").execute(&pool).await {
            Ok(_) => true,
            Err(error) => {
                tracing::warn!(
                    store.error = %error,
                    "Postgres has no extension pg_trgm and none can be made: every search is a scan. \
                     Have an administrator run CREATE EXTENSION pg_trgm and start again"
                );
                false
            }
        };
        Ok(Postgres { pool, url: url.into(), on_commit, has_trigrams })
    }

    pub(crate) fn has_trigrams(&self) -> bool {
        self.has_trigrams
    }

    pub(crate) async fn read<T, F>(&self, body: F) -> Result<T>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>>,
    {
        let session = self.pool.acquire().await.map_err(statement::db_error)?;
        body(&mut Connection::new(Inner::Postgres(Session::Plain(session)))).await
    }

    pub(crate) async fn write<T, F>(&self, is_schema: bool, body: F) -> Result<T>
    where
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>>,
    {
        let mut transaction = self.pool.begin().await.map_err(statement::db_error)?;
        if is_schema {
            // While it waits for a table, everybody else waits behind it.
            sqlx::raw_sql(SCHEMA_LOCK_TIMEOUT).execute(&mut *transaction).await.map_err(statement::db_error)?;
        }
        let mut connection = Connection::new(Inner::Postgres(Session::Transaction(transaction)));
        // Dropping the transaction on any way out rolls it back.
        let answer = body(&mut connection).await?;
        let mut differences = std::collections::BTreeMap::new();
        for (object_id, difference) in std::mem::take(&mut connection.effects.counts) {
            *differences.entry(object_id).or_insert(0) += difference;
        }
        for (object_id, difference) in differences {
            // A row of its own, so that writers of one object never wait for each other; `fold_counts` adds them up.
            connection
                .run("INSERT INTO svc_counts (object_id, rows) VALUES ($1, $2)", vec![object_id.into(), i64::into(difference)])
                .await?;
        }
        if let Inner::Postgres(Session::Transaction(transaction)) = connection.inner {
            transaction.commit().await.map_err(statement::db_error)?;
        }
        if let Some(commit) = connection.effects.commit() {
            (self.on_commit)(commit);
        }
        Ok(answer)
    }

    /// On a connection of its own: it is kept as long as the server runs.
    pub(crate) async fn listen(&self) -> Result<Hints> {
        let mut listener = PgListener::connect(&self.url).await.map_err(statement::db_error)?;
        listener.listen(HINTS).await.map_err(statement::db_error)?;
        Ok(Hints { listener })
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

/// The channel on which instances tell each other that there is something to deliver.
const HINTS: &str = "svc_deliveries";

/// What instances tell each other. A hint may be lost: whoever waits for one looks by itself as well.
pub struct Hints {
    listener: PgListener,
}

impl Hints {
    /// The next hint: the name of the instance that gave it. After a lost connection it goes on with a new one.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn next(&mut self) -> Result<String> {
        let hint = self.listener.recv().await.map_err(statement::db_error)?;
        Ok(hint.payload().to_owned())
    }
}

impl Connection {
    /// Tells the other instances that there is something to deliver.
    pub async fn hint(&mut self, instance: &str) -> Result<(), DbError> {
        let sql = "SELECT 1::bigint FROM (SELECT pg_notify($1, $2)) AS hint";
        self.fetch(sql, vec![HINTS.into(), instance.into()]).await.map(|_| ())
    }
}

impl Session {
    fn driver(&mut self) -> &mut sqlx::PgConnection {
        match self {
            Session::Plain(connection) => connection,
            Session::Transaction(transaction) => transaction,
        }
    }

    pub(crate) async fn execute(&mut self, statement: Statement) -> Result<u64, DbError> {
        let answer: PgQueryResult = match statement.params.is_empty() {
            // Definitions are sent plain: a prepared one would only fill the cache.
            true => sqlx::raw_sql(AssertSqlSafe(statement.sql)).execute(self.driver()).await.map_err(statement::db_error)?,
            false => {
                let arguments = statement::arguments(statement.params)?;
                sqlx::query_with(AssertSqlSafe(statement.sql), arguments)
                    .execute(self.driver())
                    .await
                    .map_err(statement::db_error)?
            }
        };
        Ok(answer.rows_affected())
    }

    async fn rows(&mut self, statement: Statement) -> Result<Vec<PgRow>, DbError> {
        let arguments = statement::arguments(statement.params)?;
        sqlx::query_with(AssertSqlSafe(statement.sql), arguments).fetch_all(self.driver()).await.map_err(statement::db_error)
    }

    pub(crate) async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, DbError> {
        self.rows(statement).await?.iter().map(statement::system_row).collect()
    }

    pub(crate) async fn fetch_json(
        &mut self,
        statement: Statement,
        columns: &[&Column],
        rows_max: usize,
    ) -> Result<Page, DbError> {
        let rows = self.rows(statement).await?;
        statement::check_types(rows.first(), columns.iter().map(|column| column.ty))?;
        let mut writer = RecordWriter::new(columns.iter().copied(), 8 * 1024, rows_max);
        for row in &rows {
            writer.row(|index, out| statement::write_cell(out, columns[index].ty, row, index))?;
        }
        Ok(writer.finish())
    }

    pub(crate) async fn fetch_record(&mut self, statement: Statement, columns: &[Column]) -> Result<Option<Record>, DbError> {
        let rows = self.rows(statement).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        statement::check_types(Some(row), columns.iter().map(|column| column.ty))?;
        let writer = RecordWriter::new(columns, 0, 1);
        let tail = statement::tail(row, columns.len())?;
        writer.record(0, tail, |index, out| statement::write_cell(out, columns[index].ty, row, index)).map(Some)
    }

    pub(crate) async fn fetch_records(
        &mut self,
        statement: Statement,
        columns: &[&Column],
        hidden: usize,
    ) -> Result<Vec<Record>, DbError> {
        let rows = self.rows(statement).await?;
        statement::check_types(rows.first(), columns.iter().map(|column| column.ty))?;
        let writer = RecordWriter::new(columns.iter().copied(), 0, 0);
        rows.iter()
            .map(|row| {
                let tail = statement::tail(row, columns.len())?;
                writer.record(hidden, tail, |index, out| statement::write_cell(out, columns[index].ty, row, index))
            })
            .collect()
    }
}

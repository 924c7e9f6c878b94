//! Postgres: connections of the service and of callers. A write is a transaction on one of them.
//!
//! The service's own reads and writes never wait behind those of callers. Callers share the other connections. Each caller first
//! takes a place in a queue that serves callers in turn.

use std::collections::BTreeMap;
use std::pin::pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use blockbase_quota::{Places, PlacesRule, QuotaOwner};
use blockbase_schema::{Error, Result};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _};

use crate::connection::{Connection, Inner};
use crate::drivers::postgres::{Away, Kept, Session, statement};
use crate::error::DbError;
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

/// A change of the schema waits only a short time for other transactions on its table, because all other transactions wait behind
/// it. It may run for a long time.
const BEGIN_SCHEMA: &str = "BEGIN; SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = '30min'";

#[derive(Clone)]
pub(crate) struct Postgres {
    /// The connections of the service itself.
    own: PgPool,
    /// The connections for callers. The places below decide which caller gets one.
    callers: PgPool,
    places: Arc<Places>,
    /// The callers' connections that wait for the next caller, outside of their pool.
    kept: Arc<Kept>,
    callers_connections_max: u32,
    /// The URL for connections outside the pools. It may contain a password.
    url: Arc<str>,
    on_commit: OnCommit,
    has_trigrams: bool,
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
            // Compiling a statement takes longer than running most of those that Postgres would compile.
            ("jit", "off"),
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
        let kept = Kept::new();
        Ok(Postgres { own, callers, places, kept, callers_connections_max, url: url.into(), on_commit, has_trigrams })
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
        if owner.is_service() {
            let connection = self.own.acquire().await.map_err(statement::db_error)?;
            return Ok(Session::new(Away::new(connection), None, None));
        }
        let place = self.places.take(owner).await.map_err(|_| {
            let message = "Too many requests wait for the database, or too many of yours. Try again later.";
            Error::busy(message)
        })?;
        let away = match self.kept.take() {
            Some(away) => away,
            None => Away::new(self.callers.acquire().await.map_err(statement::db_error)?),
        };
        Ok(Session::new(away, Some(Arc::clone(&self.kept)), Some(place)))
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
        session.begin_with_next(if is_schema { BEGIN_SCHEMA } else { "BEGIN" });
        let mut connection = Connection::new(Inner::Postgres(session));
        let result = body(&mut connection).await;
        let answer = match result.and_then(|answer| connection.effects.check_committable().map(|()| answer)) {
            Ok(answer) => answer,
            Err(error) => {
                if let Inner::Postgres(session) = connection.inner {
                    session.end_later("ROLLBACK");
                }
                return Err(error);
            }
        };
        if let Inner::Postgres(mut session) = connection.inner
            && let Err(error) = session.commit(commit_with(&connection.effects.counts)).await
        {
            session.end_later("ROLLBACK");
            return Err(error.into());
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
        // The pool waits for the connections that are away from it.
        let callers = self.callers.close();
        self.kept.end();
        tokio::join!(self.own.close(), callers);
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

/// The statement that commits a write. In the same round trip, it writes the changes of the stored counts: each is a row, so that
/// writers of one object never wait for each other. `fold_counts` adds the rows up.
fn commit_with(counts: &[(i64, i64)]) -> String {
    let mut differences: BTreeMap<i64, i64> = BTreeMap::new();
    for &(object_id, difference) in counts {
        *differences.entry(object_id).or_insert(0) += difference;
    }
    let rows = differences.iter().filter(|(_, difference)| **difference != 0);
    let rows: Vec<String> = rows.map(|(object_id, difference)| format!("({object_id}, {difference})")).collect();
    match rows.is_empty() {
        true => "COMMIT".to_owned(),
        false => format!("INSERT INTO svc_counts (object_id, rows) VALUES {}; COMMIT", rows.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_has_one_count_for_each_object() {
        assert_eq!([commit_with(&[]), commit_with(&[(7, 1), (7, -1)])], ["COMMIT", "COMMIT"]);
        assert_eq!(
            commit_with(&[(8, 1), (7, 2), (8, -4)]),
            "INSERT INTO svc_counts (object_id, rows) VALUES (7, 2), (8, -3); COMMIT"
        );
    }
}

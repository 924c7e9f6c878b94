//! The benchmark's queries to a server's database. The ledger's own route would count the entries that it lists, which would disturb the
//! measurement.

use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, PgConnection};

/// How often the progress of deliveries is checked.
const LOOK: Duration = Duration::from_millis(20);
/// How long it takes at most until all connections of Postgres have reported their counts, and a second more. A connection
/// reports them at the end of a transaction, but at most once a second, or when it has been idle for ten seconds.
pub(crate) const COUNTS_LATE: Duration = Duration::from_secs(11);
/// How long deliveries may make no progress before the benchmark gives up.
const STILL_MAX: Duration = Duration::from_secs(120);

pub(crate) enum Database {
    Sqlite(rusqlite::Connection),
    Postgres(PgConnection),
}

/// Waiting deliveries, whose numbers have no gaps.
#[derive(Clone, Copy)]
pub(crate) struct Backlog {
    pub(crate) first: i64,
    pub(crate) count: i64,
}

impl Database {
    /// The database of a server on SQLite, on a separate connection.
    pub(crate) fn file(path: &Path) -> Database {
        let driver = rusqlite::Connection::open(path).unwrap();
        driver.busy_timeout(Duration::from_secs(60)).unwrap();
        Database::Sqlite(driver)
    }

    /// The id of the newest event.
    pub(crate) async fn newest_event(&mut self) -> String {
        const SQL: &str = "SELECT id FROM svc_events ORDER BY seq DESC LIMIT 1";
        match self {
            Database::Sqlite(driver) => driver.query_row(SQL, [], |row| row.get(0)).unwrap(),
            Database::Postgres(connection) => sqlx::query_scalar(SQL).fetch_one(connection).await.unwrap(),
        }
    }

    /// The first column of each row.
    async fn integers(&mut self, sql: String) -> Vec<Option<i64>> {
        match self {
            Database::Sqlite(driver) => {
                let mut statement = driver.prepare_cached(&sql).unwrap();
                statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
            }
            Database::Postgres(connection) => sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(connection).await.unwrap(),
        }
    }

    async fn integer(&mut self, sql: String) -> Option<i64> {
        self.integers(sql).await.first().copied().flatten()
    }

    /// The number of transactions that Postgres has committed for this database so far, as far as their connections have reported
    /// them ([`COUNTS_LATE`]). A read outside of a transaction counts as one too. `None` for SQLite, which does not count them.
    pub(crate) async fn transactions(&mut self) -> Option<i64> {
        match self {
            Database::Sqlite(_) => None,
            Database::Postgres(_) => {
                self.integer("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()".to_owned()).await
            }
        }
    }

    /// The number of times that Postgres has begun to look for rows of a table so far, in the table or in one of its indexes. A
    /// check of a foreign key counts too. Otherwise the same as [`Database::transactions`].
    pub(crate) async fn scans(&mut self, table: &str) -> Option<i64> {
        match self {
            Database::Sqlite(_) => None,
            Database::Postgres(_) => {
                let sql = "SELECT seq_scan + coalesce(idx_scan, 0) FROM pg_stat_user_tables WHERE relname";
                self.integer(format!("{sql} = '{table}'")).await
            }
        }
    }

    pub(crate) async fn execute(&mut self, sql: String) {
        match self {
            Database::Sqlite(driver) => driver.execute_batch(&sql).unwrap(),
            Database::Postgres(connection) => {
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.unwrap();
            }
        }
    }

    /// The earliest event, from this number on, that a group has not got yet. The caller passes the last result, so the query
    /// needs only one step in an index, no matter which index Postgres uses.
    async fn first_pending(&mut self, consumer: &str, from: i64) -> Option<i64> {
        let sql = format!(
            "SELECT min(event_seq) FROM svc_deliveries \
             WHERE consumer = '{consumer}' AND status = 'pending' AND event_seq >= {from}"
        );
        self.integer(sql).await
    }

    /// The number of events that a group has not got yet.
    pub(crate) async fn pending(&mut self, consumer: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM svc_deliveries WHERE consumer = '{consumer}' AND status = 'pending'");
        self.integer(sql).await.unwrap()
    }

    /// The number of failed deliveries to a group.
    pub(crate) async fn failed(&mut self, consumer: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM svc_deliveries WHERE consumer = '{consumer}' AND status = 'failed'");
        self.integer(sql).await.unwrap()
    }

    /// Milliseconds from each write's start to its delivery, from the ledger, in the order of the writes.
    pub(crate) async fn delivered_after_ms(&mut self, consumer: &str) -> Vec<u64> {
        let sql = format!(
            "SELECT d.delivered_at - e.occurred_at FROM svc_deliveries d JOIN svc_events e ON e.seq = d.event_seq \
             WHERE d.consumer = '{consumer}' AND d.status = 'delivered' ORDER BY d.event_seq"
        );
        self.integers(sql).await.into_iter().flatten().map(|pause| u64::try_from(pause).unwrap_or(0)).collect()
    }

    /// Creates events like the newest one of this topic. Each belongs to a different record and waits for delivery to a group.
    /// The server does not run during this time.
    pub(crate) async fn fill(&mut self, topic: &str, consumer: &str, handler: &str, count: u32) -> Backlog {
        let last = self.integer("SELECT max(seq) FROM svc_events".to_owned()).await.unwrap();
        let (numbers, number) = match self {
            Database::Sqlite(_) => (
                format!(
                    "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT i FROM n) AS n"
                ),
                format!("printf('%012x', {last} + n.i)"),
            ),
            Database::Postgres(_) => {
                (format!("generate_series(1, {count}) AS n (i)"), format!("lpad(to_hex({last} + n.i), 12, '0')"))
            }
        };
        // The statement reads from a separate table. If it read the table that it writes, it would first collect all rows.
        self.execute(format!(
            "CREATE TEMPORARY TABLE template AS SELECT * FROM svc_events WHERE topic = '{topic}' ORDER BY seq DESC LIMIT 1"
        ))
        .await;
        self.execute(format!(
            "INSERT INTO svc_events (id, topic, payload, object, record_id, owner, depth, occurred_at) \
             SELECT '00000000-0000-7000-8000-' || {number}, e.topic, e.payload, e.object, '00000000-0000-7000-9000-' || {number}, \
             e.owner, e.depth, e.occurred_at \
             FROM {numbers} CROSS JOIN template AS e \
             ORDER BY n.i"
        ))
        .await;
        self.execute(format!(
            "INSERT INTO svc_deliveries (event_seq, consumer, handler, record_id, status, dead, attempts, next_attempt_at) \
             SELECT seq, '{consumer}', '{handler}', record_id, 'pending', FALSE, 0, occurred_at \
             FROM svc_events WHERE seq > {last} ORDER BY seq"
        ))
        .await;
        let first = self.first_pending(consumer, 0).await.unwrap();
        let backlog = Backlog { first, count: i64::from(count) };
        assert_eq!(self.integer("SELECT max(seq) FROM svc_events".to_owned()).await.unwrap(), first + backlog.count - 1);
        backlog
    }

    /// The number of delivered events of a backlog. The caller already knows that `before` of them are delivered.
    pub(crate) async fn done(&mut self, consumer: &str, backlog: Backlog, before: i64) -> i64 {
        let end = backlog.first + backlog.count;
        let first = self.first_pending(consumer, backlog.first + before).await.unwrap_or(end);
        first.min(end) - backlog.first
    }

    /// Watches a backlog until it is empty. Returns the time at which each tenth of it was first seen as delivered.
    pub(crate) async fn tenths(&mut self, consumer: &str, backlog: Backlog) -> Vec<(Instant, i64)> {
        let mut tenths = Vec::new();
        let (mut seen, mut moved) = (0, Instant::now());
        loop {
            let done = self.done(consumer, backlog, seen).await;
            let now = Instant::now();
            if done != seen {
                (seen, moved) = (done, now);
            }
            if done * 10 >= backlog.count * (tenths.len() as i64 + 1) {
                tenths.push((now, done));
            }
            if done == backlog.count {
                return tenths;
            }
            assert!(moved.elapsed() < STILL_MAX, "after {done} of {} nothing is delivered any more", backlog.count);
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until a group has got all events.
    pub(crate) async fn drained(&mut self, consumer: &str) {
        let (mut seen, mut moved) = (0, Instant::now());
        while let Some(first) = self.first_pending(consumer, seen).await {
            if seen != first {
                (seen, moved) = (first, Instant::now());
            }
            assert!(moved.elapsed() < STILL_MAX, "of {consumer} nothing is delivered any more");
            tokio::time::sleep(LOOK).await;
        }
    }
}

//! The processes that serve one Postgres database. Each has a row that it updates every few seconds.
//!
//! Only one process uses a SQLite file, so there is no such table.

use blockbase_query::Dialect;

use crate::connection::Connection;
use crate::error::DbError;

/// A process that serves the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceRow {
    pub id: String,
    pub version: String,
    /// The time in milliseconds since the epoch, by the database's clock. The same applies to `seen_at`.
    pub started_at: i64,
    pub seen_at: i64,
    /// The number of milliseconds since `seen_at`.
    pub silent_ms: i64,
}

/// How long a process that ended without reporting it is still shown, in milliseconds. After that, the next report of another
/// process deletes its row.
const SHOWN_MS: i64 = 600_000;

impl Connection {
    /// Reports with one short statement that a process is alive. `age_ms` is the time since its start.
    pub async fn note_instance(&mut self, id: &str, version: &str, age_ms: i64) -> Result<(), DbError> {
        if self.dialect() == Dialect::Sqlite {
            return Ok(());
        }
        const SQL: &str = "WITH clock AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now), \
             gone AS (DELETE FROM svc_instances USING clock WHERE seen_at < clock.now - $4 AND id <> $1) \
             INSERT INTO svc_instances (id, version, started_at, seen_at) SELECT $1, $2, clock.now - $3, clock.now FROM clock \
             ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at";
        self.run(SQL, vec![id.into(), version.into(), age_ms.into(), SHOWN_MS.into()]).await.map(|_| ())
    }

    /// Reports that a process ends.
    pub async fn forget_instance(&mut self, id: &str) -> Result<(), DbError> {
        match self.dialect() {
            Dialect::Sqlite => Ok(()),
            Dialect::Postgres => self.run("DELETE FROM svc_instances WHERE id = $1", vec![id.into()]).await.map(|_| ()),
        }
    }

    /// At most `limit` processes, the oldest first. The list is empty on SQLite.
    pub async fn instances(&mut self, limit: i64) -> Result<Vec<InstanceRow>, DbError> {
        if self.dialect() == Dialect::Sqlite {
            return Ok(Vec::new());
        }
        let sql = "SELECT id, version, started_at, seen_at, (extract(epoch FROM clock_timestamp()) * 1000)::bigint - seen_at \
                   FROM svc_instances ORDER BY started_at, id LIMIT $1";
        let rows = self.fetch(sql, vec![limit.into()]).await?;
        rows.iter()
            .map(|row| {
                Ok(InstanceRow {
                    id: row.text(0)?,
                    version: row.text(1)?,
                    started_at: row.integer(2)?,
                    seen_at: row.integer(3)?,
                    silent_ms: row.integer(4)?,
                })
            })
            .collect()
    }

    /// The version of the engine, as the engine reports it.
    pub async fn engine_version(&mut self) -> Result<String, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "SELECT sqlite_version()",
            Dialect::Postgres => "SELECT current_setting('server_version')",
        };
        let rows = self.fetch(sql, Vec::new()).await?;
        rows.first().ok_or_else(|| DbError::Other("the engine has no version".into()))?.text(0)
    }
}

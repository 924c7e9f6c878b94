//! The processes that serve one Postgres, each with a row that it brings up to date every few seconds.
//!
//! A SQLite file has one process, and no such table.

use blockbase_query::Dialect;

use crate::connection::Connection;
use crate::error::DbError;

/// A process that serves the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceRow {
    pub id: String,
    pub version: String,
    /// Milliseconds since the epoch by the database's clock, as `seen_at`.
    pub started_at: i64,
    pub seen_at: i64,
    /// How long ago that was, in milliseconds.
    pub silent_ms: i64,
}

/// How long a process that ended without a word is shown, in milliseconds. After that, the next sign of life of any other deletes
/// its row.
const SHOWN_MS: i64 = 600_000;

impl Connection {
    /// Says that a process lives. One short statement. `age_ms` is how long it has lived.
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

    /// Says that a process ends.
    pub async fn forget_instance(&mut self, id: &str) -> Result<(), DbError> {
        match self.dialect() {
            Dialect::Sqlite => Ok(()),
            Dialect::Postgres => self.run("DELETE FROM svc_instances WHERE id = $1", vec![id.into()]).await.map(|_| ()),
        }
    }

    /// At most `limit` processes, the oldest first. None on SQLite.
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

    /// The version of the engine as it names itself.
    pub async fn engine_version(&mut self) -> Result<String, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "SELECT sqlite_version()",
            Dialect::Postgres => "SELECT current_setting('server_version')",
        };
        let rows = self.fetch(sql, Vec::new()).await?;
        rows.first().ok_or_else(|| DbError::Other("the engine has no version".into()))?.text(0)
    }
}

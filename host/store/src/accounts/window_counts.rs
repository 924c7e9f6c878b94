//! Counts of events within a window of time, for limits that hold on all instances.

use crate::connection::Connection;
use crate::error::DbError;

impl Connection {
    /// Counts an event under a key, such as a mail to an address or a wrong password for an account. Returns the count in the
    /// current window, which begins with the first event, and the time when the window began. The row stays locked, so that
    /// concurrent requests are all counted.
    pub async fn count_in_window(&mut self, key: &str, window_ms: i64, now: i64) -> Result<(i64, i64), DbError> {
        let rows = self
            .fetch(
                "INSERT INTO svc_window_counts (counted, since, times) VALUES ($1, $2, 1) \
                 ON CONFLICT (counted) DO UPDATE SET \
                 times = CASE WHEN svc_window_counts.since <= $3 THEN 1 ELSE svc_window_counts.times + 1 END, \
                 since = CASE WHEN svc_window_counts.since <= $3 THEN excluded.since ELSE svc_window_counts.since END \
                 RETURNING times, since",
                vec![key.into(), now.into(), (now - window_ms).into()],
            )
            .await?;
        rows.first().map_or(Ok((0, now)), |row| Ok((row.integer(0)?, row.integer(1)?)))
    }

    /// Takes back one count of a key, because the counted event did not happen.
    pub async fn uncount(&mut self, key: &str) -> Result<(), DbError> {
        let sql = "UPDATE svc_window_counts SET times = times - 1 WHERE counted = $1 AND times > 0";
        self.run(sql, vec![key.into()]).await.map(|_| ())
    }

    /// Deletes at most `limit` counts whose window began before `before`.
    pub async fn purge_window_counts(&mut self, before: i64, limit: i64) -> Result<u64, DbError> {
        let sql = "DELETE FROM svc_window_counts WHERE counted IN \
                   (SELECT counted FROM svc_window_counts WHERE since < $1 ORDER BY since LIMIT $2)";
        self.run(sql, vec![before.into(), limit.into()]).await
    }
}

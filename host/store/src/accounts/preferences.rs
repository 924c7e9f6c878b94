//! The console's preferences of users, one JSON object for each.

use crate::connection::Connection;
use crate::error::DbError;

impl Connection {
    /// A user's preferences as JSON text. `None` if nothing was stored yet.
    pub async fn preferences(&mut self, user_id: &str) -> Result<Option<String>, DbError> {
        let rows = self.fetch("SELECT preferences FROM svc_preferences WHERE user_id = $1", vec![user_id.into()]).await?;
        rows.first().map(|row| row.text(0)).transpose()
    }

    /// Returns the same, or an empty object if nothing was stored. No other transaction changes them until this one ends. The
    /// caller of this function has locked the user ([`Connection::keep_user`]).
    pub async fn held_preferences(&mut self, user_id: &str, now: i64) -> Result<String, DbError> {
        // It has to be one statement, because it also has to lock a row that already exists.
        let rows = self
            .fetch(
                "INSERT INTO svc_preferences (user_id, preferences, updated_at) VALUES ($1, '{}', $2) \
                 ON CONFLICT (user_id) DO UPDATE SET updated_at = svc_preferences.updated_at RETURNING preferences",
                vec![user_id.into(), now.into()],
            )
            .await?;
        rows.first().ok_or_else(|| DbError::Other("preferences that are held are gone".into()))?.text(0)
    }

    /// Stores the preferences. The caller of this function has locked them before.
    pub async fn store_preferences(&mut self, user_id: &str, preferences: &str, now: i64) -> Result<bool, DbError> {
        let stored = self
            .run(
                "UPDATE svc_preferences SET preferences = $2, updated_at = $3 WHERE user_id = $1",
                vec![user_id.into(), preferences.into(), now.into()],
            )
            .await?;
        Ok(stored == 1)
    }

    /// Copies the preferences of `from` to `to`, unless `to` has some.
    pub async fn copy_preferences(&mut self, from: &str, to: &str) -> Result<(), DbError> {
        self.run(
            "INSERT INTO svc_preferences (user_id, preferences, updated_at) \
             SELECT $2, preferences, updated_at FROM svc_preferences WHERE user_id = $1 ON CONFLICT (user_id) DO NOTHING",
            vec![from.into(), to.into()],
        )
        .await
        .map(|_| ())
    }
}

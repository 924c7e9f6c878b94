//! Sessions: only the SHA-256 of a token is stored.

use blockbase_query::Statement;

use super::{RoleRow, UserRow, user, user_columns};
use crate::connection::Connection;
use crate::error::DbError;
use crate::row::Row;

/// A session to be created.
#[derive(Clone, Debug)]
pub struct NewSession {
    pub id: String,
    /// SHA-256 of the token, in hexadecimal.
    pub token_hash: String,
    pub user_id: String,
    pub expires_at: i64,
    pub now: i64,
    pub ip_address: Option<String>,
    pub user_agent: Option<String>,
    /// Whether the session began with the bootstrap password.
    pub is_bootstrap: bool,
}

/// A session as stored.
#[derive(Clone, Debug)]
pub struct SessionRow {
    pub id: String,
    pub user_id: String,
    pub expires_at: i64,
    pub created_at: i64,
    pub updated_at: i64,
    pub ip_address: Option<String>,
    pub user_agent: Option<String>,
    /// The time of the last use, exact to some minutes. `None` if no use was stored yet.
    pub last_seen_at: Option<i64>,
}

/// A session with its user.
#[derive(Clone, Debug)]
pub struct SessionHolder {
    pub session: SessionRow,
    pub user: UserRow,
    pub roles: Vec<RoleRow>,
    /// Whether the session began with the bootstrap password and the account is not claimed yet.
    pub pending_claim: bool,
}

/// The query for sessions with their users, up to the condition.
macro_rules! session_holder {
    () => {
        concat!(
            "SELECT s.id, s.user_id, s.expires_at, s.created_at, s.updated_at, s.ip_address, s.user_agent, s.last_seen_at, ",
            user_columns!(),
            ", (s.is_bootstrap AND EXISTS (SELECT 1 FROM svc_pending_claims p WHERE p.user_id = s.user_id)) \
             FROM svc_sessions s JOIN svc_users u ON u.id = s.user_id WHERE "
        )
    };
}

fn session(row: &Row) -> Result<SessionRow, DbError> {
    Ok(SessionRow {
        id: row.text(0)?,
        user_id: row.text(1)?,
        expires_at: row.integer(2)?,
        created_at: row.integer(3)?,
        updated_at: row.integer(4)?,
        ip_address: row.optional_text(5)?,
        user_agent: row.optional_text(6)?,
        last_seen_at: row.optional_integer(7)?,
    })
}

impl Connection {
    pub async fn insert_session(&mut self, session: NewSession) -> Result<(), DbError> {
        self.run(
            "INSERT INTO svc_sessions (id, token_hash, user_id, expires_at, created_at, updated_at, ip_address, user_agent, \
             is_bootstrap, last_seen_at) VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8, $5)",
            vec![
                session.id.into(),
                session.token_hash.into(),
                session.user_id.into(),
                session.expires_at.into(),
                session.now.into(),
                session.ip_address.into(),
                session.user_agent.into(),
                session.is_bootstrap.into(),
            ],
        )
        .await
        .map(|_| ())
    }

    /// The session of a token with its user and their roles, unless it has expired.
    pub async fn session(&mut self, token_hash: &str, now: i64) -> Result<Option<SessionHolder>, DbError> {
        self.session_by(concat!(session_holder!(), "s.token_hash = $1 AND s.expires_at > $2"), token_hash, now).await
    }

    /// Returns the same for a session's id.
    pub async fn session_of_id(&mut self, id: &str, now: i64) -> Result<Option<SessionHolder>, DbError> {
        self.session_by(concat!(session_holder!(), "s.id = $1 AND s.expires_at > $2"), id, now).await
    }

    async fn session_by(&mut self, sql: &'static str, key: &str, now: i64) -> Result<Option<SessionHolder>, DbError> {
        let rows = self.fetch(sql, vec![key.into(), now.into()]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let (session, user, pending_claim) = (session(row)?, user(row, 8)?, row.boolean(17)?);
        let roles = self.roles_of(&user.id).await?;
        Ok(Some(SessionHolder { session, user, roles, pending_claim }))
    }

    /// One page of a user's sessions that have not expired, the newest first.
    pub async fn sessions_of(&mut self, user_id: &str, now: i64, limit: i64, offset: i64) -> Result<Vec<SessionRow>, DbError> {
        let rows = self
            .fetch(
                "SELECT id, user_id, expires_at, created_at, updated_at, ip_address, user_agent, last_seen_at FROM svc_sessions \
                 WHERE user_id = $1 AND expires_at > $2 ORDER BY created_at DESC, id DESC LIMIT $3 OFFSET $4",
                vec![user_id.into(), now.into(), limit.into(), offset.into()],
            )
            .await?;
        rows.iter().map(session).collect()
    }

    /// The number of a user's sessions that have not expired.
    pub async fn sessions_count(&mut self, user_id: &str, now: i64) -> Result<i64, DbError> {
        let sql = self.placeholders("SELECT count(*) FROM svc_sessions WHERE user_id = $1 AND expires_at > $2");
        self.fetch_integer(Statement { sql, params: vec![user_id.into(), now.into()] }).await
    }

    /// Deletes all sessions of a user except the `kept` ones that were used last. Expired sessions are always deleted.
    pub async fn delete_oldest_sessions(&mut self, user_id: &str, now: i64, kept: i64) -> Result<u64, DbError> {
        self.run(
            "DELETE FROM svc_sessions WHERE user_id = $1 AND id NOT IN (SELECT id FROM svc_sessions WHERE user_id = $1 AND \
             expires_at > $2 ORDER BY coalesce(last_seen_at, updated_at) DESC, created_at DESC, id DESC LIMIT $3)",
            vec![user_id.into(), now.into(), kept.into()],
        )
        .await
    }

    pub async fn delete_session(&mut self, token_hash: &str) -> Result<u64, DbError> {
        self.run("DELETE FROM svc_sessions WHERE token_hash = $1", vec![token_hash.into()]).await
    }

    /// Deletes one session of a user, by its id or by its token's hash.
    pub async fn delete_session_of(&mut self, user_id: &str, id_or_hash: &str) -> Result<u64, DbError> {
        self.run(
            "DELETE FROM svc_sessions WHERE user_id = $1 AND (id = $2 OR token_hash = $2)",
            vec![user_id.into(), id_or_hash.into()],
        )
        .await
    }

    /// Deletes all sessions of a user except the one with the id `kept`.
    pub async fn delete_sessions_of(&mut self, user_id: &str, kept: Option<&str>) -> Result<u64, DbError> {
        self.run(
            "DELETE FROM svc_sessions WHERE user_id = $1 AND id <> $2",
            vec![user_id.into(), kept.unwrap_or_default().into()],
        )
        .await
    }

    /// Ends one session of a user by its id. A token's hash is not accepted. `false` if the user has no session with this id.
    pub async fn end_session(&mut self, user_id: &str, id: &str) -> Result<bool, DbError> {
        let sql = "DELETE FROM svc_sessions WHERE user_id = $1 AND id = $2";
        Ok(self.run(sql, vec![user_id.into(), id.into()]).await? == 1)
    }

    /// Stores when a session was last used.
    pub async fn touch_session(&mut self, id: &str, now: i64) -> Result<(), DbError> {
        self.run("UPDATE svc_sessions SET last_seen_at = $2 WHERE id = $1", vec![id.into(), now.into()]).await.map(|_| ())
    }

    /// Moves a session's end to a later time.
    pub async fn extend_session(&mut self, id: &str, expires_at: i64, now: i64) -> Result<u64, DbError> {
        self.run(
            "UPDATE svc_sessions SET expires_at = $2, updated_at = $3 WHERE id = $1",
            vec![id.into(), expires_at.into(), now.into()],
        )
        .await
    }

    /// Deletes at most `limit` sessions that have expired.
    pub async fn purge_sessions(&mut self, now: i64, limit: i64) -> Result<u64, DbError> {
        self.run(
            "DELETE FROM svc_sessions WHERE id IN (SELECT id FROM svc_sessions WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)",
            vec![now.into(), limit.into()],
        )
        .await
    }
}

//! Users, credentials, sessions, roles.

use crate::connection::Connection;
use crate::error::DbError;
use crate::row::Row;

/// A user to be created.
#[derive(Clone, Debug)]
pub struct NewUser {
    pub id: String,
    pub name: String,
    pub email: String,
    pub image: Option<String>,
    /// argon2id in the PHC string form.
    pub password_hash: String,
    /// Milliseconds since the epoch.
    pub now: i64,
}

/// A user as stored.
#[derive(Clone, Debug)]
pub struct UserRow {
    pub id: String,
    pub name: String,
    pub email: String,
    pub email_verified: bool,
    pub image: Option<String>,
    pub is_anonymous: bool,
    pub banned: bool,
    pub created_at: i64,
    pub updated_at: i64,
}

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
}

/// A role; `permissions` is the JSON text of its grants.
#[derive(Clone, Debug)]
pub struct RoleRow {
    pub id: String,
    pub name: String,
    pub permissions: String,
}

fn user(row: &Row, from: usize) -> Result<UserRow, DbError> {
    Ok(UserRow {
        id: row.text(from)?,
        name: row.text(from + 1)?,
        email: row.text(from + 2)?,
        email_verified: row.boolean(from + 3)?,
        image: row.optional_text(from + 4)?,
        is_anonymous: row.boolean(from + 5)?,
        banned: row.boolean(from + 6)?,
        created_at: row.integer(from + 7)?,
        updated_at: row.integer(from + 8)?,
    })
}

fn role(row: &Row) -> Result<RoleRow, DbError> {
    Ok(RoleRow { id: row.text(0)?, name: row.text(1)?, permissions: row.text(2)? })
}

impl Connection {
    /// Creates a user with a password. `false` where the address is taken.
    pub async fn insert_user(&mut self, user: NewUser) -> Result<bool, DbError> {
        let inserted = self
            .run(
                "INSERT INTO svc_users (id, name, email, email_verified, image, is_anonymous, banned, created_at, updated_at) \
                 VALUES ($1, $2, $3, FALSE, $4, FALSE, FALSE, $5, $5) ON CONFLICT (email) DO NOTHING",
                vec![user.id.clone().into(), user.name.into(), user.email.into(), user.image.into(), user.now.into()],
            )
            .await?;
        if inserted == 0 {
            return Ok(false);
        }
        self.run(
            "INSERT INTO svc_credentials (user_id, password_hash, updated_at) VALUES ($1, $2, $3)",
            vec![user.id.into(), user.password_hash.into(), user.now.into()],
        )
        .await?;
        Ok(true)
    }

    /// The user of an address with the hash of the password, where there is one.
    pub async fn credential(&mut self, email: &str) -> Result<Option<(UserRow, String)>, DbError> {
        let rows = self
            .fetch(
                "SELECT u.id, u.name, u.email, u.email_verified, u.image, u.is_anonymous, u.banned, u.created_at, u.updated_at, \
                 c.password_hash FROM svc_users u JOIN svc_credentials c ON c.user_id = u.id WHERE u.email = $1",
                vec![email.into()],
            )
            .await?;
        rows.first().map(|row| Ok((user(row, 0)?, row.text(9)?))).transpose()
    }

    pub async fn has_credentialed_user(&mut self) -> Result<bool, DbError> {
        Ok(!self.fetch("SELECT 1 FROM svc_credentials LIMIT 1", Vec::new()).await?.is_empty())
    }

    pub async fn insert_session(&mut self, session: NewSession) -> Result<(), DbError> {
        self.run(
            "INSERT INTO svc_sessions (id, token_hash, user_id, expires_at, created_at, updated_at, ip_address, user_agent) \
             VALUES ($1, $2, $3, $4, $5, $5, $6, $7)",
            vec![
                session.id.into(),
                session.token_hash.into(),
                session.user_id.into(),
                session.expires_at.into(),
                session.now.into(),
                session.ip_address.into(),
                session.user_agent.into(),
            ],
        )
        .await
        .map(|_| ())
    }

    /// The session of a token that has not expired, with its user.
    pub async fn session(&mut self, token_hash: &str, now: i64) -> Result<Option<(SessionRow, UserRow)>, DbError> {
        let rows = self
            .fetch(
                "SELECT s.id, s.user_id, s.expires_at, s.created_at, s.updated_at, s.ip_address, s.user_agent, \
                 u.id, u.name, u.email, u.email_verified, u.image, u.is_anonymous, u.banned, u.created_at, u.updated_at \
                 FROM svc_sessions s JOIN svc_users u ON u.id = s.user_id WHERE s.token_hash = $1 AND s.expires_at > $2",
                vec![token_hash.into(), now.into()],
            )
            .await?;
        let read = |row: &Row| {
            let session = SessionRow {
                id: row.text(0)?,
                user_id: row.text(1)?,
                expires_at: row.integer(2)?,
                created_at: row.integer(3)?,
                updated_at: row.integer(4)?,
                ip_address: row.optional_text(5)?,
                user_agent: row.optional_text(6)?,
            };
            Ok((session, user(row, 7)?))
        };
        rows.first().map(read).transpose()
    }

    pub async fn delete_session(&mut self, token_hash: &str) -> Result<u64, DbError> {
        self.run("DELETE FROM svc_sessions WHERE token_hash = $1", vec![token_hash.into()]).await
    }

    /// Puts off a session's end.
    pub async fn extend_session(&mut self, id: &str, expires_at: i64, now: i64) -> Result<u64, DbError> {
        self.run(
            "UPDATE svc_sessions SET expires_at = $2, updated_at = $3 WHERE id = $1",
            vec![id.into(), expires_at.into(), now.into()],
        )
        .await
    }

    pub async fn roles_of(&mut self, user_id: &str) -> Result<Vec<RoleRow>, DbError> {
        let rows = self
            .fetch(
                "SELECT r.id, r.name, r.permissions FROM svc_user_roles ur JOIN svc_roles r ON r.id = ur.role_id \
                 WHERE ur.user_id = $1 ORDER BY r.name",
                vec![user_id.into()],
            )
            .await?;
        rows.iter().map(role).collect()
    }

    pub async fn role_named(&mut self, name: &str) -> Result<Option<RoleRow>, DbError> {
        let rows = self.fetch("SELECT id, name, permissions FROM svc_roles WHERE name = $1", vec![name.into()]).await?;
        rows.first().map(role).transpose()
    }

    pub async fn give_role(&mut self, user_id: &str, role_id: &str) -> Result<(), DbError> {
        self.run(
            "INSERT INTO svc_user_roles (user_id, role_id) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            vec![user_id.into(), role_id.into()],
        )
        .await
        .map(|_| ())
    }

    /// Does what happens once in the life of a database. `true` for the one caller that won it.
    pub async fn win_once(&mut self, name: &'static str, value: &str) -> Result<bool, DbError> {
        let inserted = self
            .run("INSERT INTO svc_once (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING", vec![name.into(), value.into()])
            .await?;
        Ok(inserted == 1)
    }
}

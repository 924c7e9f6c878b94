//! API keys: only the SHA-256 of a key is stored.

use blockbase_query::Dialect;

use super::roles::{role, role_columns};
use super::{RoleRow, UserRow, user, user_columns};
use crate::connection::Connection;
use crate::error::DbError;
use crate::makers::{Maker, Suspension, suspension};
use crate::row::Row;

/// A key as stored.
#[derive(Clone, Debug)]
pub struct ApiKeyRow {
    pub id: String,
    pub name: String,
    /// The first characters of the key, by which people recognize it.
    pub prefix: String,
    pub user_id: String,
    pub role_id: String,
    pub expires_at: Option<i64>,
    pub last_used_at: Option<i64>,
    pub created_at: i64,
    pub maker: Maker,
    /// The time and the reason since when the key has no rights, as of the last check.
    pub suspension: Option<Suspension>,
}

/// A key to be created.
#[derive(Clone, Debug)]
pub struct NewApiKey {
    pub row: ApiKeyRow,
    /// SHA-256 of the key, in hexadecimal.
    pub key_hash: String,
}

/// A key with the user that it acts as, and the role whose rights it has.
#[derive(Clone, Debug)]
pub struct KeyHolder {
    pub key: ApiKeyRow,
    pub user: UserRow,
    pub role: RoleRow,
}

macro_rules! key_columns {
    () => {
        "k.id, k.name, k.prefix, k.user_id, k.role_id, k.expires_at, k.last_used_at, k.created_at, k.made_by_user, k.made_by_key, \
         k.suspended_reason, k.suspended_at"
    };
}

/// The query for the key whose `column` equals the first value, with its user and role.
macro_rules! key_holder_where {
    ($column:literal, $test:literal) => {
        concat!(
            "SELECT ",
            key_columns!(),
            ", ",
            user_columns!(),
            ", ",
            role_columns!(),
            " FROM svc_api_keys k JOIN svc_users u ON u.id = k.user_id JOIN svc_roles r ON r.id = k.role_id WHERE ",
            $column,
            " = $1",
            $test
        )
    };
}

fn key(row: &Row) -> Result<ApiKeyRow, DbError> {
    Ok(ApiKeyRow {
        id: row.text(0)?,
        name: row.text(1)?,
        prefix: row.text(2)?,
        user_id: row.text(3)?,
        role_id: row.text(4)?,
        expires_at: row.optional_integer(5)?,
        last_used_at: row.optional_integer(6)?,
        created_at: row.integer(7)?,
        maker: Maker { user_id: row.optional_text(8)?, api_key_id: row.optional_text(9)? },
        suspension: suspension(row, 10)?,
    })
}

fn holder(row: &Row) -> Result<KeyHolder, DbError> {
    Ok(KeyHolder { key: key(row)?, user: user(row, 12)?, role: role(row, 21)? })
}

impl Connection {
    pub async fn insert_api_key(&mut self, key: NewApiKey) -> Result<(), DbError> {
        let NewApiKey { row, key_hash } = key;
        self.run(
            "INSERT INTO svc_api_keys (id, name, prefix, key_hash, user_id, role_id, expires_at, last_used_at, created_at, \
             made_by_user, made_by_key) VALUES ($1, $2, $3, $4, $5, $6, $7, NULL, $8, $9, $10)",
            vec![
                row.id.into(),
                row.name.into(),
                row.prefix.into(),
                key_hash.into(),
                row.user_id.into(),
                row.role_id.into(),
                row.expires_at.into(),
                row.created_at.into(),
                row.maker.user_id.into(),
                row.maker.api_key_id.into(),
            ],
        )
        .await
        .map(|_| ())
    }

    /// The key with this hash, unless it has expired.
    pub async fn api_key_of_hash(&mut self, key_hash: &str, now: i64) -> Result<Option<KeyHolder>, DbError> {
        let sql = key_holder_where!("k.key_hash", " AND (k.expires_at IS NULL OR k.expires_at > $2)");
        let rows = self.fetch(sql, vec![key_hash.into(), now.into()]).await?;
        rows.first().map(holder).transpose()
    }

    /// A key by its id, even if it has expired.
    pub async fn api_key_of_id(&mut self, id: &str) -> Result<Option<KeyHolder>, DbError> {
        let rows = self.fetch(key_holder_where!("k.id", ""), vec![id.into()]).await?;
        rows.first().map(holder).transpose()
    }

    /// Does the same as [`Connection::api_key_of_id`], but no other transaction changes or deletes the key until this one ends.
    pub async fn held_api_key(&mut self, id: &str) -> Result<Option<KeyHolder>, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => return self.api_key_of_id(id).await,
            Dialect::Postgres => key_holder_where!("k.id", " FOR UPDATE OF k"),
        };
        let rows = self.fetch(sql, vec![id.into()]).await?;
        rows.first().map(holder).transpose()
    }

    /// The keys that act as a user, with their roles.
    pub async fn api_keys_of_user(&mut self, user_id: &str) -> Result<Vec<KeyHolder>, DbError> {
        let rows = self.fetch(key_holder_where!("k.user_id", " ORDER BY k.id"), vec![user_id.into()]).await?;
        rows.iter().map(holder).collect()
    }

    /// The keys of a role, with the users that they act as.
    pub async fn api_keys_of_role(&mut self, role_id: &str) -> Result<Vec<KeyHolder>, DbError> {
        let rows = self.fetch(key_holder_where!("k.role_id", " ORDER BY k.id"), vec![role_id.into()]).await?;
        rows.iter().map(holder).collect()
    }

    /// All keys, or those of one user, the newest first.
    pub async fn api_keys(&mut self, user_id: Option<String>) -> Result<Vec<ApiKeyRow>, DbError> {
        let rows = match user_id {
            None => {
                let sql = concat!("SELECT ", key_columns!(), " FROM svc_api_keys k ORDER BY k.created_at DESC, k.id DESC");
                self.fetch(sql, Vec::new()).await?
            }
            Some(id) => {
                let sql = concat!(
                    "SELECT ",
                    key_columns!(),
                    " FROM svc_api_keys k WHERE k.user_id = $1 ORDER BY k.created_at DESC, k.id DESC"
                );
                self.fetch(sql, vec![id.into()]).await?
            }
        };
        rows.iter().map(key).collect()
    }

    /// The number of keys that act as a user.
    pub async fn api_keys_count(&mut self, user_id: &str) -> Result<i64, DbError> {
        let rows = self.fetch("SELECT COUNT(*) FROM svc_api_keys WHERE user_id = $1", vec![user_id.into()]).await?;
        rows.first().map_or(Ok(0), |row| row.integer(0))
    }

    /// The approximate length of a list of all keys, in characters.
    pub async fn api_keys_length(&mut self) -> Result<i64, DbError> {
        let sql = "SELECT 400 * COUNT(*) + COALESCE(SUM(LENGTH(name)), 0) FROM svc_api_keys";
        let rows = self.fetch(sql, Vec::new()).await?;
        rows.first().map_or(Ok(0), |row| row.integer(0))
    }

    pub async fn delete_api_key(&mut self, id: &str) -> Result<bool, DbError> {
        Ok(self.run("DELETE FROM svc_api_keys WHERE id = $1", vec![id.into()]).await? == 1)
    }

    /// Whether a role has keys that act as other users than this one.
    pub async fn has_keys_of_others(&mut self, role_id: &str, user_id: &str) -> Result<bool, DbError> {
        let rows = self
            .fetch(
                "SELECT id FROM svc_api_keys WHERE role_id = $1 AND user_id <> $2 LIMIT 1",
                vec![role_id.into(), user_id.into()],
            )
            .await?;
        Ok(!rows.is_empty())
    }

    /// Stores when a key was last used.
    pub async fn touch_api_key(&mut self, id: &str, now: i64) -> Result<(), DbError> {
        self.run("UPDATE svc_api_keys SET last_used_at = $2 WHERE id = $1", vec![id.into(), now.into()]).await.map(|_| ())
    }

    /// Stores the first use of a key. Returns `true` if this call stored it.
    pub async fn begin_api_key(&mut self, id: &str, now: i64) -> Result<bool, DbError> {
        let sql = "UPDATE svc_api_keys SET last_used_at = $2 WHERE id = $1 AND last_used_at IS NULL";
        Ok(self.run(sql, vec![id.into(), now.into()]).await? == 1)
    }

    /// Moves the keys of `from` to `to`.
    pub async fn move_api_keys(&mut self, from: &str, to: &str) -> Result<(), DbError> {
        self.run("UPDATE svc_api_keys SET user_id = $2 WHERE user_id = $1", vec![from.into(), to.into()]).await.map(|_| ())
    }
}

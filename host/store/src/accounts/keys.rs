//! API keys: only the SHA-256 of a key is stored.

use super::roles::{role, role_columns};
use super::{RoleRow, UserRow, user, user_columns};
use crate::connection::Connection;
use crate::error::DbError;
use crate::row::Row;

/// A key as stored.
#[derive(Clone, Debug)]
pub struct ApiKeyRow {
    pub id: String,
    pub name: String,
    /// Its first characters, to know it again by.
    pub prefix: String,
    pub user_id: String,
    pub role_id: String,
    pub expires_at: Option<i64>,
    pub last_used_at: Option<i64>,
    pub created_at: i64,
}

/// A key to be created.
#[derive(Clone, Debug)]
pub struct NewApiKey {
    pub row: ApiKeyRow,
    /// SHA-256 of the key, in hexadecimal.
    pub key_hash: String,
}

/// A key with whom it acts as, and the role whose rights it has.
#[derive(Clone, Debug)]
pub struct KeyHolder {
    pub key: ApiKeyRow,
    pub user: UserRow,
    pub role: RoleRow,
}

macro_rules! key_columns {
    () => {
        "k.id, k.name, k.prefix, k.user_id, k.role_id, k.expires_at, k.last_used_at, k.created_at"
    };
}

/// The key whose `column` is the first value and that has not expired at the second, with its user and role.
macro_rules! key_holder_where {
    ($column:literal) => {
        concat!(
            "SELECT ",
            key_columns!(),
            ", ",
            user_columns!(),
            ", ",
            role_columns!(),
            " FROM svc_api_keys k JOIN svc_users u ON u.id = k.user_id JOIN svc_roles r ON r.id = k.role_id WHERE ",
            $column,
            " = $1 AND (k.expires_at IS NULL OR k.expires_at > $2)"
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
    })
}

fn holder(row: &Row) -> Result<KeyHolder, DbError> {
    Ok(KeyHolder { key: key(row)?, user: user(row, 8)?, role: role(row, 17)? })
}

impl Connection {
    pub async fn insert_api_key(&mut self, key: NewApiKey) -> Result<(), DbError> {
        let NewApiKey { row, key_hash } = key;
        self.run(
            "INSERT INTO svc_api_keys (id, name, prefix, key_hash, user_id, role_id, expires_at, last_used_at, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, NULL, $8)",
            vec![
                row.id.into(),
                row.name.into(),
                row.prefix.into(),
                key_hash.into(),
                row.user_id.into(),
                row.role_id.into(),
                row.expires_at.into(),
                row.created_at.into(),
            ],
        )
        .await
        .map(|_| ())
    }

    /// The key of a hash that has not expired.
    pub async fn api_key_of_hash(&mut self, key_hash: &str, now: i64) -> Result<Option<KeyHolder>, DbError> {
        let rows = self.fetch(key_holder_where!("k.key_hash"), vec![key_hash.into(), now.into()]).await?;
        rows.first().map(holder).transpose()
    }

    /// As [`Connection::api_key_of_hash`], by the key's id.
    pub async fn api_key_of_id(&mut self, id: &str, now: i64) -> Result<Option<KeyHolder>, DbError> {
        let rows = self.fetch(key_holder_where!("k.id"), vec![id.into(), now.into()]).await?;
        rows.first().map(holder).transpose()
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

    /// Deletes a key; of one user alone where `user_id` names them.
    pub async fn delete_api_key(&mut self, id: &str, user_id: Option<String>) -> Result<bool, DbError> {
        let deleted = self
            .run("DELETE FROM svc_api_keys WHERE id = $1 AND ($2 IS NULL OR user_id = $2)", vec![id.into(), user_id.into()])
            .await?;
        Ok(deleted == 1)
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

    /// Notes when a key was used last.
    pub async fn touch_api_key(&mut self, id: &str, now: i64) -> Result<(), DbError> {
        self.run("UPDATE svc_api_keys SET last_used_at = $2 WHERE id = $1", vec![id.into(), now.into()]).await.map(|_| ())
    }

    /// Makes the keys of `from` those of `to`.
    pub async fn move_api_keys(&mut self, from: &str, to: &str) -> Result<(), DbError> {
        self.run("UPDATE svc_api_keys SET user_id = $2 WHERE user_id = $1", vec![from.into(), to.into()]).await.map(|_| ())
    }
}

//! Stored webhooks. The code that writes them encrypts their secrets.

use blockbase_query::Dialect;

use crate::connection::Connection;
use crate::error::DbError;
use crate::makers::{Maker, Suspension, maker, suspension};
use crate::row::Row;

/// A webhook as stored. `topics` and `headers` are JSON text.
#[derive(Clone, Debug)]
pub struct WebhookRow {
    pub id: String,
    pub name: Option<String>,
    pub url: String,
    pub topics: String,
    pub headers: String,
    pub enabled: bool,
    /// `block:<name>` if a block declared it.
    pub source: Option<String>,
    /// The ciphertext, and the id of its key.
    pub secret: (String, String),
    /// The previous secret, and the time until which it also signs.
    pub previous: Option<PreviousSecret>,
    pub created_at: i64,
    pub updated_at: i64,
    /// Set when the webhook is created, and changed by [`Connection::set_maker`].
    pub maker: Maker,
    pub suspension: Option<Suspension>,
}

/// A replaced secret, which still signs for some time.
#[derive(Clone, Debug)]
pub struct PreviousSecret {
    /// The ciphertext, and the id of its key.
    pub secret: (String, String),
    /// The end of that time, in milliseconds since the epoch.
    pub until: i64,
}

macro_rules! webhook_columns {
    () => {
        "id, name, url, topics, headers, enabled, source, secret, secret_key_id, previous_secret, previous_key_id, previous_until, \
         created_at, updated_at, made_by_user, made_by_key, suspended_reason, suspended_at"
    };
}

fn webhook(row: &Row) -> Result<WebhookRow, DbError> {
    let previous = match (row.optional_text(9)?, row.optional_text(10)?, row.optional_integer(11)?) {
        (Some(ciphertext), Some(key_id), Some(until)) => Some(PreviousSecret { secret: (ciphertext, key_id), until }),
        _ => None,
    };
    Ok(WebhookRow {
        id: row.text(0)?,
        name: row.optional_text(1)?,
        url: row.text(2)?,
        topics: row.text(3)?,
        headers: row.text(4)?,
        enabled: row.boolean(5)?,
        source: row.optional_text(6)?,
        secret: (row.text(7)?, row.text(8)?),
        previous,
        created_at: row.integer(12)?,
        updated_at: row.integer(13)?,
        maker: maker(row, 14)?,
        suspension: suspension(row, 16)?,
    })
}

impl Connection {
    /// All webhooks, the newest first.
    pub async fn webhooks(&mut self) -> Result<Vec<WebhookRow>, DbError> {
        let sql = concat!("SELECT ", webhook_columns!(), " FROM svc_webhooks ORDER BY created_at DESC, id DESC");
        self.fetch(sql, Vec::new()).await?.iter().map(webhook).collect()
    }

    pub async fn webhook(&mut self, id: &str) -> Result<Option<WebhookRow>, DbError> {
        const ONE: &str = concat!("SELECT ", webhook_columns!(), " FROM svc_webhooks WHERE id = $1");
        self.fetch(ONE, vec![id.into()]).await?.first().map(webhook).transpose()
    }

    /// A webhook. No other transaction changes it until this one ends.
    pub async fn held_webhook(&mut self, id: &str) -> Result<Option<WebhookRow>, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => concat!("SELECT ", webhook_columns!(), " FROM svc_webhooks WHERE id = $1"),
            Dialect::Postgres => concat!("SELECT ", webhook_columns!(), " FROM svc_webhooks WHERE id = $1 FOR UPDATE"),
        };
        self.fetch(sql, vec![id.into()]).await?.first().map(webhook).transpose()
    }

    pub async fn count_webhooks(&mut self) -> Result<i64, DbError> {
        let sql = self.placeholders("SELECT count(*) FROM svc_webhooks");
        self.fetch_integer(blockbase_query::Statement { sql, params: Vec::new() }).await
    }

    pub async fn insert_webhook(&mut self, row: &WebhookRow) -> Result<(), DbError> {
        self.run(
            "INSERT INTO svc_webhooks (id, name, url, topics, headers, enabled, source, secret, secret_key_id, created_at, \
             updated_at, made_by_user, made_by_key) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
            vec![
                row.id.clone().into(),
                row.name.clone().into(),
                row.url.clone().into(),
                row.topics.clone().into(),
                row.headers.clone().into(),
                row.enabled.into(),
                row.source.clone().into(),
                row.secret.0.clone().into(),
                row.secret.1.clone().into(),
                row.created_at.into(),
                row.updated_at.into(),
                row.maker.user_id.clone().into(),
                row.maker.api_key_id.clone().into(),
            ],
        )
        .await
        .map(|_| ())
    }

    /// Stores the columns of a webhook that can change.
    pub async fn update_webhook(&mut self, row: &WebhookRow) -> Result<(), DbError> {
        let previous = row.previous.as_ref();
        self.run(
            "UPDATE svc_webhooks SET name = $2, url = $3, topics = $4, headers = $5, enabled = $6, secret = $7, secret_key_id = $8, \
             previous_secret = $9, previous_key_id = $10, previous_until = $11, updated_at = $12 WHERE id = $1",
            vec![
                row.id.clone().into(),
                row.name.clone().into(),
                row.url.clone().into(),
                row.topics.clone().into(),
                row.headers.clone().into(),
                row.enabled.into(),
                row.secret.0.clone().into(),
                row.secret.1.clone().into(),
                previous.map(|previous| previous.secret.0.clone()).into(),
                previous.map(|previous| previous.secret.1.clone()).into(),
                previous.map(|previous| previous.until).into(),
                row.updated_at.into(),
            ],
        )
        .await
        .map(|_| ())
    }

    /// Removes the webhooks that a block declared.
    pub async fn delete_webhooks_of(&mut self, source: &str) -> Result<u64, DbError> {
        self.run("DELETE FROM svc_webhooks WHERE source = $1", vec![source.into()]).await
    }

    pub async fn delete_webhook(&mut self, id: &str) -> Result<bool, DbError> {
        Ok(self.run("DELETE FROM svc_webhooks WHERE id = $1", vec![id.into()]).await? == 1)
    }
}

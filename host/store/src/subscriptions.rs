//! Stored subscriptions.

use crate::connection::Connection;
use crate::error::DbError;
use crate::makers::{Maker, Suspension, maker, suspension};
use crate::row::Row;

/// A stored subscription: the events that a consumer group gets, and their handler.
#[derive(Clone, Debug)]
pub struct SubscriptionRow {
    pub consumer: String,
    /// The topic pattern.
    pub topic: String,
    pub handler: String,
    /// The configuration as JSON text.
    pub config: String,
    pub per_instance: bool,
    /// `block:<name>` if a block declared it.
    pub source: Option<String>,
    /// Set when the subscription is created, and changed by [`Connection::set_maker`].
    pub maker: Maker,
    pub suspension: Option<Suspension>,
}

macro_rules! subscription_columns {
    () => {
        "consumer, topic, handler, config, per_instance, source, made_by_user, made_by_key, suspended_reason, suspended_at"
    };
}

fn subscription(row: &Row) -> Result<SubscriptionRow, DbError> {
    Ok(SubscriptionRow {
        consumer: row.text(0)?,
        topic: row.text(1)?,
        handler: row.text(2)?,
        config: row.text(3)?,
        per_instance: row.boolean(4)?,
        source: row.optional_text(5)?,
        maker: maker(row, 6)?,
        suspension: suspension(row, 8)?,
    })
}

impl Connection {
    /// All subscriptions, in the order of their groups' names.
    pub async fn subscriptions(&mut self) -> Result<Vec<SubscriptionRow>, DbError> {
        let sql = concat!("SELECT ", subscription_columns!(), " FROM svc_subscriptions ORDER BY consumer");
        self.fetch(sql, Vec::new()).await?.iter().map(subscription).collect()
    }

    /// The subscription of a group.
    pub async fn subscription(&mut self, consumer: &str) -> Result<Option<SubscriptionRow>, DbError> {
        const ONE: &str = concat!("SELECT ", subscription_columns!(), " FROM svc_subscriptions WHERE consumer = $1");
        self.fetch(ONE, vec![consumer.into()]).await?.first().map(subscription).transpose()
    }

    /// Whether a group gets events. It gets none if its webhook or block is disabled. `None` if there is no such group.
    pub async fn group_is_active(&mut self, consumer: &str) -> Result<Option<bool>, DbError> {
        let sql = "SELECT coalesce((SELECT b.enabled FROM svc_blocks b WHERE 'block:' || b.name = s.source), TRUE) \
                   FROM svc_subscriptions s WHERE s.consumer = $1 \
                   UNION ALL SELECT enabled FROM svc_webhooks WHERE 'webhook:' || id = $1";
        let rows = self.fetch(sql, vec![consumer.into()]).await?;
        rows.first().map(|row| row.boolean(0)).transpose()
    }

    /// Stores a subscription. Returns `false` if the group exists.
    pub async fn insert_subscription(&mut self, row: SubscriptionRow) -> Result<bool, DbError> {
        let inserted = self
            .run(
                "INSERT INTO svc_subscriptions (consumer, topic, handler, config, per_instance, source, made_by_user, made_by_key) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (consumer) DO NOTHING",
                vec![
                    row.consumer.into(),
                    row.topic.into(),
                    row.handler.into(),
                    row.config.into(),
                    row.per_instance.into(),
                    row.source.into(),
                    row.maker.user_id.into(),
                    row.maker.api_key_id.into(),
                ],
            )
            .await?;
        Ok(inserted == 1)
    }

    /// Removes a subscription that no block declared.
    pub async fn delete_subscription(&mut self, consumer: &str) -> Result<bool, DbError> {
        let sql = "DELETE FROM svc_subscriptions WHERE consumer = $1 AND source IS NULL";
        Ok(self.run(sql, vec![consumer.into()]).await? == 1)
    }

    /// Removes the subscriptions that a block declared.
    pub async fn delete_subscriptions_of(&mut self, source: &str) -> Result<(), DbError> {
        self.run("DELETE FROM svc_subscriptions WHERE source = $1", vec![source.into()]).await.map(|_| ())
    }
}

//! The outbox: events and their deliveries, written in the transaction that they tell of, and read by the feed.

use std::sync::Arc;

use blockbase_query::Param;
use blockbase_schema::{json, time};
use uuid::Uuid;

use crate::connection::{Connection, Inner};
use crate::error::DbError;

/// An event to be written.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub id: Uuid,
    pub topic: String,
    /// JSON text.
    pub payload: String,
    pub object: Option<String>,
    pub record_id: Option<String>,
    /// `created_by` of the record, for row policies on streams.
    pub owner: Option<String>,
    /// How many handlers' writes led to it.
    pub depth: i64,
    /// Milliseconds since the epoch.
    pub occurred_at: i64,
    /// The consumer groups that get it, with their handlers.
    pub deliveries: Vec<(String, String)>,
}

/// A committed event as the feed's readers need it; its JSON is made once for all of them.
#[derive(Debug)]
pub struct CommittedEvent {
    pub id: String,
    pub topic: String,
    pub object: Option<String>,
    pub owner: Option<String>,
    /// `{ id, topic, payload, occurredAt }`.
    pub envelope: String,
}

impl CommittedEvent {
    fn new(id: String, topic: String, payload: &str, object: Option<String>, owner: Option<String>, occurred_at: i64) -> Self {
        let mut envelope = Vec::with_capacity(payload.len() + topic.len() + 128);
        envelope.extend_from_slice(b"{\"id\":");
        json::write_string(&mut envelope, &id);
        envelope.extend_from_slice(b",\"topic\":");
        json::write_string(&mut envelope, &topic);
        envelope.extend_from_slice(b",\"payload\":");
        envelope.extend_from_slice(payload.as_bytes());
        envelope.extend_from_slice(b",\"occurredAt\":\"");
        time::write_datetime(&mut envelope, occurred_at);
        envelope.extend_from_slice(b"\"}");
        let envelope = String::from_utf8_lossy(&envelope).into_owned();
        CommittedEvent { id, topic, object, owner, envelope }
    }
}

/// A stored subscription.
#[derive(Clone, Debug)]
pub struct SubscriptionRow {
    pub consumer: String,
    pub topic: String,
    pub handler: String,
    pub config: String,
    pub per_instance: bool,
    pub source: Option<String>,
}

/// Up to where a Postgres feed has read: a transaction, and the last event of it that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedCursor {
    xid: String,
    seq: i64,
}

/// Events read at once by the feed of Postgres: less than a reader may be behind.
const FEED_PAGE: i64 = 500;

impl Connection {
    /// Writes an event and its delivery rows.
    pub async fn emit(&mut self, event: NewEvent) -> Result<(), DbError> {
        let is_sqlite = matches!(self.inner, Inner::Sqlite(_));
        let committed = is_sqlite.then(|| {
            CommittedEvent::new(
                event.id.to_string(),
                event.topic.clone(),
                &event.payload,
                event.object.clone(),
                event.owner.clone(),
                event.occurred_at,
            )
        });
        let params = vec![
            event.id.to_string().into(),
            event.topic.into(),
            event.payload.into(),
            event.object.into(),
            event.record_id.into(),
            event.owner.into(),
            event.depth.into(),
            event.occurred_at.into(),
        ];
        const INSERT: &str = "INSERT INTO svc_events (id, topic, payload, object, record_id, owner, depth, occurred_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        const INSERT_RETURNING: &str = "INSERT INTO svc_events (id, topic, payload, object, record_id, owner, depth, occurred_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING seq";
        if event.deliveries.is_empty() {
            self.run(INSERT, params).await?;
        } else {
            let rows = self.fetch(INSERT_RETURNING, params).await?;
            let seq = rows.first().ok_or_else(|| DbError::Other("an insert gave no row".into()))?.integer(0)?;
            for (consumer, handler) in event.deliveries {
                self.run(
                    "INSERT INTO svc_deliveries (event_seq, consumer, handler, status, dead, attempts, next_attempt_at) \
                     VALUES ($1, $2, $3, 'pending', FALSE, 0, $4)",
                    vec![seq.into(), consumer.into(), handler.into(), event.occurred_at.into()],
                )
                .await?;
            }
        }
        self.effects.events.extend(committed.map(Arc::new));
        Ok(())
    }

    /// Writes several events with their delivery rows, in order. All have the same depth and instant.
    pub async fn emit_all(&mut self, events: Vec<NewEvent>) -> Result<(), DbError> {
        let delivered = events.iter().any(|event| !event.deliveries.is_empty());
        if events.len() < 2 || delivered || matches!(self.inner, Inner::Sqlite(_)) {
            for event in events {
                self.emit(event).await?;
            }
            return Ok(());
        }
        let (depth, occurred_at) = (events[0].depth, events[0].occurred_at);
        let column = |value: fn(&NewEvent) -> Option<String>| Param::OptionalTextList(events.iter().map(value).collect());
        let params = vec![
            column(|event| Some(event.id.to_string())),
            column(|event| Some(event.topic.clone())),
            column(|event| Some(event.payload.clone())),
            column(|event| event.object.clone()),
            column(|event| event.record_id.clone()),
            column(|event| event.owner.clone()),
            depth.into(),
            occurred_at.into(),
        ];
        self.run(
            "INSERT INTO svc_events (id, topic, payload, object, record_id, owner, depth, occurred_at) \
             SELECT id, topic, payload, object, record_id, owner, $7, $8 \
             FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) \
             WITH ORDINALITY AS event (id, topic, payload, object, record_id, owner, place) ORDER BY place",
            params,
        )
        .await
        .map(|_| ())
    }

    /// Where a Postgres feed that starts now begins.
    pub async fn feed_start(&mut self) -> Result<FeedCursor, DbError> {
        Ok(FeedCursor { xid: self.oldest_transaction().await?, seq: 0 })
    }

    /// The oldest transaction that is still under way.
    async fn oldest_transaction(&mut self) -> Result<String, DbError> {
        let rows = self.fetch("SELECT pg_snapshot_xmin(pg_current_snapshot())::text", Vec::new()).await?;
        rows.first().ok_or_else(|| DbError::Other("no snapshot".into()))?.text(0)
    }

    /// The next events of the transactions that have ended, none of which can have one left to come; a page at most.
    ///
    /// By transaction, so that every instance sees one order. A transaction that changes one record draws its number when it
    /// has the record's lock, so that the events of a record are in the order of their commits.
    pub async fn feed_after(&mut self, cursor: &FeedCursor) -> Result<(Vec<Arc<CommittedEvent>>, FeedCursor), DbError> {
        let oldest = self.oldest_transaction().await?;
        if oldest == cursor.xid {
            return Ok((Vec::new(), cursor.clone()));
        }
        let rows = self
            .fetch(
                // An order by a bare `xid` would be that of the selected text, where 1000 stands before 999.
                "SELECT id, topic, payload, object, owner, occurred_at, xid::text AS transaction, seq FROM svc_events \
                 WHERE (xid, seq) > ($1::text::xid8, $2) AND xid < $3::text::xid8 ORDER BY svc_events.xid, seq LIMIT $4",
                vec![cursor.xid.clone().into(), cursor.seq.into(), oldest.clone().into(), FEED_PAGE.into()],
            )
            .await?;
        let mut next = FeedCursor { xid: oldest, seq: 0 };
        if let Some(last) = rows.last().filter(|_| i64::try_from(rows.len()) == Ok(FEED_PAGE)) {
            next = FeedCursor { xid: last.text(6)?, seq: last.integer(7)? };
        }
        let mut events = Vec::with_capacity(rows.len());
        for row in rows {
            events.push(Arc::new(CommittedEvent::new(
                row.text(0)?,
                row.text(1)?,
                &row.text(2)?,
                row.optional_text(3)?,
                row.optional_text(4)?,
                row.integer(5)?,
            )));
        }
        Ok((events, next))
    }

    pub async fn subscriptions(&mut self) -> Result<Vec<SubscriptionRow>, DbError> {
        let rows = self
            .fetch(
                "SELECT consumer, topic, handler, config, per_instance, source FROM svc_subscriptions ORDER BY consumer",
                Vec::new(),
            )
            .await?;
        rows.iter()
            .map(|row| {
                Ok(SubscriptionRow {
                    consumer: row.text(0)?,
                    topic: row.text(1)?,
                    handler: row.text(2)?,
                    config: row.text(3)?,
                    per_instance: row.boolean(4)?,
                    source: row.optional_text(5)?,
                })
            })
            .collect()
    }

    pub async fn insert_subscription(&mut self, row: SubscriptionRow) -> Result<(), DbError> {
        self.run(
            "INSERT INTO svc_subscriptions (consumer, topic, handler, config, per_instance, source) VALUES ($1, $2, $3, $4, $5, $6)",
            vec![
                row.consumer.into(),
                row.topic.into(),
                row.handler.into(),
                row.config.into(),
                row.per_instance.into(),
                row.source.into(),
            ],
        )
        .await
        .map(|_| ())
    }

    /// Removes what a block subscribed to, with its deliveries that are not done.
    pub async fn delete_subscriptions_of(&mut self, source: &str) -> Result<(), DbError> {
        self.run(
            "DELETE FROM svc_deliveries WHERE status <> 'delivered' \
             AND consumer IN (SELECT consumer FROM svc_subscriptions WHERE source = $1)",
            vec![source.into()],
        )
        .await?;
        self.run("DELETE FROM svc_subscriptions WHERE source = $1", vec![source.into()]).await.map(|_| ())
    }

    /// The place in the outbox up to which the `limit` events after `seq` reach, and when the earliest of them happened.
    pub async fn events_page(&mut self, seq: i64, limit: i64) -> Result<Option<(i64, i64)>, DbError> {
        let rows = self
            .fetch("SELECT seq, occurred_at FROM svc_events WHERE seq > $1 ORDER BY seq LIMIT $2", vec![seq.into(), limit.into()])
            .await?;
        let Some(last) = rows.last() else { return Ok(None) };
        let mut earliest = i64::MAX;
        for row in &rows {
            earliest = earliest.min(row.integer(1)?);
        }
        Ok(Some((last.integer(0)?, earliest)))
    }

    /// Deletes the events in `(after, up_to]` that happened before `before` and that no consumer group still has to get.
    pub async fn purge_events(&mut self, after: i64, up_to: i64, before: i64) -> Result<u64, DbError> {
        self.run(
            "DELETE FROM svc_events WHERE seq > $1 AND seq <= $2 AND occurred_at < $3 AND NOT EXISTS \
             (SELECT 1 FROM svc_deliveries d WHERE d.event_seq = svc_events.seq AND d.status <> 'delivered' AND NOT d.dead)",
            vec![after.into(), up_to.into(), before.into()],
        )
        .await
    }

    /// Folds the differences that Postgres writers left into one row an object. Readers see the same sum before and after.
    pub async fn fold_counts(&mut self) -> Result<(), DbError> {
        if matches!(self.inner, Inner::Sqlite(_)) {
            return Ok(());
        }
        self.run(
            "WITH crowded AS (SELECT object_id FROM svc_counts GROUP BY object_id HAVING count(*) > 100), \
             folded AS (DELETE FROM svc_counts WHERE object_id IN (SELECT object_id FROM crowded) RETURNING object_id, rows) \
             INSERT INTO svc_counts (object_id, rows) SELECT object_id, sum(rows)::bigint FROM folded GROUP BY object_id",
            Vec::new(),
        )
        .await
        .map(|_| ())
    }
}

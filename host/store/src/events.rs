//! The outbox: events and their deliveries. An event is written in the same transaction as the change that it reports. The feed
//! reads the events.

use std::collections::BTreeMap;
use std::sync::Arc;

use blockbase_query::{Dialect, Param, Statement, TopicFilter};
use uuid::Uuid;

use crate::committed_event::{CommittedEvent, EventText};
use crate::connection::{Connection, Emitted, Inner};
use crate::deliveries::VisibleEvents;
use crate::dialect_sql::{accounts_in_snapshot, among, schema_in_snapshot};
use crate::error::DbError;
use crate::packing::{PAGE_BYTES_MAX, Stored, pack, payload_bytes};
use crate::row::Row;
use crate::topic_match;

/// An event to be written.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub id: Uuid,
    pub topic: String,
    /// The payload as JSON text.
    pub payload: String,
    pub object: Option<String>,
    pub record_id: Option<String>,
    /// The value of `created_by` of the record, for row policies on streams.
    pub owner: Option<String>,
    /// The number of handlers in the chain of writes that led to the event.
    pub depth: i64,
    /// The time of the event, in milliseconds since the epoch.
    pub occurred_at: i64,
    /// The deliveries to consumer groups. Events with the same topic and depth have the same deliveries.
    pub deliveries: Arc<[NewDelivery]>,
}

/// The delivery of an event to one consumer group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    pub consumer: String,
    pub handler: String,
    /// The reason, if the delivery is dead from the start.
    pub dead: Option<&'static str>,
}

/// A number in the outbox of Postgres. It is settled when every transaction before a certain one has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedMark {
    /// The last number that was given to an event, committed or not.
    pub last_seq: i64,
    /// A transaction that began after the number was given. Every transaction that got this number, or an earlier one, began
    /// before this transaction.
    pub xid: u64,
}

/// The number of events that the feed reads at once. It is lower than the number of events that a reader may be behind.
const FEED_PAGE: i64 = 500;

/// A page of the outbox.
#[derive(Debug, Default)]
pub struct EventPage {
    /// The events that could be read.
    pub events: Vec<Arc<CommittedEvent>>,
    /// The number of the last event that the query looked at, if there was one.
    pub last: Option<i64>,
}

/// The number of consecutive events that one statement looks at, even if few of them match.
const LOOKED_AT_ONCE: i64 = 10_000;

/// The events that a reader gets if it starts in the past.
#[derive(Clone, Debug, Default)]
pub struct ReplayFilter {
    /// Events with one of these topics, or with any topic if the list is empty.
    pub topics: Vec<TopicFilter>,
    /// Only events of records of this object.
    pub object: Option<String>,
    /// The events that the caller may see. `None` if every event is visible.
    pub visible: Option<VisibleEvents>,
}

impl ReplayFilter {
    /// SQL for the condition on an event `e`.
    fn condition(&self, dialect: Dialect, params: &mut Vec<Param>) -> String {
        let topics: Vec<String> =
            self.topics.iter().map(|topic| topic_match::condition(topic, dialect, "e.topic", params)).collect();
        let mut tests = Vec::new();
        if !topics.is_empty() {
            tests.push(format!("({})", topics.join(" OR ")));
        }
        if let Some(visible) = &self.visible {
            tests.push(visible.condition(dialect, params));
        }
        if tests.is_empty() { "TRUE".to_owned() } else { tests.join(" AND ") }
    }
}

/// The parts of an event that decide who may see it.
#[derive(Clone, Debug)]
pub struct EventHead {
    pub seq: i64,
    pub topic: String,
    pub object: Option<String>,
    pub owner: Option<String>,
    /// As in [`CommittedEvent`].
    pub accounts: i64,
}

/// The record or object whose events are requested.
#[derive(Clone, Debug, Default)]
pub struct HeadFilter {
    pub object: Option<String>,
    /// The record's id in lower case, which is the form that events store.
    pub record_id: Option<String>,
}

/// Reads the head from a row with `seq, topic, object, owner` and [`accounts_in_snapshot`].
fn event_head(row: &Row) -> Result<EventHead, DbError> {
    Ok(EventHead {
        seq: row.integer(0)?,
        topic: row.text(1)?,
        object: row.optional_text(2)?,
        owner: row.optional_text(3)?,
        accounts: row.integer(4)?,
    })
}

/// The columns of a committed event, in the order of [`CommittedEvent::of_row`].
fn committed_columns(dialect: Dialect) -> String {
    let (schema, accounts) = (schema_in_snapshot(dialect), accounts_in_snapshot(dialect));
    format!("seq, id, topic, payload, payload_bytes, packed, object, owner, occurred_at, depth, {schema}, {accounts}")
}

fn transaction_number(row: &Row, index: usize) -> Result<u64, DbError> {
    row.text(index)?.parse().map_err(|error: std::num::ParseIntError| DbError::Other(error.into()))
}

/// The columns of an event, in the order of [`event_params`].
macro_rules! event_columns {
    () => {
        "id, topic, payload, object, record_id, owner, depth, occurred_at, payload_bytes, packed"
    };
}
pub(crate) const EVENT_COLUMNS: &str = event_columns!();

const INSERT_EVENT: &str =
    concat!("INSERT INTO svc_events (", event_columns!(), ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)");

/// The insert of deliveries, up to the source of their rows. Each argument is SQL for a value. `dead` is the reason if the
/// delivery is dead from the start, and otherwise null.
macro_rules! insert_deliveries {
    ($seq:literal, $record_id:literal, $occurred_at:literal, $consumer:literal, $handler:literal, $dead:literal) => {
        concat!(
            "INSERT INTO svc_deliveries \
             (event_seq, consumer, handler, record_id, status, dead, attempts, error, next_attempt_at) SELECT ",
            $seq,
            ", ",
            $consumer,
            ", ",
            $handler,
            ", ",
            $record_id,
            ", CASE WHEN ",
            $dead,
            " IS NULL THEN 'pending' ELSE 'failed' END, ",
            $dead,
            " IS NOT NULL, 0, ",
            $dead,
            ", CASE WHEN ",
            $dead,
            " IS NULL THEN ",
            $occurred_at,
            " END"
        )
    };
}
pub(crate) use insert_deliveries;

/// The parameters of [`INSERT_EVENT`].
fn event_params(event: &NewEvent, stored: Stored<'_>) -> Vec<Param> {
    vec![
        event.id.to_string().into(),
        event.topic.clone().into(),
        stored.payload.into_owned().into(),
        event.object.clone().into(),
        event.record_id.clone().into(),
        event.owner.clone().into(),
        event.depth.into(),
        event.occurred_at.into(),
        stored.payload_bytes.into(),
        Param::Bytes(stored.packed),
    ]
}

/// Payloads up to this number of bytes are packed on the calling thread.
const INLINE_PACK_BYTES_MAX: usize = 64 * 1024;

/// The parameters of an event. A small payload is packed here. A large one is packed on another thread, because this one serves
/// requests.
pub(crate) async fn packed_params(event: NewEvent) -> Result<Vec<Param>, DbError> {
    match event.payload.len() > INLINE_PACK_BYTES_MAX {
        true => on_blocking_thread(move || Ok(event_params(&event, pack(&event.payload)?))).await,
        false => Ok(event_params(&event, pack(&event.payload)?)),
    }
}

/// The maximum number of bytes of the payloads of one commit's events.
const COMMIT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// If a commit of SQLite has more bytes of payloads than this, it takes no further transaction.
pub(crate) const COMMIT_BYTES_FULL: usize = 8 * 1024 * 1024;
/// The maximum number of bytes of the payloads of one transaction's events. A single event may have more, because otherwise its
/// record could not be written.
const TRANSACTION_BYTES_MAX: usize = COMMIT_BYTES_MAX - COMMIT_BYTES_FULL;

/// The payloads of several events, as one list for each column.
#[derive(Default)]
struct StoredList {
    payloads: Vec<Option<String>>,
    bytes: Vec<Option<String>>,
    packed: Vec<Option<Vec<u8>>>,
}

/// Packs large payloads on a thread that serves no requests.
async fn pack_all(events: Vec<NewEvent>) -> Result<(Vec<NewEvent>, StoredList), DbError> {
    let is_small = events.iter().map(|event| event.payload.len()).sum::<usize>() <= INLINE_PACK_BYTES_MAX;
    let pack = move || {
        let mut list = StoredList::default();
        for event in &events {
            let stored = pack(&event.payload)?;
            list.payloads.push(Some(stored.payload.into_owned()));
            list.bytes.push(stored.payload_bytes.map(|bytes| bytes.to_string()));
            list.packed.push(stored.packed);
        }
        Ok((events, list))
    };
    if is_small { pack() } else { on_blocking_thread(pack).await }
}

async fn on_blocking_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T, DbError> + Send + 'static) -> Result<T, DbError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| DbError::Other(error.into()))?
}

impl Connection {
    /// Writes an event and its delivery rows.
    ///
    /// # Errors
    /// The errors of [`Connection::emit_all`].
    pub async fn emit(&mut self, event: NewEvent) -> Result<(), DbError> {
        self.emit_all(vec![event]).await
    }

    /// Writes several events with their delivery rows, in order. All have the same depth and instant.
    ///
    /// # Errors
    /// [`DbError::EventsTooLarge`] if the transaction has too many bytes of events.
    pub async fn emit_all(&mut self, events: Vec<NewEvent>) -> Result<(), DbError> {
        self.note_events(&events)?;
        match self.inner {
            Inner::Sqlite(_) => {
                for event in events {
                    self.emit_on_sqlite(event).await?;
                }
                Ok(())
            }
            Inner::Postgres(_) => self.emit_on_postgres(events).await,
        }
    }

    /// Notes events for the commit, and counts them among those of the transaction.
    ///
    /// # Errors
    /// [`DbError::EventsTooLarge`].
    pub(crate) fn note_events(&mut self, events: &[NewEvent]) -> Result<(), DbError> {
        self.effects.emitted = self.emitted_with(events)?;
        for event in events {
            self.effects.topics.push(event.topic.clone());
            let living = event.deliveries.iter().filter(|delivery| delivery.dead.is_none());
            self.effects.consumers.extend(living.map(|delivery| delivery.consumer.clone()));
        }
        Ok(())
    }

    /// Whether the transaction may emit these events, after those that it has emitted so far.
    pub fn has_room_for_events(&self, events: &[NewEvent]) -> bool {
        self.emitted_with(events).is_ok()
    }

    /// What the transaction has emitted when it has emitted these events too.
    fn emitted_with(&self, events: &[NewEvent]) -> Result<Emitted, DbError> {
        let Emitted { events: count, bytes } = self.effects.emitted;
        let count = count + events.len();
        let bytes = bytes + events.iter().map(|event| event.payload.len()).sum::<usize>();
        match count > 1 && bytes > TRANSACTION_BYTES_MAX {
            true => Err(DbError::EventsTooLarge),
            false => Ok(Emitted { events: count, bytes }),
        }
    }

    async fn emit_on_sqlite(&mut self, event: NewEvent) -> Result<(), DbError> {
        let id = event.id.to_string();
        let params = event_params(&event, pack(&event.payload)?);
        self.run(INSERT_EVENT, params).await?;
        let Inner::Sqlite(driver) = &self.inner else { return Ok(()) };
        let seq = driver.last_insert_rowid();
        for delivery in event.deliveries.iter() {
            self.run(
                insert_deliveries!("$1", "$2", "$3", "$4", "$5", "$6"),
                vec![
                    seq.into(),
                    event.record_id.clone().into(),
                    event.occurred_at.into(),
                    delivery.consumer.clone().into(),
                    delivery.handler.clone().into(),
                    delivery.dead.map(str::to_owned).into(),
                ],
            )
            .await?;
        }
        let text = EventText { id: &id, topic: &event.topic, payload: &event.payload, occurred_at: event.occurred_at };
        self.effects.events.push(Arc::new(CommittedEvent::new(seq, &text, event.object, event.owner, event.depth)));
        Ok(())
    }

    /// Needs one round trip for any number of events and groups.
    async fn emit_on_postgres(&mut self, mut events: Vec<NewEvent>) -> Result<(), DbError> {
        let Some(first) = events.first() else { return Ok(()) };
        let (depth, occurred_at) = (first.depth, first.occurred_at);
        if events.len() == 1
            && let Some(event) = events.pop_if(|event| event.deliveries.is_empty())
        {
            let params = packed_params(event).await?;
            return self.run(INSERT_EVENT, params).await.map(|_| ());
        }
        let (events, stored) = pack_all(events).await?;
        let deliveries: BTreeMap<&str, &[NewDelivery]> =
            events.iter().map(|event| (event.topic.as_str(), &event.deliveries[..])).collect();
        let of_topics: Vec<(&str, &NewDelivery)> =
            deliveries.iter().flat_map(|(topic, list)| list.iter().map(|delivery| (*topic, delivery))).collect();
        let event = |value: fn(&NewEvent) -> Option<String>| Param::OptionalTextList(events.iter().map(value).collect());
        let delivery =
            |value: fn(&(&str, &NewDelivery)) -> Option<String>| Param::OptionalTextList(of_topics.iter().map(value).collect());
        let params = vec![
            event(|event| Some(event.id.to_string())),
            event(|event| Some(event.topic.clone())),
            Param::OptionalTextList(stored.payloads),
            event(|event| event.object.clone()),
            event(|event| event.record_id.clone()),
            event(|event| event.owner.clone()),
            depth.into(),
            occurred_at.into(),
            delivery(|(topic, _)| Some((*topic).to_owned())),
            delivery(|(_, delivery)| Some(delivery.consumer.clone())),
            delivery(|(_, delivery)| Some(delivery.handler.clone())),
            delivery(|(_, delivery)| delivery.dead.map(str::to_owned)),
            Param::OptionalTextList(stored.bytes),
            Param::OptionalBytesList(stored.packed),
        ];
        self.run(
            concat!(
                "WITH event AS (\
                   INSERT INTO svc_events \
                     (id, topic, payload, object, record_id, owner, depth, occurred_at, payload_bytes, packed) \
                   SELECT id, topic, payload, object, record_id, owner, $7, $8, payload_bytes::bigint, packed FROM unnest(\
                     $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $13::text[], $14::bytea[]) \
                   WITH ORDINALITY AS event (id, topic, payload, object, record_id, owner, payload_bytes, packed, place) \
                   ORDER BY place RETURNING seq, topic, record_id) ",
                insert_deliveries!("event.seq", "event.record_id", "$8", "d.consumer", "d.handler", "d.dead"),
                " FROM event JOIN unnest($9::text[], $10::text[], $11::text[], $12::text[]) \
                 AS d (topic, consumer, handler, dead) ON d.topic = event.topic"
            ),
            params,
        )
        .await
        .map(|_| ())
    }

    /// The last number that was given to an event, committed or not.
    pub async fn last_event_seq(&mut self) -> Result<i64, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "SELECT coalesce(max(seq), 0) FROM svc_events",
            Dialect::Postgres => {
                "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('svc_events', 'seq')::regclass), 0)"
            }
        };
        let rows = self.fetch(sql, Vec::new()).await?;
        rows.first().map_or(Ok(0), |row| row.integer(0))
    }

    /// The number and the id of the newest event in the outbox whose number is at most `up_to`.
    pub async fn newest_event(&mut self, up_to: i64) -> Result<Option<(i64, String)>, DbError> {
        let sql = "SELECT seq, id FROM svc_events WHERE seq <= $1 ORDER BY seq DESC LIMIT 1";
        let rows = self.fetch(sql, vec![up_to.into()]).await?;
        rows.first().map(|row| Ok((row.integer(0)?, row.text(1)?))).transpose()
    }

    /// The numbers of the newest `limit` events in `(after, up_to]`.
    pub async fn newest_event_seqs(&mut self, after: i64, up_to: i64, limit: i64) -> Result<Vec<i64>, DbError> {
        let sql = "SELECT seq FROM svc_events WHERE seq > $1 AND seq <= $2 ORDER BY seq DESC LIMIT $3";
        let rows = self.fetch(sql, vec![after.into(), up_to.into(), limit.into()]).await?;
        rows.iter().map(|row| row.integer(0)).collect()
    }

    /// A mark for this moment, on Postgres. It uses up a transaction number.
    pub async fn feed_mark(&mut self) -> Result<FeedMark, DbError> {
        let rows = self.fetch("SELECT last_seq, xid FROM svc_feed_mark()", Vec::new()).await?;
        let row = rows.first().ok_or_else(|| DbError::Other("no mark of the feed".into()))?;
        Ok(FeedMark { last_seq: row.integer(0)?, xid: transaction_number(row, 1)? })
    }

    /// The oldest open transaction on Postgres. If no transaction is open, the number of the next one.
    pub async fn oldest_transaction(&mut self) -> Result<u64, DbError> {
        let rows = self.fetch("SELECT pg_snapshot_xmin(pg_current_snapshot())::text", Vec::new()).await?;
        transaction_number(rows.first().ok_or_else(|| DbError::Other("no snapshot".into()))?, 0)
    }

    /// The events numbered in `(after, up_to]`, in their order. The number and the bytes of the page are limited.
    pub async fn events_between(&mut self, after: i64, up_to: i64) -> Result<EventPage, DbError> {
        let heads =
            concat!("SELECT seq, ", payload_bytes!(), " FROM svc_events WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3");
        let heads = self.fetch(heads, vec![after.into(), up_to.into(), FEED_PAGE.into()]).await?;
        let (mut last, mut bytes) = (None, 0);
        for head in &heads {
            bytes += head.integer(1)?;
            if last.is_some() && bytes > PAGE_BYTES_MAX {
                break;
            }
            last = Some(head.integer(0)?);
        }
        let Some(last) = last else { return Ok(EventPage::default()) };
        let columns = committed_columns(self.dialect());
        let sql = format!("SELECT {columns} FROM svc_events WHERE seq > $1 AND seq <= $2 ORDER BY seq");
        let params = vec![after.into(), last.into()];
        let rows = self.fetch_rows(Statement { sql: self.placeholders(sql), params }).await?;
        let events = rows.iter().filter_map(|row| CommittedEvent::of_row(row).ok().map(Arc::new)).collect();
        Ok(EventPage { events, last: Some(last) })
    }

    /// The events that match the filter and are numbered in `(after, up_to]`, in their order. The number and the bytes of the
    /// page are limited. The number of events that the query looks at is limited too, so a page may be empty although more events
    /// follow.
    pub async fn events_of(&mut self, filter: &ReplayFilter, after: i64, up_to: i64) -> Result<EventPage, DbError> {
        if after >= up_to {
            return Ok(EventPage::default());
        }
        let (table, number) = match (self.dialect(), &filter.object) {
            (Dialect::Sqlite, Some(_)) => ("svc_events e INDEXED BY svc_events_object", "e.seq"),
            // This is the expression in the index of objects.
            (Dialect::Postgres, Some(_)) => ("svc_events e", "(e.seq + 0)"),
            (_, None) => ("svc_events e", "e.seq"),
        };
        let end = match &filter.object {
            None => after.saturating_add(LOOKED_AT_ONCE).min(up_to),
            Some(object) => {
                let sql = format!(
                    "SELECT e.seq FROM {table} WHERE e.object = $1 AND {number} > $2 AND {number} <= $3 ORDER BY {number} LIMIT 1 OFFSET $4"
                );
                let params = vec![object.clone().into(), after.into(), up_to.into(), LOOKED_AT_ONCE.into()];
                let rows = self.fetch_rows(Statement { sql: self.placeholders(sql), params }).await?;
                rows.first().map_or(Ok(up_to), |row| row.integer(0))?
            }
        };
        let mut params: Vec<Param> = vec![after.into(), end.into(), FEED_PAGE.into()];
        let condition = filter.condition(self.dialect(), &mut params);
        let of_object = match &filter.object {
            None => String::new(),
            Some(object) => {
                params.push(object.clone().into());
                format!("e.object = ${} AND ", params.len())
            }
        };
        let sql = format!(
            "SELECT e.seq, {} FROM {table} WHERE {of_object}{number} > $1 AND {number} <= $2 AND {condition} ORDER BY {number} LIMIT $3",
            payload_bytes!()
        );
        let heads = self.fetch_rows(Statement { sql: self.placeholders(sql), params }).await?;
        let (mut page, mut bytes) = (Vec::with_capacity(heads.len()), 0);
        for head in &heads {
            bytes += head.integer(1)?;
            if !page.is_empty() && bytes > PAGE_BYTES_MAX {
                break;
            }
            page.push(head.integer(0)?);
        }
        let is_cut = page.len() < heads.len() || heads.len() as i64 == FEED_PAGE;
        let last = if is_cut { page.last().copied() } else { Some(end) };
        if page.is_empty() {
            return Ok(EventPage { events: Vec::new(), last });
        }
        Ok(EventPage { events: self.events(page).await?, last })
    }

    /// The events with these numbers, in their order. Those that were deleted or cannot be read are left out.
    pub async fn events(&mut self, seqs: Vec<i64>) -> Result<Vec<Arc<CommittedEvent>>, DbError> {
        let (columns, list) = (committed_columns(self.dialect()), among(self.dialect(), "seq", 1));
        let sql = format!("SELECT {columns} FROM svc_events WHERE {list} ORDER BY seq");
        let rows = self.fetch_rows(Statement { sql: self.placeholders(sql), params: vec![Param::IntegerList(seqs)] }).await?;
        Ok(rows.iter().filter_map(|row| CommittedEvent::of_row(row).ok().map(Arc::new)).collect())
    }

    /// The heads of the newest `limit` events numbered below `before`, the newest first.
    pub async fn event_heads_before(&mut self, filter: &HeadFilter, before: i64, limit: i64) -> Result<Vec<EventHead>, DbError> {
        let mut params: Vec<Param> = vec![before.into(), limit.into()];
        let accounts = accounts_in_snapshot(self.dialect());
        let sql = match (&filter.record_id, &filter.object) {
            (None, None) => {
                format!("SELECT seq, topic, object, owner, {accounts} FROM svc_events WHERE seq < $1 ORDER BY seq DESC LIMIT $2")
            }
            (None, Some(object)) => {
                params.push(object.clone().into());
                match self.dialect() {
                    Dialect::Sqlite => format!(
                        "SELECT seq, topic, object, owner, {accounts} FROM svc_events INDEXED BY svc_events_object \
                         WHERE object = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2"
                    ),
                    Dialect::Postgres => format!(
                        "SELECT seq, topic, object, owner, {accounts} FROM svc_events WHERE object = $3 AND seq + 0 < $1 \
                         ORDER BY seq + 0 DESC LIMIT $2"
                    ),
                }
            }
            (Some(record), object) => {
                params.extend([record.clone().into(), object.clone().into()]);
                match self.dialect() {
                    Dialect::Sqlite => format!(
                        "WITH RECURSIVE \
                           bounds AS (\
                             SELECT (SELECT min(seq) FROM svc_events) >> 13 AS first, \
                               min((SELECT max(seq) FROM svc_events), $1) >> 13 AS last), \
                           runs (run) AS (\
                             SELECT last FROM bounds UNION ALL SELECT run - 1 FROM runs WHERE run > (SELECT first FROM bounds)) \
                         SELECT e.seq, e.topic, e.object, e.owner, {accounts} \
                         FROM runs CROSS JOIN svc_events e INDEXED BY svc_events_record \
                         WHERE (e.seq >> 13) = runs.run AND e.record_id = $3 AND e.seq < $1 AND e.object = coalesce($4, e.object) \
                         ORDER BY e.seq DESC LIMIT $2"
                    ),
                    // `OFFSET 0` prevents the planner from a join that would read all events.
                    Dialect::Postgres => format!(
                        "SELECT e.seq, e.topic, e.object, e.owner, {accounts} FROM \
                           (SELECT generate_series(min(seq) >> 13, least(max(seq), $1) >> 13) AS run FROM svc_events) AS runs \
                         CROSS JOIN LATERAL (\
                           SELECT * FROM svc_events one WHERE (one.seq >> 13) = runs.run AND one.record_id = $3 \
                           ORDER BY one.seq >> 13, one.record_id OFFSET 0) AS e \
                         WHERE e.seq < $1 AND e.object = coalesce($4, e.object) ORDER BY e.seq DESC LIMIT $2"
                    ),
                }
            }
        };
        let rows = self.fetch_rows(Statement { sql: self.placeholders(sql), params }).await?;
        rows.iter().map(event_head).collect()
    }

    /// One event. `None` if it was deleted or cannot be read.
    pub async fn event(&mut self, seq: i64) -> Result<Option<CommittedEvent>, DbError> {
        let sql = format!("SELECT {} FROM svc_events WHERE seq = $1", committed_columns(self.dialect()));
        let rows = self.fetch_rows(Statement { sql: self.placeholders(sql), params: vec![seq.into()] }).await?;
        Ok(rows.first().and_then(|row| CommittedEvent::of_row(row).ok()))
    }

    /// The number of an event.
    pub async fn event_seq(&mut self, id: &str) -> Result<Option<i64>, DbError> {
        let rows = self.fetch("SELECT seq FROM svc_events WHERE id = $1", vec![id.into()]).await?;
        rows.first().map(|row| row.integer(0)).transpose()
    }

    /// An event by its id, without its payload.
    pub async fn event_head(&mut self, id: &str) -> Result<Option<EventHead>, DbError> {
        let accounts = accounts_in_snapshot(self.dialect());
        let sql = format!("SELECT seq, topic, object, owner, {accounts} FROM svc_events WHERE id = $1");
        let rows = self.fetch_rows(Statement { sql: self.placeholders(sql), params: vec![id.into()] }).await?;
        rows.first().map(event_head).transpose()
    }

    /// The last number among the `limit` events after `seq`, and the time of the earliest of them.
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

    /// Adds up the differences that writers on Postgres have stored, so that each object has one row. Readers get the same total
    /// before and after that.
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

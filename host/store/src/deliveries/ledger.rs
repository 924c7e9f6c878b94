//! The ledger as callers see it: entries, manual retries, and the number of waiting deliveries.

use std::collections::BTreeMap;

use blockbase_query::{Dialect, Param, Statement, TopicFilter};

use crate::connection::Connection;
use crate::dialect_sql::{among, database_now};
use crate::error::DbError;
use crate::packing::{PAGE_BYTES_MAX, payload_bytes};
use crate::row::Row;
use crate::topic_match;

/// An entry of the ledger, with the topic of its event.
#[derive(Clone, Debug)]
pub struct LedgerRow {
    pub event_id: String,
    pub topic: String,
    pub consumer: String,
    pub handler: String,
    pub status: String,
    pub attempts: i64,
    pub error: Option<String>,
    pub next_attempt_at: Option<i64>,
    pub delivered_at: Option<i64>,
    pub occurred_at: i64,
    pub is_dead: bool,
    /// The object of the event's record. The object and the record's creator (`owner`) decide who may see the entry.
    pub object: Option<String>,
    pub owner: Option<String>,
}

/// The events that a caller may see: those of visible records, and all events without a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VisibleEvents {
    /// The objects of which the caller may see every record.
    pub objects: Vec<String>,
    /// For each owner, the objects of which the caller may see that owner's records. There can be several owners: a key that is
    /// limited to its maker's rights can see the records of its user in one object, and those of its maker in another.
    pub own_objects: BTreeMap<String, Vec<String>>,
    /// The topics whose events are not visible by their object and owner.
    pub excepted: Vec<String>,
    /// The numbers of further events that are visible.
    pub further: Vec<i64>,
}

impl VisibleEvents {
    /// SQL for the condition on an event `e`.
    pub(crate) fn condition(&self, dialect: Dialect, params: &mut Vec<Param>) -> String {
        params.push(Param::TextList(Some(self.objects.clone())));
        let mut of_records = vec![among(dialect, "e.object", params.len())];
        for (owner, objects) in &self.own_objects {
            params.push(Param::TextList(Some(objects.clone())));
            let own = among(dialect, "e.object", params.len());
            params.push(owner.clone().into());
            of_records.push(format!("({own} AND e.owner = ${})", params.len()));
        }
        let mut of_records = of_records.join(" OR ");
        if !self.excepted.is_empty() {
            params.push(Param::TextList(Some(self.excepted.clone())));
            of_records = format!("(({of_records}) AND NOT ({}))", among(dialect, "e.topic", params.len()));
        }
        let mut reached = vec!["e.object IS NULL".to_owned(), of_records];
        if !self.further.is_empty() {
            params.push(Param::IntegerList(self.further.clone()));
            reached.push(among(dialect, "e.seq", params.len()));
        }
        format!("({})", reached.join(" OR "))
    }
}

/// The requested entries of the ledger. Members that are left out match every entry.
#[derive(Clone, Debug, Default)]
pub struct LedgerFilter {
    pub status: Option<String>,
    pub consumer: Option<String>,
    pub is_dead: Option<bool>,
    pub event_id: Option<String>,
    pub topic: Option<TopicFilter>,
    /// The first instant of the events, in milliseconds since the epoch.
    pub since: Option<i64>,
    /// The first instant after the period.
    pub until: Option<i64>,
    /// The number of the event before which the list begins. Only a list has it, and neither counts nor a retry.
    pub before: Option<i64>,
}

impl LedgerFilter {
    /// SQL for the conditions on an entry's event `e`, which also has to be in `visible`. The list is empty if all events match.
    pub(super) fn of_event(&self, visible: Option<&VisibleEvents>, dialect: Dialect, params: &mut Vec<Param>) -> Vec<String> {
        let mut conditions = Vec::new();
        for (bound, operator) in [(self.since, ">="), (self.until, "<")] {
            if let Some(bound) = bound {
                params.push(bound.into());
                conditions.push(format!("e.occurred_at {operator} ${}", params.len()));
            }
        }
        if let Some(topic) = &self.topic {
            conditions.push(topic_match::condition(topic, dialect, "e.topic", params));
        }
        if let Some(visible) = visible {
            conditions.push(visible.condition(dialect, params));
        }
        conditions
    }

    /// SQL for the conditions on an entry `d` itself. The list is empty if all entries match.
    fn of_entry(&self, params: &mut Vec<Param>) -> Vec<String> {
        let mut conditions = Vec::new();
        if let Some(consumer) = &self.consumer {
            params.push(consumer.clone().into());
            conditions.push(format!("d.consumer = ${}", params.len()));
        }
        // Each condition is written out as literal SQL, so that the index of failed deliveries can be used.
        conditions.extend(self.status.as_deref().and_then(|status| match status {
            "pending" => Some("d.status = 'pending'".to_owned()),
            "delivered" => Some("d.status = 'delivered'".to_owned()),
            "failed" => Some("d.status = 'failed'".to_owned()),
            _ => None,
        }));
        match self.is_dead {
            None => {}
            Some(true) => conditions.push("d.status = 'failed' AND d.dead".to_owned()),
            Some(false) => conditions.push("NOT d.dead".to_owned()),
        }
        if let Some(event_id) = &self.event_id {
            params.push(event_id.clone().into());
            conditions.push(format!("d.event_seq = (SELECT seq FROM svc_events WHERE id = ${})", params.len()));
        }
        if let Some(before) = self.before {
            params.push(before.into());
            conditions.push(format!("d.event_seq < ${}", params.len()));
        }
        conditions
    }
}

/// The maximum number of events that one request looks at because their payloads decide whether their entries are shown.
#[derive(Clone, Copy, Debug)]
pub struct UndecidedMax {
    /// The maximum number of events whose payloads are read.
    pub events: i64,
    /// The maximum number of bytes of these payloads. The first payload is read even if it is larger.
    pub bytes: i64,
    /// The number of events of the outbox among which they are searched: the newest ones before the filter's `before` and `until`.
    pub looked_through: i64,
}

/// The events whose payloads decide whether their entries are shown, up to [`UndecidedMax`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndecidedEvents {
    /// The numbers of the events, the newest first. They are divided into pages, so that the payloads of a page can be read at
    /// once.
    pub pages: Vec<Vec<i64>>,
    /// The number of the event before which there may be more of them. `None` if these are all.
    pub before: Option<i64>,
}

/// The number of deliveries that a consumer group still has to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueDepth {
    pub consumer: String,
    pub pending: i64,
}

macro_rules! ledger_columns {
    () => {
        "e.id, e.topic, d.consumer, d.handler, d.status, d.attempts, d.error, d.next_attempt_at, d.delivered_at, e.occurred_at, d.dead, \
         e.object, e.owner"
    };
}

fn ledger_row(row: &Row) -> Result<LedgerRow, DbError> {
    Ok(LedgerRow {
        event_id: row.text(0)?,
        topic: row.text(1)?,
        consumer: row.text(2)?,
        handler: row.text(3)?,
        status: row.text(4)?,
        attempts: row.integer(5)?,
        error: row.optional_text(6)?,
        next_attempt_at: row.optional_integer(7)?,
        delivered_at: row.optional_integer(8)?,
        occurred_at: row.integer(9)?,
        is_dead: row.boolean(10)?,
        object: row.optional_text(11)?,
        owner: row.optional_text(12)?,
    })
}

impl Connection {
    /// A page of the ledger, the newest event first, and the number of all matching entries. It has only entries of `visible`
    /// events. `None` if every entry is visible.
    pub async fn ledger(
        &mut self,
        filter: &LedgerFilter,
        visible: Option<&VisibleEvents>,
        limit: i64,
        offset: i64,
    ) -> Result<(Vec<LedgerRow>, i64), DbError> {
        let mut conditions = vec!["TRUE".to_owned()];
        let mut params: Vec<Param> = Vec::new();
        conditions.extend(filter.of_entry(&mut params));
        let of_event = filter.of_event(visible, self.dialect(), &mut params);
        let table = match of_event.is_empty() {
            true => "svc_deliveries d",
            false => "svc_deliveries d JOIN svc_events e ON e.seq = d.event_seq",
        };
        conditions.extend(of_event);
        let conditions = conditions.join(" AND ");
        let sql = format!("SELECT count(*) FROM {table} WHERE {conditions}");
        let total = self.fetch_integer(Statement { sql: self.placeholders(sql), params: params.clone() }).await?;
        params.extend([limit.into(), offset.into()]);
        let (limit, offset) = (params.len() - 1, params.len());
        // The inner query selects the page, so that only the page's events are looked up.
        let sql = format!(
            "SELECT {} FROM (SELECT d.* FROM {table} WHERE {conditions} ORDER BY d.event_seq DESC, d.consumer \
             LIMIT ${limit} OFFSET ${offset}) AS d JOIN svc_events e ON e.seq = d.event_seq ORDER BY d.event_seq DESC, d.consumer",
            ledger_columns!(),
        );
        let rows = self.fetch_rows(Statement { sql: self.placeholders(sql), params }).await?;
        Ok((rows.iter().map(ledger_row).collect::<Result<_, _>>()?, total))
    }

    /// The newest events with entries that match the filter, of those that are `possible` and not `visible`.
    pub async fn undecided_events(
        &mut self,
        filter: &LedgerFilter,
        visible: &VisibleEvents,
        possible: &VisibleEvents,
        most: UndecidedMax,
    ) -> Result<UndecidedEvents, DbError> {
        let dialect = self.dialect();
        let mut params: Vec<Param> = Vec::new();
        let mut conditions = filter.of_entry(&mut params);
        // One event has few entries, however old it is.
        let searched_after = match filter.event_id {
            Some(_) => None,
            None => Some(self.newest_of(filter).await? - most.looked_through),
        };
        if let Some(searched_after) = searched_after {
            params.push(searched_after.into());
            conditions.push(format!("d.event_seq > ${}", params.len()));
        }
        conditions.extend(filter.of_event(Some(possible), dialect, &mut params));
        conditions.push(format!("NOT coalesce({}, FALSE)", visible.condition(dialect, &mut params)));
        // One more event shows that there are more.
        params.push((most.events + 1).into());
        let sql = format!(
            "SELECT e.seq, {} FROM (SELECT DISTINCT d.event_seq FROM svc_deliveries d JOIN svc_events e ON e.seq = d.event_seq \
             WHERE {} ORDER BY d.event_seq DESC LIMIT ${}) AS d JOIN svc_events e ON e.seq = d.event_seq ORDER BY e.seq DESC",
            payload_bytes!(),
            conditions.join(" AND "),
            params.len(),
        );
        let rows = self.fetch_rows(Statement { sql: self.placeholders(sql), params }).await?;
        let mut found = UndecidedEvents::default();
        let (mut bytes_left, mut bytes_left_of_page) = (most.bytes, 0);
        let mut last = None;
        for (index, row) in (0..).zip(&rows) {
            let (seq, bytes) = (row.integer(0)?, row.integer(1)?);
            if index >= most.events || (bytes > bytes_left && !found.pages.is_empty()) {
                return Ok(UndecidedEvents { before: last, ..found });
            }
            match found.pages.last_mut().filter(|_| bytes <= bytes_left_of_page) {
                Some(page) => page.push(seq),
                None => {
                    found.pages.push(vec![seq]);
                    bytes_left_of_page = PAGE_BYTES_MAX;
                }
            }
            bytes_left -= bytes;
            bytes_left_of_page -= bytes;
            last = Some(seq);
        }
        if let Some(searched_after) = searched_after {
            found.before = self.has_older(searched_after, filter.since).await?.then_some(searched_after + 1);
        }
        Ok(found)
    }

    /// The number of the newest event of the outbox before the filter's `before` and `until`. 0 without such an event.
    async fn newest_of(&mut self, filter: &LedgerFilter) -> Result<i64, DbError> {
        let after_period = match filter.until {
            Some(until) => self.last_event_before(until).await? + 1,
            None => i64::MAX,
        };
        let before = filter.before.map_or(after_period, |before| before.min(after_period));
        let rows = self.fetch("SELECT coalesce(max(seq), 0) FROM svc_events WHERE seq < $1", vec![before.into()]).await?;
        rows.first().map_or(Ok(0), |row| row.integer(0))
    }

    /// Whether the outbox has events up to the number `last` that happened at `since` or later. It does not matter whether they
    /// have entries: the caller must not learn what others have.
    async fn has_older(&mut self, last: i64, since: Option<i64>) -> Result<bool, DbError> {
        let sql = "SELECT occurred_at FROM svc_events WHERE seq <= $1 ORDER BY seq DESC LIMIT 1";
        let rows = self.fetch(sql, vec![last.into()]).await?;
        let Some(row) = rows.first() else { return Ok(false) };
        let occurred_at = row.integer(0)?;
        // Events with smaller numbers happened earlier, apart from the differences between clocks.
        Ok(since.is_none_or(|since| occurred_at >= since))
    }

    /// One entry of the ledger. No other transaction changes it until this one ends.
    pub async fn held_delivery(&mut self, event_id: &str, consumer: &str) -> Result<Option<LedgerRow>, DbError> {
        let sql = format!(
            "SELECT {} FROM svc_deliveries d JOIN svc_events e ON e.seq = d.event_seq WHERE e.id = $1 AND d.consumer = $2{}",
            ledger_columns!(),
            match self.dialect() {
                Dialect::Sqlite => "",
                Dialect::Postgres => " FOR UPDATE OF d",
            }
        );
        let statement = Statement { sql: self.placeholders(sql), params: vec![event_id.into(), consumer.into()] };
        self.fetch_rows(statement).await?.first().map(ledger_row).transpose()
    }

    /// One entry of the ledger.
    pub async fn delivery(&mut self, event_id: &str, consumer: &str) -> Result<Option<LedgerRow>, DbError> {
        const DELIVERY: &str = concat!(
            "SELECT ",
            ledger_columns!(),
            " FROM svc_deliveries d JOIN svc_events e ON e.seq = d.event_seq WHERE e.id = $1 AND d.consumer = $2"
        );
        self.fetch(DELIVERY, vec![event_id.into(), consumer.into()]).await?.first().map(ledger_row).transpose()
    }

    /// Makes a delivery pending again with all its attempts. An attempt in progress does not count any more.
    pub async fn reset_delivery(&mut self, event_id: &str, consumer: &str) -> Result<bool, DbError> {
        let sql = format!(
            "UPDATE svc_deliveries SET status = 'pending', dead = FALSE, attempts = 0, claims = 0, error = NULL, \
             next_attempt_at = {}, lease_token = NULL, lease_until = NULL \
             WHERE consumer = $2 AND event_seq = (SELECT seq FROM svc_events WHERE id = $1)",
            database_now(self.dialect())
        );
        let statement = Statement { sql: self.placeholders(sql), params: vec![event_id.into(), consumer.into()] };
        let reset = self.execute(statement).await? == 1;
        if reset {
            self.effects.consumers.insert(consumer.to_owned());
        }
        Ok(reset)
    }

    /// Counts the newest 100,000 failed deliveries: those that will be retried, and those that are dead.
    pub async fn failed_deliveries(&mut self) -> Result<(i64, i64), DbError> {
        let sql = "SELECT count(*), CAST(coalesce(sum(CASE WHEN dead THEN 1 ELSE 0 END), 0) AS BIGINT) FROM \
                   (SELECT dead FROM svc_deliveries WHERE status = 'failed' ORDER BY event_seq DESC LIMIT 100000) AS counted";
        let rows = self.fetch(sql, Vec::new()).await?;
        let row = rows.first().ok_or_else(|| DbError::Other("a count gave no row".into()))?;
        let (all, dead) = (row.integer(0)?, row.integer(1)?);
        Ok((all - dead, dead))
    }

    /// The number of deliveries that each group still has to get, counted up to 100,000, and the time of the oldest delivery of
    /// all groups.
    pub async fn queue_depths(&mut self) -> Result<(Vec<QueueDepth>, Option<i64>), DbError> {
        let mut depths = Vec::new();
        for consumer in self.groups_unsettled().await? {
            let sql = "SELECT count(*) FROM \
                       (SELECT 1 FROM svc_deliveries WHERE consumer = $1 AND status = 'pending' LIMIT 100000) AS counted";
            let rows = self.fetch(sql, vec![consumer.clone().into()]).await?;
            let pending = rows.first().map_or(Ok(0), |row| row.integer(0))?;
            depths.push(QueueDepth { consumer, pending });
        }
        let mut oldest: Option<i64> = None;
        for depth in &depths {
            let sql = "SELECT e.occurred_at FROM svc_deliveries d JOIN svc_events e ON e.seq = d.event_seq \
                       WHERE d.consumer = $1 AND d.status = 'pending' ORDER BY d.event_seq + 0 LIMIT 1";
            let rows = self.fetch(sql, vec![depth.consumer.clone().into()]).await?;
            let occurred_at = rows.first().map(|row| row.integer(0)).transpose()?;
            oldest = oldest.into_iter().chain(occurred_at).min();
        }
        Ok((depths, oldest))
    }
}

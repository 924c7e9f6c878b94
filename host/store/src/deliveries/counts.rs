//! Counts the ledger's entries of each consumer group by state. The time that this takes is limited.

use blockbase_query::{Dialect, Param, Statement};

use super::ledger::{LedgerFilter, VisibleEvents};
use crate::connection::Connection;
use crate::error::DbError;

/// The maximum number of entries of one group and state that are counted. Delivered entries have their own limit, because there
/// are many of them, and they stay.
const UNSETTLED_MAX: i64 = 1_000_000;
const DELIVERED_MAX: i64 = 10_000;
/// The maximum number of groups that are counted.
const GROUPS_MAX: i64 = 1_000;

/// The entries of one consumer group by their states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupCounts {
    pub consumer: String,
    /// The number of entries whose first attempt has not ended.
    pub pending: i64,
    /// The number of delivered entries among the newest 10,000.
    pub delivered: i64,
    /// The number of failed entries that will be retried.
    pub failed: i64,
    pub dead: i64,
    /// The time of the event of the first pending entry.
    pub oldest_pending_at: Option<i64>,
}

/// One state of entries: its condition, and the index that finds them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Pending,
    Delivered,
    Failed,
    Dead,
}

impl State {
    fn condition(self) -> &'static str {
        match self {
            State::Pending => "d.status = 'pending'",
            State::Delivered => "d.status = 'delivered'",
            State::Failed => "d.status = 'failed' AND NOT d.dead",
            State::Dead => "d.status = 'failed' AND d.dead",
        }
    }

    /// The table, with its index if the engine lets a statement name one.
    fn table(self, dialect: Dialect) -> &'static str {
        match (dialect, self) {
            (Dialect::Postgres, _) | (_, State::Delivered) => "svc_deliveries d",
            (_, State::Pending) => "svc_deliveries d INDEXED BY svc_deliveries_pending",
            (_, State::Failed) => "svc_deliveries d INDEXED BY svc_deliveries_retries",
            (_, State::Dead) => "svc_deliveries d INDEXED BY svc_deliveries_dead",
        }
    }

    /// The order of the state's index.
    fn order(self, dialect: Dialect) -> &'static str {
        match (dialect, self) {
            (_, State::Delivered) => "d.event_seq DESC",
            (_, State::Failed) => "d.next_attempt_at, d.event_seq",
            (Dialect::Sqlite, _) => "d.event_seq",
            (Dialect::Postgres, _) => "d.event_seq + 0",
        }
    }

    fn is_asked_for(self, filter: &LedgerFilter) -> bool {
        let (status, is_dead) = match self {
            State::Pending => ("pending", false),
            State::Delivered => ("delivered", false),
            State::Failed => ("failed", false),
            State::Dead => ("failed", true),
        };
        filter.status.as_deref().is_none_or(|asked| asked == status) && filter.is_dead.is_none_or(|asked| asked == is_dead)
    }
}

impl Connection {
    /// The entries of `visible` events that match a filter, counted by group. Groups without entries are left out. `None` if every
    /// entry is visible.
    pub async fn ledger_counts(
        &mut self,
        filter: &LedgerFilter,
        visible: Option<&VisibleEvents>,
    ) -> Result<Vec<GroupCounts>, DbError> {
        let dialect = self.dialect();
        let (mut params, mut of_entry) = (Vec::new(), String::new());
        if let Some(event_id) = &filter.event_id {
            params.push(Param::from(event_id.clone()));
            of_entry = format!(" AND d.event_seq = (SELECT seq FROM svc_events WHERE id = ${})", params.len());
        }
        let of_event = filter.of_event(visible, dialect, &mut params);
        let delivered_between = self.numbers_of_time(filter.since, filter.until).await?;
        let count = |state: State, window: &str, most: i64| {
            if !state.is_asked_for(filter) {
                return "CAST(0 AS BIGINT)".to_owned();
            }
            let from = format!(
                "(SELECT d.event_seq, d.status, d.dead FROM {} WHERE d.consumer = g.consumer AND {}{of_entry}{window} ORDER BY {} LIMIT {most}) AS d",
                state.table(dialect),
                if state == State::Delivered { "TRUE" } else { state.condition() },
                state.order(dialect),
            );
            let conditions: Vec<&str> = [state.condition()].into_iter().chain(of_event.iter().map(String::as_str)).collect();
            let events = if of_event.is_empty() { "" } else { " JOIN svc_events e ON e.seq = d.event_seq" };
            format!("(SELECT count(*) FROM {from}{events} WHERE {})", conditions.join(" AND "))
        };
        let pending = count(State::Pending, "", UNSETTLED_MAX);
        let delivered = count(State::Delivered, &delivered_between, DELIVERED_MAX);
        let failed = count(State::Failed, "", UNSETTLED_MAX);
        let dead = count(State::Dead, "", UNSETTLED_MAX);
        let oldest = match State::Pending.is_asked_for(filter) {
            false => "CAST(NULL AS BIGINT)".to_owned(),
            true => format!(
                "(SELECT e.occurred_at FROM {} JOIN svc_events e ON e.seq = d.event_seq WHERE d.consumer = g.consumer AND {}{of_entry}{} \
                 ORDER BY {} LIMIT 1)",
                State::Pending.table(dialect),
                State::Pending.condition(),
                of_event.iter().map(|condition| format!(" AND {condition}")).collect::<String>(),
                State::Pending.order(dialect),
            ),
        };
        let groups = match &filter.consumer {
            Some(consumer) => {
                params.push(consumer.clone().into());
                format!("SELECT CAST(${} AS TEXT) AS consumer", params.len())
            }
            // The index is read with one step for each group. So the cost does not depend on the number of entries.
            None => "SELECT consumer FROM found WHERE consumer IS NOT NULL".to_owned(),
        };
        let sql = format!(
            "WITH RECURSIVE found (consumer) AS (\
               SELECT min(consumer) FROM svc_deliveries \
               UNION ALL \
               SELECT (SELECT min(consumer) FROM svc_deliveries WHERE consumer > found.consumer) FROM found \
               WHERE found.consumer IS NOT NULL) \
             SELECT g.consumer, {pending}, {delivered}, {failed}, {dead}, {oldest} FROM ({groups} LIMIT {GROUPS_MAX}) AS g \
             ORDER BY g.consumer"
        );
        let rows = self.fetch_rows(Statement { sql: self.placeholders(sql), params }).await?;
        let mut counts = Vec::with_capacity(rows.len());
        for row in &rows {
            let group = GroupCounts {
                consumer: row.text(0)?,
                pending: row.integer(1)?,
                delivered: row.integer(2)?,
                failed: row.integer(3)?,
                dead: row.integer(4)?,
                oldest_pending_at: row.optional_integer(5)?,
            };
            if group.pending + group.delivered + group.failed + group.dead > 0 {
                counts.push(group);
            }
        }
        Ok(counts)
    }

    /// The number of the last event that happened before an instant. 0 without such an event.
    pub async fn last_event_before(&mut self, instant: i64) -> Result<i64, DbError> {
        let sql = "SELECT seq FROM svc_events WHERE occurred_at < $1 ORDER BY occurred_at DESC LIMIT 1";
        self.fetch(sql, vec![instant.into()]).await?.first().map_or(Ok(0), |row| row.integer(0))
    }

    /// The numbers of the events between two times, as a condition on entries. It is exact, except for events that were written
    /// at almost the same time. These may have numbers in another order than their times.
    async fn numbers_of_time(&mut self, since: Option<i64>, until: Option<i64>) -> Result<String, DbError> {
        let mut condition = String::new();
        if let Some(since) = since {
            let sql = "SELECT seq FROM svc_events WHERE occurred_at >= $1 ORDER BY occurred_at LIMIT 1";
            let first = self.fetch(sql, vec![since.into()]).await?.first().map_or(Ok(i64::MAX), |row| row.integer(0))?;
            condition.push_str(&format!(" AND d.event_seq >= {first}"));
        }
        if let Some(until) = until {
            let last = self.last_event_before(until).await?;
            condition.push_str(&format!(" AND d.event_seq <= {last}"));
        }
        Ok(condition)
    }
}

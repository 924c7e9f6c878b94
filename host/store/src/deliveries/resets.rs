//! Makes many dead deliveries due again, one window of the ledger at a time.

use blockbase_query::{Dialect, Param, Statement};

use super::ledger::{LedgerFilter, VisibleEvents};
use crate::connection::Connection;
use crate::dialect_sql::{among, database_now};
use crate::error::DbError;

/// The entries that one window looked at, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadWindow {
    /// The entries that match the filter.
    pub found: Vec<i64>,
    /// The last entry of the window. `None` if there are no more.
    pub last: Option<i64>,
}

impl Connection {
    /// The groups that have dead deliveries. The index is read with one step for each group.
    pub async fn groups_with_dead(&mut self) -> Result<Vec<String>, DbError> {
        let table = match self.dialect() {
            Dialect::Sqlite => "svc_deliveries INDEXED BY svc_deliveries_dead",
            Dialect::Postgres => "svc_deliveries",
        };
        let sql = format!(
            "WITH RECURSIVE found (consumer) AS (\
               SELECT min(consumer) FROM {table} WHERE status = 'failed' AND dead \
               UNION ALL \
               SELECT (SELECT min(consumer) FROM {table} WHERE status = 'failed' AND dead AND consumer > found.consumer) \
               FROM found WHERE found.consumer IS NOT NULL) \
             SELECT consumer FROM found WHERE consumer IS NOT NULL"
        );
        self.fetch_rows(Statement { sql: sql.into(), params: Vec::new() }).await?.iter().map(|row| row.text(0)).collect()
    }

    /// The next `limit` dead deliveries of a group after the event number `after`. The window limits the work even if few
    /// deliveries match the filter and have `visible` events. `None` if every event is visible.
    pub async fn dead_window(
        &mut self,
        filter: &LedgerFilter,
        visible: Option<&VisibleEvents>,
        consumer: &str,
        after: i64,
        limit: i64,
    ) -> Result<DeadWindow, DbError> {
        let dialect = self.dialect();
        let mut params: Vec<Param> = vec![consumer.to_owned().into(), after.into(), limit.into()];
        let of_event = filter.of_event(visible, dialect, &mut params);
        let (table, number) = match dialect {
            Dialect::Sqlite => ("svc_deliveries INDEXED BY svc_deliveries_dead", "event_seq"),
            Dialect::Postgres => ("svc_deliveries", "event_seq + 0"),
        };
        let found = if of_event.is_empty() { "TRUE".to_owned() } else { of_event.join(" AND ") };
        let sql = format!(
            "SELECT e.seq, coalesce({found}, FALSE) FROM (SELECT event_seq FROM {table} \
             WHERE consumer = $1 AND status = 'failed' AND dead AND {number} > $2 ORDER BY {number} LIMIT $3) AS d \
             JOIN svc_events e ON e.seq = d.event_seq ORDER BY e.seq"
        );
        let mut window = DeadWindow::default();
        for row in self.fetch_rows(Statement { sql: self.placeholders(sql), params }).await? {
            let seq = row.integer(0)?;
            window.last = Some(seq);
            if row.boolean(1)? {
                window.found.push(seq);
            }
        }
        Ok(window)
    }

    /// Makes the deliveries that are still dead due at once, with all their attempts. Returns their number.
    pub async fn reset_dead(&mut self, consumer: &str, seqs: Vec<i64>) -> Result<u64, DbError> {
        let dialect = self.dialect();
        let sql = format!(
            "UPDATE svc_deliveries SET status = 'pending', dead = FALSE, attempts = 0, claims = 0, error = NULL, \
             next_attempt_at = {}, lease_token = NULL, lease_until = NULL \
             WHERE consumer = $1 AND {} AND status = 'failed' AND dead",
            database_now(dialect),
            among(dialect, "event_seq", 2)
        );
        let params = vec![consumer.to_owned().into(), Param::IntegerList(seqs)];
        let reset = self.execute(Statement { sql: self.placeholders(sql), params }).await?;
        if reset > 0 {
            self.effects.consumers.insert(consumer.to_owned());
        }
        Ok(reset)
    }
}

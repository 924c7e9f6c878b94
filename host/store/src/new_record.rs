//! The insert of a record, with its event and its place in the stored count of its object.
//!
//! On Postgres, all of them are one statement, because each statement is a round trip. The event and the count depend on the row,
//! and the deliveries on the event, so Postgres writes the row first. The event must not get its number before the transaction has
//! written something. Otherwise the transaction might be younger than the feed believes.

use std::sync::Arc;

use blockbase_query::ddl::VERSION_COLUMN;
use blockbase_query::{Param, Statement};
use blockbase_schema::Column;

use crate::connection::{Connection, Inner};
use crate::error::DbError;
use crate::events::{EVENT_COLUMNS, NewDelivery, NewEvent, insert_deliveries, packed_params};
use crate::record::Record;

/// What a new record needs besides its row.
#[derive(Debug)]
pub struct NewRecord {
    pub object_id: i64,
    /// The record's text in the search index of SQLite.
    pub document: Option<String>,
    /// `None` if events are off.
    pub event: Option<NewEvent>,
}

impl Connection {
    /// Runs the insert of one record, and writes what belongs to it.
    ///
    /// # Errors
    /// The errors of the insert, then those of [`Connection::emit`].
    pub async fn insert_record(&mut self, insert: Statement, new: NewRecord) -> Result<(), DbError> {
        if !self.joins(&new) {
            self.execute(insert).await?;
            return self.complete(new).await;
        }
        let insert = Statement { sql: format!("{} RETURNING {VERSION_COLUMN}", insert.sql).into(), params: insert.params };
        let object_id = new.object_id;
        let (joined, is_counted) = self.joined(insert, new).await?;
        self.execute(joined).await?;
        if !is_counted {
            self.count_rows(object_id, 1);
        }
        Ok(())
    }

    /// Runs the upsert of a record that is expected to be new, and writes what belongs to it. `columns` are the columns that the
    /// statement returns. If it changed an existing record after all, the caller has to undo the transaction.
    ///
    /// # Errors
    /// The errors of [`Connection::insert_record`].
    pub async fn upsert_new_record(
        &mut self,
        upsert: Statement,
        columns: &[Column],
        new: NewRecord,
    ) -> Result<Option<Record>, DbError> {
        if !self.joins(&new) {
            let record = self.fetch_record(upsert, columns).await?;
            if record.is_some() {
                self.complete(new).await?;
            }
            return Ok(record);
        }
        let object_id = new.object_id;
        let (joined, is_counted) = self.joined(upsert, new).await?;
        let record = self.fetch_record(joined, columns).await?;
        if !is_counted && record.is_some() {
            self.count_rows(object_id, 1);
        }
        Ok(record)
    }

    /// Whether one statement writes everything. If the events of the transaction are too large, the insert runs first, so that
    /// its own errors come first.
    fn joins(&self, new: &NewRecord) -> bool {
        matches!(self.inner, Inner::Postgres(_)) && self.has_room_for_events(new.event.as_slice())
    }

    /// Writes what belongs to the record that was just inserted.
    async fn complete(&mut self, new: NewRecord) -> Result<(), DbError> {
        self.index_new_row(new.object_id, new.document);
        self.count_rows(new.object_id, 1);
        match new.event {
            Some(event) => self.emit(event).await,
            None => Ok(()),
        }
    }

    /// The statement `row`, which inserts a record and returns it, together with what belongs to the record. Also returns whether
    /// the statement counts the record. Only the first one of a transaction does. The commit counts the further ones, so that a
    /// transaction adds two rows at most to the counts of an object.
    async fn joined(&mut self, row: Statement, new: NewRecord) -> Result<(Statement, bool), DbError> {
        let Statement { sql: row, mut params } = row;
        let mut sql = format!("WITH svc_row AS ({row})");
        let is_counted = !std::mem::replace(&mut self.effects.has_counted, true);
        if is_counted {
            let id = new.object_id;
            sql.push_str(&format!(", svc_count AS (INSERT INTO svc_counts (object_id, rows) SELECT {id}, 1 FROM svc_row)"));
        }
        if let Some(event) = new.event {
            self.note_events(std::slice::from_ref(&event))?;
            let deliveries = Arc::clone(&event.deliveries);
            let first = params.len() + 1;
            params.extend(packed_params(event).await?);
            sql.push_str(&event_sql(first));
            if !deliveries.is_empty() {
                sql.push_str(&deliveries_sql(params.len() + 1));
                params.extend(delivery_params(&deliveries));
            }
        }
        sql.push_str(" SELECT * FROM svc_row");
        Ok((Statement { sql: sql.into(), params }, is_counted))
    }
}

/// The insert of the event. `first` is the number of its first parameter.
fn event_sql(first: usize) -> String {
    let types = ["text", "text", "text", "text", "text", "text", "bigint", "bigint", "bigint", "bytea"];
    let values: Vec<String> = types.iter().zip(first..).map(|(ty, number)| format!("${number}::{ty}")).collect();
    format!(
        ", svc_event AS (INSERT INTO svc_events ({EVENT_COLUMNS}) SELECT {} FROM svc_row RETURNING seq, record_id, occurred_at)",
        values.join(", ")
    )
}

/// The insert of the event's deliveries. `lists` is the number of the first of their parameters.
fn deliveries_sql(lists: usize) -> String {
    const INSERT: &str = insert_deliveries!("e.seq", "e.record_id", "e.occurred_at", "d.consumer", "d.handler", "d.dead");
    format!(
        ", svc_delivery AS (\
           {INSERT} FROM svc_event AS e \
           CROSS JOIN unnest(${lists}::text[], ${}::text[], ${}::text[]) AS d (consumer, handler, dead))",
        lists + 1,
        lists + 2
    )
}

fn delivery_params(deliveries: &[NewDelivery]) -> [Param; 3] {
    let list = |value: fn(&NewDelivery) -> Option<String>| Param::OptionalTextList(deliveries.iter().map(value).collect());
    [
        list(|delivery| Some(delivery.consumer.clone())),
        list(|delivery| Some(delivery.handler.clone())),
        list(|delivery| delivery.dead.map(str::to_owned)),
    ]
}

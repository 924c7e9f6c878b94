//! The outbox's size on disk. Each event is counted once, and settled events are deleted to reduce the size.

use blockbase_query::Dialect;

use crate::connection::Connection;
use crate::error::DbError;
use crate::packing::stored_bytes;
use crate::row::Row;

/// The counted size of the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxSize {
    /// The number of counted events.
    pub events: i64,
    /// The number of bytes of the counted events.
    pub bytes: i64,
    /// Whether there are events that are not counted yet.
    pub has_more: bool,
}

/// The number and the bytes of the events up to the number `to`.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    to: i64,
    events: i64,
    bytes: i64,
}

macro_rules! settled {
    () => {
        "NOT EXISTS (SELECT 1 FROM svc_deliveries d WHERE d.event_seq = svc_events.seq AND d.status <> 'delivered' AND NOT d.dead)"
    };
}

impl Connection {
    /// The stored size, and whether events were added since then. It costs one short statement.
    pub async fn outbox_size(&mut self) -> Result<OutboxSize, DbError> {
        let sql = "SELECT events, bytes, coalesce((SELECT max(seq) FROM svc_events), 0) > counted_to FROM svc_outbox";
        let rows = self.fetch(sql, Vec::new()).await?;
        let row = rows.first().ok_or_else(|| DbError::Other("the outbox has no size".into()))?;
        Ok(OutboxSize { events: row.integer(0)?, bytes: row.integer(1)?, has_more: row.boolean(2)? })
    }

    /// Counts up to `events_max` further events. `None` if another instance is counting.
    pub async fn count_outbox(&mut self, events_max: i64) -> Result<Option<OutboxSize>, DbError> {
        let Some(counted) = self.hold_outbox(true).await? else { return Ok(None) };
        let sql = concat!(
            "SELECT count(*), coalesce(max(seq), 0), CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM (SELECT seq, ",
            stored_bytes!(),
            " AS bytes FROM svc_events WHERE seq > $1 ORDER BY seq LIMIT $2) AS page"
        );
        let rows = self.fetch(sql, vec![counted.to.into(), events_max.into()]).await?;
        let row = rows.first().ok_or_else(|| DbError::Other("a sum gave no row".into()))?;
        let (more, last) = (row.integer(0)?, row.integer(1)?);
        let (events, bytes) = (counted.events + more, counted.bytes + row.integer(2)?);
        if more > 0 {
            self.store_outbox(Counted { to: last, events, bytes }).await?;
        }
        Ok(Some(OutboxSize { events, bytes, has_more: more == events_max }))
    }

    /// Starts the count again. The new count includes events that committed late, and excludes events that were deleted by hand.
    pub async fn forget_outbox_size(&mut self) -> Result<(), DbError> {
        self.hold_outbox(false).await?;
        self.store_outbox(Counted::default()).await
    }

    /// The greatest number of an event that [`Connection::purge_events`] has deleted, or 0 before the first deletion. Events with
    /// smaller numbers may be missing although older ones are still there.
    pub async fn purged_to(&mut self) -> Result<i64, DbError> {
        let rows = self.fetch("SELECT purged_to FROM svc_outbox", Vec::new()).await?;
        rows.first().map_or(Ok(0), |row| row.integer(0))
    }

    /// Deletes the events in `(after, up_to]` that happened before `before` and that no consumer group still needs. Returns their
    /// number. Streams cannot resume before the last deleted event.
    pub async fn purge_events(&mut self, after: i64, up_to: i64, before: i64) -> Result<u64, DbError> {
        let purged = self.delete_settled(after, up_to, before).await?;
        if let Some(last) = purged.iter().max() {
            self.run("UPDATE svc_outbox SET purged_to = $1 WHERE purged_to < $1", vec![(*last).into()]).await?;
        }
        Ok(purged.len() as u64)
    }

    /// Deletes the same events, and returns their numbers.
    async fn delete_settled(&mut self, after: i64, up_to: i64, before: i64) -> Result<Vec<i64>, DbError> {
        let counted = self.hold_outbox(false).await?.unwrap_or_default();
        const SIZE: &str = concat!(
            "SELECT count(*), CAST(coalesce(sum(",
            stored_bytes!(),
            "), 0) AS BIGINT) FROM svc_events WHERE seq > $1 AND seq <= $2 AND seq <= $4 AND occurred_at < $3 AND ",
            settled!()
        );
        let rows = self.fetch(SIZE, vec![after.into(), up_to.into(), before.into(), counted.to.into()]).await?;
        let row = rows.first().ok_or_else(|| DbError::Other("a sum gave no row".into()))?;
        let (gone, freed) = (row.integer(0)?, row.integer(1)?);
        const PURGE: &str = concat!(
            "DELETE FROM svc_events WHERE seq > $1 AND seq <= $2 AND occurred_at < $3 AND ",
            settled!(),
            " RETURNING seq"
        );
        let rows = self.fetch(PURGE, vec![after.into(), up_to.into(), before.into()]).await?;
        let deleted = rows.iter().map(|row| row.integer(0)).collect::<Result<Vec<i64>, DbError>>()?;
        if !deleted.is_empty() {
            self.forget_attempts_of_purged(after, up_to).await?;
        }
        if gone > 0 {
            let (events, bytes) = ((counted.events - gone).max(0), (counted.bytes - freed).max(0));
            self.store_outbox(Counted { events, bytes, ..counted }).await?;
        }
        Ok(deleted)
    }

    /// Deletes those of the events with these numbers that no consumer group still needs. Returns how many it deleted, and how
    /// many are left. Events that others deleted meanwhile are in neither number.
    pub async fn delete_settled_events(&mut self, seqs: &[i64]) -> Result<(u64, u64), DbError> {
        let (mut deleted, mut left) = (0, 0);
        for seq in seqs {
            // The other events stay, so streams can still resume before this one.
            let gone = self.delete_settled(seq - 1, *seq, i64::MAX).await?.len() as u64;
            deleted += gone;
            if gone == 0 && !self.fetch("SELECT seq FROM svc_events WHERE seq = $1", vec![(*seq).into()]).await?.is_empty() {
                left += 1;
            }
        }
        Ok((deleted, left))
    }

    /// The number of the last event in `(after, up_to]` up to which the settled events have to be deleted to free `bytes`.
    pub async fn purge_goal(&mut self, after: i64, up_to: i64, before: i64, bytes: i64) -> Result<i64, DbError> {
        const SIZES: &str = concat!(
            "SELECT seq, CAST(",
            stored_bytes!(),
            " AS BIGINT) FROM svc_events WHERE seq > $1 AND seq <= $2 AND occurred_at < $3 AND ",
            settled!(),
            " ORDER BY seq"
        );
        let mut freed = 0;
        for row in self.fetch(SIZES, vec![after.into(), up_to.into(), before.into()]).await? {
            freed += row.integer(1)?;
            if freed >= bytes {
                return row.integer(0);
            }
        }
        Ok(up_to)
    }

    /// The stored count, locked until the transaction ends. `None` if another transaction has the lock and `skips` is set.
    async fn hold_outbox(&mut self, skips: bool) -> Result<Option<Counted>, DbError> {
        let sql = match (self.dialect(), skips) {
            (Dialect::Sqlite, _) => "SELECT counted_to, events, bytes FROM svc_outbox",
            (Dialect::Postgres, true) => "SELECT counted_to, events, bytes FROM svc_outbox FOR UPDATE SKIP LOCKED",
            (Dialect::Postgres, false) => "SELECT counted_to, events, bytes FROM svc_outbox FOR UPDATE",
        };
        let rows = self.fetch(sql, Vec::new()).await?;
        let counted = |row: &Row| Ok(Counted { to: row.integer(0)?, events: row.integer(1)?, bytes: row.integer(2)? });
        rows.first().map(counted).transpose()
    }

    async fn store_outbox(&mut self, counted: Counted) -> Result<(), DbError> {
        let sql = "UPDATE svc_outbox SET counted_to = $1, events = $2, bytes = $3";
        self.run(sql, vec![counted.to.into(), counted.events.into(), counted.bytes.into()]).await.map(|_| ())
    }
}

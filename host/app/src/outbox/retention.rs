//! What the outbox keeps: settled events up to an age, and up to a size.

use std::time::Instant;

use blockbase_schema::Result;
use blockbase_store::{OutboxSize, ReadCost, Service};

use crate::App;

/// Events looked at in one transaction.
const EVENTS_AT_ONCE: i64 = 500;
/// Events counted in one transaction: their sizes alone are read.
const COUNTED_AT_ONCE: i64 = 5000;
const DAY_MS: i64 = 24 * 3_600_000;
/// Events younger than this are kept whatever the size, so that feeds of other instances have read them.
const YOUNG_MS: i64 = 10_000;
/// What the size is brought down to, in percent of the bound, so that not each further event leads to another look.
const BROUGHT_DOWN_TO: i64 = 90;

impl App {
    /// Deletes settled events that are too old, counts the rest again, and deletes the oldest ones beyond the size. Returns how
    /// many it deleted.
    pub(crate) async fn keep_outbox_bounded(&self) -> Result<u64> {
        let days = self.settings.events_retention_days;
        let mut deleted = 0;
        if days > 0 {
            deleted += self.purge_before(self.clock.now() - i64::from(days) * DAY_MS, None).await?;
        }
        self.store
            .write_in_reserve(Service, |connection| Box::pin(async move { Ok(connection.forget_outbox_size().await?) }))
            .await?;
        Ok(deleted + self.bound_outbox().await?)
    }

    /// Continues the count of the outbox, and deletes the oldest settled events if it is larger than allowed. Returns how many it
    /// deleted. If nothing was written since the last time, it costs one short statement.
    pub async fn bound_outbox(&self) -> Result<u64> {
        let most = self.settings.events_bytes_max;
        let mut size = self
            .store
            .read_as_service(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.outbox_size().await?) }))
            .await?;
        while size.has_more {
            let began = Instant::now();
            let counted = self
                .store
                .write_in_reserve(Service, |connection| {
                    Box::pin(async move { Ok(connection.count_outbox(COUNTED_AT_ONCE).await?) })
                })
                .await?;
            // Another instance is at it, and deletes what is too much.
            let Some(counted) = counted else { return Ok(0) };
            size = counted;
            rest(began).await;
        }
        let OutboxSize { bytes, .. } = size;
        if most == 0 || bytes <= most {
            return Ok(0);
        }
        let excess = bytes - most / 100 * BROUGHT_DOWN_TO;
        let deleted = self.purge_before(self.clock.now() - YOUNG_MS, Some(excess)).await?;
        match deleted {
            0 => tracing::debug!(outbox.bytes = bytes, "the outbox is beyond SVC_EVENTS_MAX_BYTES, and nothing in it is settled"),
            _ => tracing::info!(
                outbox.bytes = bytes,
                outbox.deleted = deleted,
                "the oldest settled events were deleted: the outbox was beyond SVC_EVENTS_MAX_BYTES"
            ),
        }
        Ok(deleted)
    }

    /// Deletes settled events that happened before an instant, the oldest first, until so many bytes are free: how many.
    async fn purge_before(&self, before: i64, mut bytes: Option<i64>) -> Result<u64> {
        let (mut after, mut deleted) = (0, 0);
        loop {
            let page = self
                .store
                .read_as_service(ReadCost::Scan, move |connection| {
                    Box::pin(async move { Ok(connection.events_page(after, EVENTS_AT_ONCE).await?) })
                })
                .await?;
            // Events are numbered about in the order in which they happened.
            let Some((up_to, _)) = page.filter(|(_, first_at)| *first_at < before) else { return Ok(deleted) };
            let began = Instant::now();
            let (purged, freed) = self
                .store
                .write_in_reserve(Service, move |connection| {
                    Box::pin(async move {
                        let Some(bytes) = bytes else { return Ok((connection.purge_events(after, up_to, before).await?, 0)) };
                        let known = connection.outbox_size().await?.bytes;
                        let goal = connection.purge_goal(after, up_to, before, bytes).await?;
                        let purged = connection.purge_events(after, goal, before).await?;
                        Ok((purged, known - connection.outbox_size().await?.bytes))
                    })
                })
                .await?;
            deleted += purged;
            if let Some(bytes) = &mut bytes {
                *bytes -= freed;
                if *bytes <= 0 {
                    return Ok(deleted);
                }
            }
            after = up_to;
            rest(began).await;
        }
    }
}

/// Others write as well: it rests as long as it works.
async fn rest(began: Instant) {
    tokio::time::sleep(began.elapsed()).await;
}

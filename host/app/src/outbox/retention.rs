//! Limits the settled events in the outbox by age and by size.

use std::time::Instant;

use blockbase_schema::Result;
use blockbase_schema::time::DAY_MS;
use blockbase_store::{OutboxSize, ReadCost, Service};

use crate::App;

/// The number of events that one transaction looks at.
const EVENTS_AT_ONCE: i64 = 500;
/// The number of events that one transaction counts. It reads only their sizes.
const COUNTED_AT_ONCE: i64 = 5000;
/// Events younger than this are kept even if the outbox is too large, so that the feeds of other instances can read them.
const YOUNG_MS: i64 = 10_000;
/// The size to which a deletion brings the outbox, in percent of the limit. It is below the limit, so that not every further
/// event needs another deletion.
const BROUGHT_DOWN_TO: i64 = 90;

impl App {
    /// Deletes settled events that are too old, and counts the rest again. If the outbox is still too large, it deletes the oldest ones.
    /// Returns the number of deleted events.
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

    /// Continues the count of the outbox, and deletes the oldest settled events if it is too large. Returns the number of deleted
    /// events. If nothing was written since the last time, this costs one short statement.
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
            // Another instance is counting, and it deletes the excess.
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

    /// Deletes settled events that happened before an instant, the oldest first. If `bytes` is given, it stops when it has freed
    /// this many bytes. Returns their number.
    async fn purge_before(&self, before: i64, mut bytes: Option<i64>) -> Result<u64> {
        let (mut after, mut deleted) = (0, 0);
        loop {
            let page = self
                .store
                .read_as_service(ReadCost::Scan, move |connection| {
                    Box::pin(async move { Ok(connection.events_page(after, EVENTS_AT_ONCE).await?) })
                })
                .await?;
            // The order of events' numbers is roughly the order in which they happened.
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

/// Pauses for as long as the work took, so that other callers can write.
async fn rest(began: Instant) {
    tokio::time::sleep(began.elapsed()).await;
}

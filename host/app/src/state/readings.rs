//! The data that the status reads from the database. It is kept in memory, so that frequent requests are cheap.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use blockbase_store::{InstanceRow, OutboxSize, Room, Suspension};
use tokio::sync::Mutex;

/// The last reading of the database.
#[derive(Default)]
pub(crate) struct Readings(pub(crate) Mutex<CachedReadings>);

#[derive(Default)]
pub(crate) struct CachedReadings {
    pub(crate) reading: Option<(Instant, Arc<Reading>)>,
    pub(crate) room: Option<(Instant, Room)>,
}

/// One reading of the database.
pub(crate) struct Reading {
    pub(crate) engine_version: String,
    pub(crate) instances: Vec<InstanceRow>,
    pub(crate) outbox: OutboxSize,
    pub(crate) deliveries: Deliveries,
    /// Suspended blocks, by name. The background work updates it.
    pub(crate) suspended: HashMap<String, Suspension>,
    pub(crate) room: Room,
}

pub(crate) struct Deliveries {
    pub(crate) pending: i64,
    pub(crate) failed: i64,
    pub(crate) dead: i64,
    /// Milliseconds since the epoch.
    pub(crate) oldest_pending_at: Option<i64>,
}

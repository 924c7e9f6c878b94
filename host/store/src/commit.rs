//! The report of a commit about the outbox.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::committed_event::CommittedEvent;

/// What a commit reports about its events in the outbox.
#[derive(Debug, Default)]
pub struct Commit {
    /// Its events in commit order. Only SQLite has them, because there this process is the only writer. On Postgres, the feed
    /// reads the outbox instead.
    pub events: Vec<Arc<CommittedEvent>>,
    /// The topics of its events.
    pub topics: Vec<String>,
    /// The consumer groups that have new deliveries.
    pub consumers: BTreeSet<String>,
}

/// Called after each commit that wrote to the outbox.
pub type OnCommit = Arc<dyn Fn(Commit) + Send + Sync>;

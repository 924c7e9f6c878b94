//! The live feed: each committed event once to every reader, in commit order.

use std::sync::Arc;

use blockbase_query::Action;
use blockbase_store::{CommittedEvent, SubscriptionRow};
use tokio::sync::broadcast;

use crate::caller::Caller;
use crate::topic::TopicPattern;

/// Events that a reader may be behind before it is cut off.
const BEHIND_MAX: usize = 1024;

/// Hands committed events to all readers.
#[derive(Clone)]
pub struct Feed {
    sender: broadcast::Sender<Arc<CommittedEvent>>,
}

impl Default for Feed {
    fn default() -> Self {
        Feed { sender: broadcast::channel(BEHIND_MAX).0 }
    }
}

impl Feed {
    pub fn publish(&self, events: Vec<Arc<CommittedEvent>>) {
        for event in events {
            // Nobody may be listening.
            let _ = self.sender.send(event);
        }
    }

    /// Reads from now on what matches one of `patterns` and may be seen by the caller of each call.
    pub fn read(&self, patterns: Vec<TopicPattern>) -> FeedReader {
        FeedReader { receiver: self.sender.subscribe(), patterns }
    }
}

/// One reader of the feed.
pub struct FeedReader {
    receiver: broadcast::Receiver<Arc<CommittedEvent>>,
    patterns: Vec<TopicPattern>,
}

impl FeedReader {
    /// The next event that `caller` may see; `None` when the reader fell too far behind, or the service ends.
    pub async fn next(&mut self, caller: &Caller) -> Option<Arc<CommittedEvent>> {
        loop {
            let event = self.receiver.recv().await.ok()?;
            if self.patterns.iter().any(|pattern| pattern.matches(&event.topic)) && may_see(caller, &event) {
                return Some(event);
            }
        }
    }
}

/// `data.<object>.…` needs read on the object, by the row's owner where the grant is for own rows; all else needs read on `events`.
fn may_see(caller: &Caller, event: &CommittedEvent) -> bool {
    match &event.object {
        Some(object) => caller.access(object, Action::Read).is_ok_and(|access| access.reaches(event.owner.as_deref())),
        None => caller.holds("events", Action::Read),
    }
}

/// The subscriptions at one version of the blocks.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    pub(crate) version: i64,
    list: Vec<Subscription>,
}

impl Subscriptions {
    pub(crate) fn new(version: i64, rows: Vec<SubscriptionRow>) -> Subscriptions {
        Subscriptions { version, list: rows.into_iter().filter_map(Subscription::of_row).collect() }
    }

    /// The consumer groups and handlers that get an event of `topic`.
    pub(crate) fn deliveries(&self, topic: &str) -> Vec<(String, String)> {
        self.list
            .iter()
            .filter(|subscription| subscription.pattern.matches(topic))
            .map(|subscription| (subscription.consumer.clone(), subscription.handler.clone()))
            .collect()
    }
}

/// A stored subscription, ready to be matched against new events.
#[derive(Debug)]
struct Subscription {
    pattern: TopicPattern,
    consumer: String,
    handler: String,
}

impl Subscription {
    /// A row whose pattern cannot be read matches nothing; it was checked when it was stored.
    fn of_row(row: SubscriptionRow) -> Option<Subscription> {
        let pattern = TopicPattern::parse(&row.topic).ok()?;
        Some(Subscription { pattern, consumer: row.consumer, handler: row.handler })
    }
}

//! The queue between commits and the readers of the live feed.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use blockbase_store::CommittedEvent;
use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc, watch};

use crate::state::event_decisions::EventDecisions;

/// The maximum number of events that a reader may be behind. A reader that is further behind is disconnected.
pub(crate) const BEHIND_MAX: usize = 1024;
/// The maximum number of bytes of events that a reader may be behind.
const BEHIND_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The maximum number of events of one commit that are published at once. Before further events, the feed pauses for the time of
/// the next constant. So a commit with many events does not disconnect readers that keep up.
const BURST: usize = 64;
const BURST_PAUSE: Duration = Duration::from_millis(1);
/// The maximum number of bytes of events that are published at once. Large events take longer to send, so their pause is longer.
const BURST_BYTES: usize = 4 * 1024 * 1024;
const BURST_BYTES_PAUSE: Duration = Duration::from_millis(20);
/// If more commits than this wait, the feed makes no pauses.
const WAITING_MAX: usize = 1000;
/// The maximum number of commits that wait in the queue. If the queue is full, the publisher waits. On SQLite, the publisher is
/// the writer. It waits only briefly, because the feed then makes no pauses, and publishes events faster than callers write them.
const QUEUE_MAX: usize = 2 * WAITING_MAX;
/// The maximum number of bytes of events that wait in the queue. If there are more, the publisher waits too. In this case the
/// feed still makes its pauses, so that a writer of large records does not disconnect readers. The events of 32 MiB take 160
/// milliseconds.
pub(crate) const QUEUE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The events of one commit, with a permit for their bytes in the queue.
struct Queued {
    events: Vec<Arc<CommittedEvent>>,
    room: OwnedSemaphorePermit,
}

/// Publishes committed events to all readers.
#[derive(Clone)]
pub struct Feed {
    queue: mpsc::Sender<Queued>,
    /// A permit for each byte that the queue may contain.
    room: Arc<Semaphore>,
    /// The runtime, for threads outside of it that have to wait for room.
    runtime: Handle,
    sender: broadcast::Sender<Weak<CommittedEvent>>,
    position: Arc<AtomicI64>,
    /// Whether the feed has begun, so that its position is known.
    started: watch::Sender<bool>,
    decisions: Arc<EventDecisions>,
}

/// Takes committed events from the feed's queue and publishes them to the readers. There is only one pump, which runs in the
/// background.
pub struct FeedPump {
    queue: mpsc::Receiver<Queued>,
    room: Arc<Semaphore>,
    sender: broadcast::Sender<Weak<CommittedEvent>>,
    position: Arc<AtomicI64>,
    /// The newest events, which are kept for readers that are behind.
    kept: VecDeque<Arc<CommittedEvent>>,
    kept_bytes: usize,
}

impl Feed {
    /// This must be called within the runtime.
    pub fn new() -> (Feed, FeedPump) {
        let (queue, taken) = mpsc::channel(QUEUE_MAX);
        let room = Arc::new(Semaphore::new(QUEUE_BYTES_MAX));
        let sender = broadcast::channel(BEHIND_MAX).0;
        let position = Arc::new(AtomicI64::new(0));
        let feed = Feed {
            queue,
            room: Arc::clone(&room),
            runtime: Handle::current(),
            sender: sender.clone(),
            position: Arc::clone(&position),
            started: watch::Sender::new(false),
            decisions: Arc::default(),
        };
        (feed, FeedPump { queue: taken, room, sender, position, kept: VecDeque::new(), kept_bytes: 0 })
    }

    /// Publishes events in the order of their commits. It runs on the thread of SQLite's writer, which may wait.
    pub fn publish_blocking(&self, events: Vec<Arc<CommittedEvent>>) {
        let mut published = pin!(self.publish(events));
        // Usually there is room, and then the runtime is not needed.
        if published.as_mut().now_or_never().is_none() {
            self.runtime.block_on(published);
        }
    }

    /// Does the same as [`Feed::publish_blocking`], on a task of the runtime.
    pub async fn publish(&self, events: Vec<Arc<CommittedEvent>>) {
        let bytes: usize = events.iter().map(|event| event.bytes()).sum();
        // A commit with more bytes than the queue allows takes all permits.
        let permits = u32::try_from(bytes.min(QUEUE_BYTES_MAX)).unwrap_or(u32::MAX);
        // This fails when the service ends, because events are then no longer published.
        let Ok(room) = Arc::clone(&self.room).acquire_many_owned(permits).await else { return };
        let _ = self.queue.send(Queued { events, room }).await;
    }

    /// Declares that every event up to `seq` happened before the feed began.
    pub fn start_at(&self, seq: i64) {
        self.position.fetch_max(seq, Ordering::SeqCst);
        self.started.send_replace(true);
    }

    /// Whether the feed has begun. Before that, it publishes nothing, and its first number is not known.
    pub(crate) fn has_started(&self) -> bool {
        *self.started.borrow()
    }

    /// Waits until the feed has begun.
    pub(crate) async fn started(&self) {
        // The sender belongs to the feed itself, so it still exists.
        let _ = self.started.subscribe().wait_for(|started| *started).await;
    }

    /// The number of the last event that was published, or is being published.
    pub fn position(&self) -> i64 {
        self.position.load(Ordering::SeqCst)
    }

    /// The decisions about the newest events, which streams share.
    pub(crate) fn decisions(&self) -> &EventDecisions {
        &self.decisions
    }

    /// A receiver of the events that are published from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Weak<CommittedEvent>> {
        self.sender.subscribe()
    }
}

impl FeedPump {
    /// Runs as long as the feed exists.
    pub async fn run(mut self) {
        while let Some(Queued { events, room }) = self.queue.recv().await {
            // The bytes count as removed from the queue here.
            drop(room);
            let (mut count, mut bytes) = (0, 0);
            for event in events {
                if (count >= BURST || bytes >= BURST_BYTES) && self.may_pause() {
                    tokio::time::sleep(if bytes >= BURST_BYTES { BURST_BYTES_PAUSE } else { BURST_PAUSE }).await;
                    (count, bytes) = (0, 0);
                }
                count += 1;
                bytes += event.bytes();
                self.hand_out(event);
            }
        }
    }

    /// Whether only few commits wait, so that the feed may pause for its readers.
    fn may_pause(&self) -> bool {
        self.queue.len() < WAITING_MAX
    }

    fn hand_out(&mut self, event: Arc<CommittedEvent>) {
        // The position is raised first, so that a reader that subscribes meanwhile looks for this event in the outbox.
        self.position.fetch_max(event.seq, Ordering::SeqCst);
        // If there are no readers, no event is kept.
        if self.sender.send(Arc::downgrade(&event)).is_err() {
            self.kept.clear();
            self.kept_bytes = 0;
            return;
        }
        self.kept_bytes += event.bytes();
        self.kept.push_back(event);
        // The newest event is always kept, so that a reader that keeps up gets it even if it is large.
        while self.kept.len() > BEHIND_MAX || (self.kept_bytes > BEHIND_BYTES_MAX && self.kept.len() > 1) {
            let oldest = self.kept.pop_front();
            self.kept_bytes -= oldest.map_or(0, |oldest| oldest.bytes());
        }
    }
}

impl Drop for FeedPump {
    fn drop(&mut self) {
        // Without this, tasks that wait for room would wait forever.
        self.room.close();
    }
}

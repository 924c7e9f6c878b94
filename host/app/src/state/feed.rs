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

/// Events that a reader may be behind before it is disconnected.
pub(crate) const BEHIND_MAX: usize = 1024;
/// Bytes of events that a reader may be behind.
const BEHIND_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Events of one commit that are handed out at once, and the pause before its next ones. So readers that keep up are not
/// disconnected by a commit of many events.
const BURST: usize = 64;
const BURST_PAUSE: Duration = Duration::from_millis(1);
/// The same limit in bytes. Large events take longer to send, so its pause is longer.
const BURST_BYTES: usize = 4 * 1024 * 1024;
const BURST_BYTES_PAUSE: Duration = Duration::from_millis(20);
/// If more commits wait to be handed out, the feed makes no pauses.
const WAITING_MAX: usize = 1000;
/// Most commits that may wait. If there are more, the publisher waits, which is the writer of SQLite. It waits only briefly,
/// because the feed then makes no pauses and hands out events faster than anybody writes them.
const QUEUE_MAX: usize = 2 * WAITING_MAX;
/// Most bytes of events that may wait. If there are more, the publisher waits too. The feed goes on with its pauses, so that one
/// writer of large records disconnects nobody: 32 MiB take 160 milliseconds.
pub(crate) const QUEUE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// What one commit hands over, with its place among the bytes of the queue.
struct Queued {
    events: Vec<Arc<CommittedEvent>>,
    room: OwnedSemaphorePermit,
}

/// Hands committed events to all readers.
#[derive(Clone)]
pub struct Feed {
    queue: mpsc::Sender<Queued>,
    /// A permit for each byte that the queue may hold.
    room: Arc<Semaphore>,
    /// Where a thread outside of the runtime waits.
    runtime: Handle,
    sender: broadcast::Sender<Weak<CommittedEvent>>,
    position: Arc<AtomicI64>,
    /// Whether the position is known.
    started: watch::Sender<bool>,
}

/// Takes committed events out of the feed's queue and hands them to the readers. There is one, in the background.
pub struct FeedPump {
    queue: mpsc::Receiver<Queued>,
    room: Arc<Semaphore>,
    sender: broadcast::Sender<Weak<CommittedEvent>>,
    position: Arc<AtomicI64>,
    /// The newest events, kept for readers that are behind.
    kept: VecDeque<Arc<CommittedEvent>>,
    kept_bytes: usize,
}

impl Feed {
    /// Within the runtime.
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
        };
        (feed, FeedPump { queue: taken, room, sender, position, kept: VecDeque::new(), kept_bytes: 0 })
    }

    /// Takes events in the order of their commits, from a thread that may wait: the writer of SQLite.
    pub fn publish_blocking(&self, events: Vec<Arc<CommittedEvent>>) {
        let mut published = pin!(self.publish(events));
        // Nearly always there is room, and the runtime is not needed.
        if published.as_mut().now_or_never().is_none() {
            self.runtime.block_on(published);
        }
    }

    /// The same from a task.
    pub async fn publish(&self, events: Vec<Arc<CommittedEvent>>) {
        let bytes: usize = events.iter().map(|event| event.bytes()).sum();
        // One commit may have more than the queue may hold. It takes all of the room, and waits for no more than that.
        let permits = u32::try_from(bytes.min(QUEUE_BYTES_MAX)).unwrap_or(u32::MAX);
        // Nobody takes them once the service ends.
        let Ok(room) = Arc::clone(&self.room).acquire_many_owned(permits).await else { return };
        let _ = self.queue.send(Queued { events, room }).await;
    }

    /// Says that everything up to `seq` happened before the feed began.
    pub fn start_at(&self, seq: i64) {
        self.position.fetch_max(seq, Ordering::SeqCst);
        self.started.send_replace(true);
    }

    /// Whether the feed has begun: until then it hands nothing out, and where it will begin is not known.
    pub(crate) fn has_started(&self) -> bool {
        *self.started.borrow()
    }

    /// Waits until the feed has begun.
    pub(crate) async fn started(&self) {
        // The sender is the feed itself, so that it cannot be gone.
        let _ = self.started.subscribe().wait_for(|started| *started).await;
    }

    /// The number of the last event that was handed out, or is about to be.
    pub fn position(&self) -> i64 {
        self.position.load(Ordering::SeqCst)
    }

    /// What is handed out from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Weak<CommittedEvent>> {
        self.sender.subscribe()
    }
}

impl FeedPump {
    /// Runs as long as the feed is there.
    pub async fn run(mut self) {
        while let Some(Queued { events, room }) = self.queue.recv().await {
            // Its bytes leave the queue here.
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

    /// Whether so few commits wait that readers may be given time.
    fn may_pause(&self) -> bool {
        self.queue.len() < WAITING_MAX
    }

    fn hand_out(&mut self, event: Arc<CommittedEvent>) {
        // First, so that a reader which subscribes in between looks for it in the outbox.
        self.position.fetch_max(event.seq, Ordering::SeqCst);
        // Nobody may be listening; then nothing is kept.
        if self.sender.send(Arc::downgrade(&event)).is_err() {
            self.kept.clear();
            self.kept_bytes = 0;
            return;
        }
        self.kept_bytes += event.bytes();
        self.kept.push_back(event);
        // The newest one stays, whatever its size: a reader that keeps up gets it.
        while self.kept.len() > BEHIND_MAX || (self.kept_bytes > BEHIND_BYTES_MAX && self.kept.len() > 1) {
            let oldest = self.kept.pop_front();
            self.kept_bytes -= oldest.map_or(0, |oldest| oldest.bytes());
        }
    }
}

impl Drop for FeedPump {
    fn drop(&mut self) {
        // Tasks that wait for room would wait forever.
        self.room.close();
    }
}

//! The live feed: each committed event once to every reader, in commit order.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use blockbase_query::Action;
use blockbase_schema::Result;
use blockbase_store::{CommittedEvent, FEED_PAGE, ReadCost};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};

use crate::App;
use crate::caller::Caller;
use crate::topic::TopicPattern;

/// Events that a reader may be behind before it is cut off.
const BEHIND_MAX: usize = 1024;
/// Events handed out at once. Before the next ones, readers that are behind have a moment: a commit of any size reaches those that
/// keep up.
const BURST: usize = 256;
/// How far behind a reader may be before the next burst without a moment's wait.
const BEHIND_AT_BURST: usize = BEHIND_MAX / 2;
/// Length of a moment, and how many of them there are at most before a burst.
const MOMENT: Duration = Duration::from_millis(2);
const MOMENTS_MAX: u32 = 50;

/// Hands committed events to all readers.
#[derive(Clone)]
pub struct Feed {
    queue: mpsc::UnboundedSender<Vec<Arc<CommittedEvent>>>,
    sender: broadcast::Sender<Arc<CommittedEvent>>,
    position: Arc<AtomicI64>,
}

/// Takes committed events out of the feed's queue and hands them on. Runs once, in the background.
pub struct FeedPump {
    queue: mpsc::UnboundedReceiver<Vec<Arc<CommittedEvent>>>,
    sender: broadcast::Sender<Arc<CommittedEvent>>,
    position: Arc<AtomicI64>,
}

impl Feed {
    pub fn new() -> (Feed, FeedPump) {
        let (queue, taken) = mpsc::unbounded_channel();
        let sender = broadcast::channel(BEHIND_MAX).0;
        let position = Arc::new(AtomicI64::new(0));
        (Feed { queue, sender: sender.clone(), position: Arc::clone(&position) }, FeedPump { queue: taken, sender, position })
    }

    /// Takes events in the order of their commits.
    pub fn publish(&self, events: Vec<Arc<CommittedEvent>>) {
        // Nobody takes them once the service ends.
        let _ = self.queue.send(events);
    }

    /// Says that everything up to `seq` happened before the feed began.
    pub fn start_at(&self, seq: i64) {
        self.position.fetch_max(seq, Ordering::SeqCst);
    }

    /// The number of the last event that was handed out, or is about to be.
    pub fn position(&self) -> i64 {
        self.position.load(Ordering::SeqCst)
    }

    /// Reads from now on what matches one of `patterns` and may be seen by the caller of each call.
    pub fn read(&self, patterns: Vec<TopicPattern>) -> FeedReader {
        FeedReader { receiver: self.sender.subscribe(), patterns, replay: None, seen: 0 }
    }

    /// The same, and before it what the outbox holds after the event number `seq`.
    pub fn read_after(&self, app: Arc<App>, patterns: Vec<TopicPattern>, seq: i64) -> FeedReader {
        let mut reader = self.read(patterns);
        // What was handed out before it subscribed is in the outbox; what is handed out from here on, it gets.
        reader.replay = Some(Replay { app, page: Vec::new().into_iter(), up_to: self.position() });
        reader.seen = seq;
        reader
    }
}

impl FeedPump {
    /// Runs as long as the feed is there.
    pub async fn run(mut self) {
        while let Some(events) = self.queue.recv().await {
            for burst in events.chunks(BURST) {
                self.wait_for_readers().await;
                for event in burst {
                    // First, so that a reader which subscribes in between looks for it in the outbox.
                    self.position.fetch_max(event.seq, Ordering::SeqCst);
                    // Nobody may be listening.
                    let _ = self.sender.send(Arc::clone(event));
                }
            }
        }
    }

    async fn wait_for_readers(&self) {
        for _ in 0..MOMENTS_MAX {
            if self.sender.len() <= BEHIND_AT_BURST {
                return;
            }
            tokio::time::sleep(MOMENT).await;
        }
    }
}

/// One reader of the feed.
pub struct FeedReader {
    receiver: broadcast::Receiver<Arc<CommittedEvent>>,
    patterns: Vec<TopicPattern>,
    /// What it still has to read of the outbox.
    replay: Option<Replay>,
    /// The number of the last event that it read.
    seen: i64,
}

struct Replay {
    app: Arc<App>,
    page: std::vec::IntoIter<Arc<CommittedEvent>>,
    up_to: i64,
}

impl FeedReader {
    /// The next event that `caller` may see; `None` when the reader fell too far behind, or the service ends.
    ///
    /// Nothing is lost where the future is dropped.
    pub async fn next(&mut self, caller: &Caller) -> Option<Arc<CommittedEvent>> {
        loop {
            let event = match self.replay.is_some() {
                true => match self.replayed().await {
                    Ok(Some(event)) => event,
                    Ok(None) => continue,
                    Err(error) => {
                        tracing::warn!(error.cause = %error, "the outbox could not be read for a stream");
                        return None;
                    }
                },
                false => self.receiver.recv().await.ok()?,
            };
            if event.seq <= self.seen {
                continue;
            }
            self.seen = event.seq;
            if self.patterns.iter().any(|pattern| pattern.matches(&event.topic)) && may_see(caller, &event) {
                return Some(event);
            }
        }
    }

    /// Whether it is so far behind that it has missed events.
    pub fn is_cut_off(&self) -> bool {
        self.replay.is_none() && self.receiver.len() > BEHIND_MAX
    }

    /// The next event of the outbox; `None` where there is none left there, or a page was read.
    async fn replayed(&mut self) -> Result<Option<Arc<CommittedEvent>>> {
        let Some(replay) = &mut self.replay else { return Ok(None) };
        if let Some(event) = replay.page.next() {
            return Ok(Some(event));
        }
        let (after, up_to) = (self.seen, replay.up_to);
        let page = replay
            .app
            .store
            .read(ReadCost::Scan, move |connection| Box::pin(async move { Ok(connection.events_between(after, up_to).await?) }))
            .await?;
        if !page.is_empty() {
            replay.page = page.into_iter();
            return Ok(None);
        }
        self.seen = self.seen.max(up_to);
        // It took so long that what came meanwhile is more than a reader may be behind: that is in the outbox too.
        if self.receiver.len() > BEHIND_MAX / 2 {
            let feed = replay.app.feed();
            self.receiver = feed.sender.subscribe();
            replay.up_to = feed.position();
            return Ok(None);
        }
        self.replay = None;
        Ok(None)
    }

    /// Goes on from the outbox where the reader fell behind; for readers inside the service, which must not miss anything.
    pub async fn next_or_catch_up(&mut self, app: &Arc<App>, caller: &Caller) -> Option<Arc<CommittedEvent>> {
        loop {
            if self.replay.is_some() {
                return self.next(caller).await;
            }
            match self.receiver.recv().await {
                Ok(event) if event.seq <= self.seen => {}
                Ok(event) => {
                    self.seen = event.seq;
                    if self.patterns.iter().any(|pattern| pattern.matches(&event.topic)) {
                        return Some(event);
                    }
                }
                Err(RecvError::Lagged(_)) => {
                    let feed = app.feed();
                    self.receiver = feed.sender.subscribe();
                    let up_to = feed.position();
                    self.replay = Some(Replay { app: Arc::clone(app), page: Vec::new().into_iter(), up_to });
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// `data.<object>.…` needs read on the object, by the row's owner where the grant is for own rows; all else needs read on `events`.
pub(crate) fn may_see(caller: &Caller, event: &CommittedEvent) -> bool {
    match &event.object {
        Some(object) => caller.access(object, Action::Read).is_ok_and(|access| access.reaches(event.owner.as_deref())),
        None => caller.holds("events", Action::Read),
    }
}

/// Events of the outbox looked through for one answer, at most.
const LOOKED_THROUGH_MAX: i64 = 100_000;

impl App {
    /// The number of an event, after which a stream goes on.
    ///
    /// # Errors
    /// `not_found` where the outbox does not hold it any more.
    pub async fn event_seq(&self, id: &str) -> Result<i64> {
        let id = id.to_ascii_lowercase();
        let found = self
            .store
            .read(ReadCost::Rows, move |connection| Box::pin(async move { Ok(connection.event_seq(&id).await?) }))
            .await?;
        found.ok_or_else(|| {
            blockbase_schema::Error::new(
                blockbase_schema::Code::NotFound,
                "The outbox does not hold this event, or not any more. Read the data anew and open a stream without `since`.",
            )
        })
    }

    /// The newest events that match and that the caller may see, the newest first, as a JSON list of envelopes.
    pub async fn recent_events(&self, caller: &Caller, topic: Option<TopicFilter>, limit: usize) -> Result<String> {
        caller.require("events", Action::Read)?;
        let (mut before, mut looked_through) = (i64::MAX, 0);
        let mut found: Vec<Arc<CommittedEvent>> = Vec::new();
        while found.len() < limit && looked_through < LOOKED_THROUGH_MAX {
            let page = self
                .store
                .read(ReadCost::Scan, move |connection| {
                    Box::pin(async move { Ok(connection.events_before(before, FEED_PAGE).await?) })
                })
                .await?;
            let Some(last) = page.last() else { break };
            before = last.seq;
            looked_through += FEED_PAGE;
            let matching = page.into_iter().filter(|event| topic.as_ref().is_none_or(|topic| topic.matches(&event.topic)));
            found.extend(matching.filter(|event| may_see(caller, event)).take(limit - found.len()));
        }
        let envelopes: Vec<&str> = found.iter().map(|event| event.envelope()).collect();
        Ok(format!("[{}]", envelopes.join(",")))
    }
}

/// Which topics are asked for: a pattern, or all that begin alike.
#[derive(Clone, Debug)]
pub enum TopicFilter {
    Pattern(TopicPattern),
    Prefix(String),
}

impl TopicFilter {
    /// Text with `*` or `#` in it is a pattern, other text a prefix.
    ///
    /// # Errors
    /// `invalid_request` for a pattern that is none.
    pub fn parse(text: &str) -> Result<TopicFilter> {
        match text.contains(['*', '#']) {
            true => TopicPattern::parse(text).map(TopicFilter::Pattern),
            false => Ok(TopicFilter::Prefix(text.to_owned())),
        }
    }

    fn matches(&self, topic: &str) -> bool {
        match self {
            TopicFilter::Pattern(pattern) => pattern.matches(topic),
            TopicFilter::Prefix(prefix) => topic.starts_with(prefix),
        }
    }
}

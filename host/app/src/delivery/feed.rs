//! The live feed. Every reader gets each committed event once, in commit order.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use blockbase_auth::Sealed;
use blockbase_query::Action;
use blockbase_query::topic::{Reach, TopicFilter, TopicPattern};
use blockbase_schema::{Code, Error, Hint, Resource, Result};
use blockbase_store::{CommittedEvent, EventHead, EventPage, HeadFilter, ReadCost, ReplayFilter};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;

use crate::App;
use crate::access::quota::ScanPermit;
use crate::caller::Caller;
use crate::delivery::ledger::Unknown;
use crate::delivery::shown::{EarlyDecision, decide_early, is_of_links};
use crate::records::read::record_id;
use crate::state::feed::{BEHIND_MAX, Feed};

/// The pause before a reader that catches up retries after a failure of the database.
const CATCH_UP_PAUSE: Duration = Duration::from_secs(1);
impl Feed {
    /// Returns a reader for events that match one of `patterns`, from now on. It shows only events that the caller of each call
    /// may see.
    pub fn read(&self, patterns: Vec<TopicPattern>) -> FeedReader {
        FeedReader { receiver: self.subscribe(), patterns, replay: None, seen: 0, catches_up: None, resumes: None }
    }

    /// Does the same for readers inside the service, which must not miss events. A reader that falls behind continues from the
    /// outbox.
    pub fn read_all(&self, app: Arc<App>, patterns: Vec<TopicPattern>) -> FeedReader {
        // The reader does not catch up with events that were published before.
        FeedReader { catches_up: Some(app), seen: self.position(), ..self.read(patterns) }
    }

    /// Does the same as [`Feed::read`], but first reads the events of the outbox after the event number `seq`.
    pub fn read_after(&self, app: Arc<App>, patterns: Vec<TopicPattern>, seq: i64) -> FeedReader {
        let mut reader = self.read(patterns);
        reader.resumes = Some(Arc::clone(&app));
        reader.replay = Some(Replay::new(app));
        reader.seen = seq;
        reader
    }
}

/// One reader of the feed.
pub struct FeedReader {
    /// The events that the reader has not read yet. The pump bounds their bytes, so that a slow reader does not occupy memory.
    receiver: broadcast::Receiver<Weak<CommittedEvent>>,
    patterns: Vec<TopicPattern>,
    /// The part of the outbox that the reader still has to read.
    replay: Option<Replay>,
    /// The number of the last event that the reader has read.
    seen: i64,
    /// The service, for a reader that must not miss events. If this reader falls behind, it continues from the outbox and is not
    /// cut off.
    catches_up: Option<Arc<App>>,
    /// The service, for a reader that may fall behind during a replay, because it cannot read live events then. It may continue
    /// from the outbox only until the first event after the replay.
    resumes: Option<Arc<App>>,
}

struct Replay {
    app: Arc<App>,
    page: std::vec::IntoIter<Arc<CommittedEvent>>,
    /// The number up to which the outbox was read.
    looked: i64,
    /// The number at which the replay switches to live events. It is known once the feed has begun.
    up_to: Option<i64>,
    /// A read in progress. It continues while its reader does something else.
    reading: Option<JoinHandle<Result<EventPage>>>,
}

impl Replay {
    /// Makes the replay of a reader that has already subscribed. Earlier events are in the outbox, and it gets later events from
    /// the feed.
    fn new(app: Arc<App>) -> Replay {
        Replay { app, page: Vec::new().into_iter(), looked: 0, up_to: None, reading: None }
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        if let Some(reading) = &self.reading {
            reading.abort();
        }
    }
}

impl FeedReader {
    /// The next event of which `caller` may be shown something. `None` if the reader fell too far behind, or the service ends.
    ///
    /// Dropping the future loses no event.
    pub async fn next(&mut self, caller: &Caller) -> Option<Arc<CommittedEvent>> {
        loop {
            let event = match self.replay.is_some() {
                true => match self.replayed(caller).await {
                    Ok(Some(event)) => event,
                    Ok(None) => continue,
                    // The caller has no permit for a scan left. The reader continues when it gets one.
                    Err(error) if error.code == Code::Unavailable && error.retry_after_s.is_some() => {
                        tokio::time::sleep(CATCH_UP_PAUSE).await;
                        continue;
                    }
                    Err(error) => {
                        tracing::warn!(error.cause = %error, "the outbox could not be read for a stream");
                        // A reader that must not miss events retries.
                        self.catches_up.as_ref()?;
                        tokio::time::sleep(CATCH_UP_PAUSE).await;
                        continue;
                    }
                },
                false => {
                    let received = match self.receiver.recv().await {
                        // An event that is no longer in memory counts as missed.
                        Ok(event) => event.upgrade(),
                        Err(RecvError::Lagged(_)) => None,
                        Err(RecvError::Closed) => return None,
                    };
                    match (received, self.catches_up.as_ref().or(self.resumes.as_ref())) {
                        (Some(event), _) => {
                            self.resumes = None;
                            event
                        }
                        (None, Some(app)) => {
                            self.receiver = app.feed().subscribe();
                            self.replay = Some(Replay::new(Arc::clone(app)));
                            continue;
                        }
                        (None, None) => return None,
                    }
                }
            };
            if event.seq <= self.seen {
                continue;
            }
            self.seen = event.seq;
            if self.patterns.iter().any(|pattern| pattern.matches(&event.topic))
                && decide_early(caller, event.object.as_deref(), event.owner.as_deref()) != EarlyDecision::Nothing
            {
                return Some(event);
            }
        }
    }

    /// Whether the reader is so far behind that it has missed events.
    pub fn is_cut_off(&self) -> bool {
        self.replay.is_none() && self.receiver.len() > BEHIND_MAX
    }

    /// The next event from the outbox. `None` if no event is left there, or after a page was read.
    async fn replayed(&mut self, caller: &Caller) -> Result<Option<Arc<CommittedEvent>>> {
        let Some(replay) = &mut self.replay else { return Ok(None) };
        if let Some(event) = replay.page.next() {
            return Ok(Some(event));
        }
        let feed = replay.app.feed().clone();
        let up_to = match replay.up_to {
            Some(up_to) => up_to,
            None => {
                feed.started().await;
                *replay.up_to.insert(feed.position())
            }
        };
        let after = self.seen.max(replay.looked);
        let reading = replay.reading.get_or_insert_with(|| {
            let (app, caller) = (Arc::clone(&replay.app), caller.clone());
            let filter = filter_of(&app, &caller, &self.patterns);
            // The scan takes one of the caller's permits, so a caller with many streams does not keep others from reading.
            tokio::spawn(async move {
                app.scan(&caller, move |connection| {
                    Box::pin(async move { Ok(connection.events_of(&filter, after, up_to).await?) })
                })
                .await
            })
        });
        let page = reading.await;
        replay.reading = None;
        let page = page.map_err(Error::internal)??;
        if let Some(last) = page.last {
            replay.looked = last;
            replay.page = page.events.into_iter();
            return Ok(None);
        }
        self.seen = self.seen.max(up_to);
        // During the read, more events arrived than a reader may be behind. They are in the outbox too.
        if self.receiver.len() > BEHIND_MAX / 2 {
            self.receiver = feed.subscribe();
            replay.up_to = Some(feed.position());
            return Ok(None);
        }
        self.replay = None;
        Ok(None)
    }
}

/// The filter with which a stream reads the outbox. It has the conditions that a statement can check. Each event is checked again before
/// it is shown.
fn filter_of(app: &App, caller: &Caller, patterns: &[TopicPattern]) -> ReplayFilter {
    let objects: HashSet<Option<&str>> = patterns
        .iter()
        .map(|pattern| match pattern.reach() {
            Reach::Object(object) => Some(object),
            Reach::Platform | Reach::Everything => None,
        })
        .collect();
    let mut objects = objects.into_iter();
    ReplayFilter {
        topics: patterns.iter().map(|pattern| TopicFilter::Pattern(pattern.clone())).collect(),
        object: objects.next().flatten().filter(|_| objects.next().is_none()).map(str::to_owned),
        visible: app.visible_events(caller, Unknown::Included),
    }
}

const EVENTS_TOO_LARGE: &str = "The events have more bytes than the server sends (`SVC_MAX_ANSWER_BYTES`).";
/// The purpose for which the positions of streams are encrypted.
const POSITION: &str = "position of an event stream";

fn no_such_event() -> Error {
    Error::new(Code::NotFound, "The outbox no longer holds this event, or never did.").with_hint(Hint::FollowFromNow)
}

/// The maximum number of events of the outbox that one response looks at.
const LOOKED_THROUGH_MAX: i64 = 100_000;
/// The maximum number of events whose payloads one response reads to decide about them.
const PAYLOADS_READ_MAX: usize = 2_000;
/// The number of events that one statement looks at.
const HEADS_AT_ONCE: i64 = 2_000;

/// The decision on an event before its payload is read. Events of links only list the targets that can be read, so their payload
/// decides too.
fn decide_head_early(caller: &Caller, head: &EventHead) -> EarlyDecision {
    match decide_early(caller, head.object.as_deref(), head.owner.as_deref()) {
        EarlyDecision::Whole if is_of_links(&head.topic) && !caller.holds("*", Action::Read) => EarlyDecision::Unknown,
        decision => decision,
    }
}

impl App {
    /// Starts the feed after the last event of the outbox, if only this process writes. On Postgres, the task that follows the outbox
    /// starts it.
    pub(crate) async fn start_feed(&self) -> Result<()> {
        if !self.is_shared() {
            let read = self
                .store
                .read_as_service(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.last_event_seq().await?) }));
            self.feed.start_at(read.await?);
        }
        Ok(())
    }

    /// The number of an event, after which a stream continues. The caller need not have the right to see that event now. So a caller who
    /// saw it once continues without a gap, even if their rights have changed.
    ///
    /// # Errors
    /// `not_found` if the outbox does not have the event any more.
    pub(crate) async fn event_seq(&self, caller: &Caller, id: &str) -> Result<i64> {
        self.head_of(caller, id).await?.map(|head| head.seq).ok_or_else(no_such_event)
    }

    /// The number after which a stream continues. `from` is the id of an event, or a position that a stream has shown.
    ///
    /// # Errors
    /// `not_found` if the outbox does not have the event any more.
    pub(crate) async fn seq_after_which(&self, caller: &Caller, from: &str) -> Result<i64> {
        let Some(seq) = self.seq_of_position(from) else { return self.event_seq(caller, from).await };
        // Before the first event of the outbox there is nothing that could have been deleted.
        let is_there = seq == 0
            || self.look_up(caller, move |connection| Box::pin(async move { Ok(connection.has_event(seq).await?) })).await?;
        if is_there { Ok(seq) } else { Err(no_such_event()) }
    }

    /// The position of a stream that shows the events after the number `seq`: the newest event up to that number.
    ///
    /// The position is encrypted. The caller may not know the event, and must not learn from its number how many events there are.
    pub(crate) async fn position_at(&self, caller: &Caller, seq: i64) -> Result<String> {
        let newest = self.look_up(caller, move |connection| Box::pin(async move { Ok(connection.newest_event_seq(seq).await?) }));
        let sealed = self.secrets.seal(POSITION, &newest.await?.to_string()).map_err(Error::internal)?;
        Ok(sealed.ciphertext)
    }

    /// The number of the event in a position. `None` if the text is not a position.
    fn seq_of_position(&self, text: &str) -> Option<i64> {
        let sealed = Sealed { key_id: self.secrets.key_id().to_owned(), ciphertext: text.to_owned() };
        self.secrets.open(POSITION, &sealed).ok()?.parse().ok()
    }

    /// An event of the outbox without its payload.
    async fn head_of(&self, caller: &Caller, id: &str) -> Result<Option<EventHead>> {
        let id = id.to_ascii_lowercase();
        self.look_up(caller, move |connection| Box::pin(async move { Ok(connection.event_head(&id).await?) })).await
    }

    /// One event, as the JSON of its envelope. `None` if the outbox does not have it, or the caller may not see it.
    pub async fn event(&self, caller: &Caller, id: &str) -> Result<Option<String>> {
        caller.require(Resource::Events, Action::Read)?;
        Ok(self.visible_event(caller, id).await?.map(|event| event.envelope().to_owned()))
    }

    /// Returns the event with this id, with the parts that the caller may see. `None` if the outbox does not have it, or if the caller may
    /// not see it.
    pub(crate) async fn visible_event(&self, caller: &Caller, id: &str) -> Result<Option<Arc<CommittedEvent>>> {
        let id = id.to_ascii_lowercase();
        // The read is a scan, because the event may be large even if an index finds it.
        let event = self
            .scan(caller, move |connection| {
                Box::pin(async move {
                    match connection.event_seq(&id).await? {
                        Some(seq) => Ok(connection.event(seq).await?),
                        None => Ok(None),
                    }
                })
            })
            .await?;
        match event {
            Some(event) => self.shown_event(caller, None, &Arc::new(event)).await,
            None => Ok(None),
        }
    }

    /// The newest requested events that the caller may see, the newest first, as a JSON list of envelopes.
    ///
    /// # Errors
    /// `not_found` if the event in `before` is gone or the caller may not see it. `answer_too_large`.
    pub async fn recent_events(&self, caller: &Caller, request: EventsRequest, limit: usize) -> Result<String> {
        caller.require(Resource::Events, Action::Read)?;
        let EventsRequest { topic, object, record, before } = request;
        let record_id = match record.as_deref().map(record_id) {
            // The text is not a record's id, so no event matches.
            Some(None) => return Ok("[]".to_owned()),
            Some(Some(id)) => Some(id.to_string()),
            None => None,
        };
        let permit = Arc::new(self.scan_permit(caller).await?);
        let mut before = match before {
            Some(id) => {
                let head = self.head_of(caller, &id).await?;
                // A caller who may not see an event gets the same answer as if it did not exist.
                let head = match head {
                    Some(head) if self.shows(caller, &permit, &head).await? => Some(head),
                    _ => None,
                };
                let missing = "The outbox does not have the event before which the list begins, or you may not see it.";
                head.map(|head| head.seq).ok_or_else(|| Error::new(Code::NotFound, missing).with_hint(Hint::FromNewestEvent))?
            }
            None => i64::MAX,
        };
        let filter = HeadFilter { object, record_id };
        let (mut looked_through, mut payloads_read) = (0, 0);
        let mut found: Vec<EventHead> = Vec::new();
        while found.len() < limit && looked_through < LOOKED_THROUGH_MAX && payloads_read < PAYLOADS_READ_MAX {
            let filter = filter.clone();
            let heads = self
                .scan_in(caller, Arc::clone(&permit), move |connection| {
                    Box::pin(async move { Ok(connection.event_heads_before(&filter, before, HEADS_AT_ONCE).await?) })
                })
                .await?;
            let Some(last) = heads.last() else { break };
            before = last.seq;
            looked_through += HEADS_AT_ONCE;
            let matching = heads.iter().filter(|head| topic.as_ref().is_none_or(|topic| topic.matches(&head.topic)));
            for head in matching {
                if found.len() >= limit || payloads_read >= PAYLOADS_READ_MAX {
                    break;
                }
                payloads_read += usize::from(decide_head_early(caller, head) == EarlyDecision::Unknown);
                if self.shows(caller, &permit, head).await? {
                    found.push(head.clone());
                }
            }
        }
        let bytes_max = self.answer_bytes_left(caller);
        let mut list = String::from("[");
        for head in found {
            let Some(event) = self.event_in(caller, &permit, head.seq).await? else { continue };
            let Some(event) = self.shown_event(caller, Some(&permit), &Arc::new(event)).await? else { continue };
            if list.len() + event.envelope().len() > bytes_max {
                return Err(Error::new(Code::AnswerTooLarge, EVENTS_TOO_LARGE).with_hint(Hint::FewerEvents));
            }
            if list.len() > 1 {
                list.push(',');
            }
            list.push_str(event.envelope());
        }
        list.push(']');
        caller.spend_answer(list.len());
        Ok(list)
    }

    async fn event_in(&self, caller: &Caller, permit: &Arc<ScanPermit>, seq: i64) -> Result<Option<CommittedEvent>> {
        self.scan_in(caller, Arc::clone(permit), move |connection| Box::pin(async move { Ok(connection.event(seq).await?) }))
            .await
    }

    /// Whether `caller` is shown something of an event. Its payload is read only if the rest does not decide that.
    async fn shows(&self, caller: &Caller, permit: &Arc<ScanPermit>, head: &EventHead) -> Result<bool> {
        match decide_head_early(caller, head) {
            EarlyDecision::Whole => Ok(true),
            EarlyDecision::Nothing => Ok(false),
            EarlyDecision::Unknown => match self.event_in(caller, permit, head.seq).await? {
                Some(event) => Ok(self.shown_event(caller, Some(permit), &Arc::new(event)).await?.is_some()),
                None => Ok(false),
            },
        }
    }
}

/// The requested events.
#[derive(Clone, Debug, Default)]
pub struct EventsRequest {
    pub topic: Option<TopicFilter>,
    /// Only events of this object's records.
    pub object: Option<String>,
    /// Only events of the record with this id.
    pub record: Option<String>,
    /// Only events older than the event with this id.
    pub before: Option<String>,
}

#[cfg(test)]
mod tests {
    use blockbase_store::EventText;
    use futures_util::FutureExt;

    use super::*;
    use crate::state::feed::QUEUE_BYTES_MAX;

    /// A commit with one event whose payload has this many bytes.
    fn commit(seq: i64, payload_bytes: usize) -> Vec<Arc<CommittedEvent>> {
        let payload = format!("\"{}\"", "x".repeat(payload_bytes - 2));
        let text = EventText { id: &seq.to_string(), topic: "data.note.created", payload: &payload, occurred_at: 0 };
        vec![Arc::new(CommittedEvent::new(seq, &text, None, None, 0))]
    }

    #[tokio::test]
    async fn a_queue_full_of_bytes_takes_no_more_until_they_are_handed_out() {
        const PAYLOAD_BYTES: usize = 1024 * 1024;
        let (feed, pump) = Feed::new();
        let mut slow = feed.read(vec![TopicPattern::parse("#").expect("a pattern")]);
        let fits = QUEUE_BYTES_MAX / (PAYLOAD_BYTES + 1024);
        for seq in (1..).take(fits) {
            assert!(feed.publish(commit(seq, PAYLOAD_BYTES)).now_or_never().is_some(), "{seq} of {fits}");
        }
        let mut more = Box::pin(feed.publish(commit(100, PAYLOAD_BYTES)));
        assert!(more.as_mut().now_or_never().is_none(), "a queue without a bound");
        tokio::spawn(pump.run());
        more.await;
        // A commit that is larger than the whole queue must also go through, from a thread that waits for room.
        let blocking = feed.clone();
        let publish = move || {
            blocking.publish_blocking(commit(101, 2 * QUEUE_BYTES_MAX));
            blocking.publish_blocking(commit(102, PAYLOAD_BYTES));
        };
        tokio::task::spawn_blocking(publish).await.expect("a thread");
        while feed.position() < 102 {
            tokio::task::yield_now().await;
        }
        // The slow reader read nothing during this time, so it is cut off.
        assert!(slow.next(&Caller::system()).await.is_none());
    }

    #[tokio::test]
    async fn whoever_waits_for_room_goes_on_when_the_feed_ends() {
        let (feed, pump) = Feed::new();
        feed.publish(commit(1, 2 * QUEUE_BYTES_MAX)).await;
        let mut more = Box::pin(feed.publish(commit(2, 100)));
        assert!(more.as_mut().now_or_never().is_none());
        drop(pump);
        more.await;
    }
}

//! The live feed. Every reader gets each committed event once, in commit order.
//!
//! The purge skips events that a consumer still needs, so an event can outlive later ones. So no stream continues before the greatest
//! purged number, and a replay compares this number after each page.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use blockbase_auth::Sealed;
use blockbase_query::Action;
use blockbase_query::topic::{Reach, TopicFilter, TopicPattern};
use blockbase_schema::{Code, Error, Hint, Resource, Result};
use blockbase_store::{CommittedEvent, EventHead, EventPage, HeadFilter, ReadCost, ReplayFilter};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;

use crate::App;
use crate::access::quota::ScanPermit;
use crate::base::answer::text_of;
use crate::caller::Caller;
use crate::delivery::ledger::Unknown;
use crate::delivery::shown::{EarlyDecision, decide_early, may_see_of};
use crate::records::read::record_id;
use crate::state::feed::{BEHIND_MAX, Feed};

/// The pause before a reader that catches up retries after a failure of the database.
const CATCH_UP_PAUSE: Duration = Duration::from_secs(1);
impl Feed {
    /// Returns a reader for events that match one of `patterns`, from now on. It shows only events that the caller of each call
    /// may see.
    pub fn read(&self, patterns: Vec<TopicPattern>) -> FeedReader {
        FeedReader {
            receiver: self.subscribe(),
            patterns,
            replay: None,
            seen: 0,
            skips: HashSet::new(),
            catches_up: None,
            resumes: None,
        }
    }

    /// Does the same for readers inside the service, which must not miss events. A reader that falls behind continues from the
    /// outbox.
    pub fn read_all(&self, app: Arc<App>, patterns: Vec<TopicPattern>) -> FeedReader {
        // The reader does not catch up with events that were published before.
        FeedReader { catches_up: Some(app), seen: self.position(), ..self.read(patterns) }
    }

    /// Does the same as [`Feed::read`], but first reads the later events of the outbox.
    pub(crate) fn read_after(&self, app: Arc<App>, patterns: Vec<TopicPattern>, start: StartAfter) -> FeedReader {
        FeedReader {
            resumes: Some(Arc::clone(&app)),
            replay: Some(Replay::new(app)),
            seen: start.seq,
            skips: start.skips,
            ..self.read(patterns)
        }
    }

    /// Does the same as [`Feed::read`], for a feed that has not begun yet. The reader begins with the feed.
    pub(crate) fn read_from_beginning(&self, app: Arc<App>, patterns: Vec<TopicPattern>) -> FeedReader {
        let mut replay = Replay::new(Arc::clone(&app));
        replay.begins_with_feed = true;
        FeedReader { resumes: Some(app), replay: Some(replay), seen: NOTHING, ..self.read(patterns) }
    }
}

/// The place in the outbox after which a stream continues.
#[derive(Debug)]
pub(crate) struct StartAfter {
    /// The number after which the stream reads.
    seq: i64,
    /// The number of the event or the position that the client has.
    pub(crate) known: i64,
    /// Later events that the stream does not show, because the client could already read them.
    skips: HashSet<i64>,
}

impl StartAfter {
    /// Continues after the event with this number.
    pub(crate) fn seq(seq: i64) -> StartAfter {
        StartAfter { seq, known: seq, skips: HashSet::new() }
    }
}

/// A step of a reader.
pub(crate) enum Step {
    Event(Arc<CommittedEvent>),
    /// The reader has read the outbox, and goes on with live events.
    CaughtUp,
    /// The caller may not read the outbox any more with the rights that they had. The reader goes on if they are found again.
    Refused,
}

/// The number of a reader that has read nothing yet, and of a client that has no position.
pub(crate) const NOTHING: i64 = -1;

/// One reader of the feed.
pub struct FeedReader {
    /// The events that the reader has not read yet. The pump bounds their bytes, so that a slow reader does not occupy memory.
    receiver: broadcast::Receiver<Weak<CommittedEvent>>,
    patterns: Vec<TopicPattern>,
    /// The part of the outbox that the reader still has to read.
    replay: Option<Replay>,
    /// The number of the last event that the reader has read.
    seen: i64,
    /// The numbers of events that the reader passes over.
    skips: HashSet<i64>,
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
    /// Whether the reader shows nothing from before the feed began.
    begins_with_feed: bool,
    /// A read in progress. It continues while its reader does something else.
    reading: Option<Reading>,
    /// Whether the next page has to have all events, because the filter of the last read was too old.
    reads_again: bool,
}

struct Reading {
    task: JoinHandle<Result<OutboxRead>>,
    /// The state of the accounts and the version of the schema before the read. `None` if the page has the events that its caller
    /// may not see too.
    filtered_at: Option<(u64, i64)>,
}

/// What one read of the outbox found.
#[derive(Default)]
struct OutboxRead {
    page: EventPage,
    /// The number up to which events were purged.
    purged_to: i64,
    /// The versions of the accounts and of the schema. `None` if there was nothing to read.
    versions: Option<(i64, i64)>,
}

/// What a step of a replay found.
enum Replayed {
    Event(Arc<CommittedEvent>),
    MoreFollows,
    CaughtUp,
    /// Events that the reader had not read yet were deleted.
    Purged,
}

impl Replay {
    /// Makes the replay of a reader that has already subscribed. Earlier events are in the outbox, and it gets later events from
    /// the feed.
    fn new(app: Arc<App>) -> Replay {
        Replay {
            app,
            page: Vec::new().into_iter(),
            looked: NOTHING,
            up_to: None,
            begins_with_feed: false,
            reading: None,
            reads_again: false,
        }
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        if let Some(reading) = &self.reading {
            reading.task.abort();
        }
    }
}

impl FeedReader {
    /// The next event of which `caller` may be shown something. `None` if the reader fell too far behind, or the service ends.
    ///
    /// Dropping the future loses no event.
    pub async fn next(&mut self, caller: &Caller) -> Option<Arc<CommittedEvent>> {
        loop {
            match self.step(caller, || true).await? {
                Step::Event(event) => return Some(event),
                Step::CaughtUp => {}
                Step::Refused => return None,
            }
        }
    }

    /// Does the same, and also reports when the reader has read the outbox. `is_current` says whether the rights of `caller` are
    /// certainly those of now. If not, every event that matches is returned, because the caller may have got the right to see it.
    pub(crate) async fn step(&mut self, caller: &Caller, is_current: impl Fn() -> bool) -> Option<Step> {
        loop {
            let event = match self.replay.is_some() {
                true => match self.replayed(caller, &is_current).await {
                    Ok(Replayed::Event(event)) => event,
                    Ok(Replayed::MoreFollows) => continue,
                    Ok(Replayed::CaughtUp) => return Some(Step::CaughtUp),
                    Ok(Replayed::Purged) => {
                        tracing::debug!("a stream ends, because events that it had not shown yet were deleted");
                        return None;
                    }
                    // The caller has no permit for a scan left. The reader continues when it gets one.
                    Err(error) if error.code == Code::Unavailable && error.retry_after_s.is_some() => {
                        tokio::time::sleep(CATCH_UP_PAUSE).await;
                        continue;
                    }
                    Err(error) if matches!(error.code, Code::Forbidden | Code::Unauthorized) && self.catches_up.is_none() => {
                        return Some(Step::Refused);
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
            if self.skips.remove(&event.seq) {
                continue;
            }
            if self.patterns.iter().any(|pattern| pattern.matches(&event.topic))
                && (decide_early(caller, &event.topic, event.object.as_deref(), event.owner.as_deref()) != EarlyDecision::Nothing
                    || !is_current())
            {
                return Some(Step::Event(event));
            }
        }
    }

    /// The number up to which the reader has returned every event that its caller may be shown.
    pub(crate) fn passed(&self) -> i64 {
        match &self.replay {
            Some(replay) if replay.page.as_slice().is_empty() => self.seen.max(replay.looked),
            _ => self.seen,
        }
    }

    /// Whether the last event came from the feed, and not from the outbox.
    pub(crate) fn is_live(&self) -> bool {
        self.replay.is_none()
    }

    /// Whether the reader is so far behind that it has missed events.
    pub fn is_cut_off(&self) -> bool {
        self.replay.is_none() && self.receiver.len() > BEHIND_MAX
    }

    /// The next step of the replay. If the caller is not certainly current, it reads all events, as [`FeedReader::step`] returns
    /// them. If the accounts or the schema are newer than the filter of a page, it reads the page again, because the caller may see
    /// more of it.
    async fn replayed(&mut self, caller: &Caller, is_current: &impl Fn() -> bool) -> Result<Replayed> {
        let Some(replay) = &mut self.replay else { return Ok(Replayed::CaughtUp) };
        if let Some(event) = replay.page.next() {
            return Ok(Replayed::Event(event));
        }
        let feed = replay.app.feed().clone();
        let up_to = match replay.up_to {
            Some(up_to) => up_to,
            None => {
                feed.started().await;
                let up_to = feed.position();
                if replay.begins_with_feed {
                    self.seen = up_to;
                }
                *replay.up_to.insert(up_to)
            }
        };
        let after = self.seen.max(replay.looked);
        let reading = replay.reading.get_or_insert_with(|| {
            let (app, caller) = (Arc::clone(&replay.app), caller.clone());
            // The state is noted before the caller is looked at.
            let generation = app.identities.generation();
            let reads_all = std::mem::take(&mut replay.reads_again);
            let by_rights = !reads_all && is_current();
            let schema = app.registry().version;
            let filter = filter_of(&app, &caller, &self.patterns, by_rights);
            let filtered_at = filter.visible.is_some().then_some((generation, schema));
            // The scan takes one of the caller's permits, so a caller with many streams does not keep others from reading.
            let task = tokio::spawn(async move {
                app.scan(&caller, move |connection| {
                    Box::pin(async move {
                        if after >= up_to {
                            return Ok(OutboxRead::default());
                        }
                        let page = connection.events_of(&filter, after, up_to).await?;
                        // This is read after the page, so that it includes every purge that the page may have missed events of, and
                        // every change of accounts and of the schema before one of its events.
                        let purged_to = connection.purged_to().await?;
                        let versions = (connection.accounts_version().await?, connection.version("schema").await?);
                        Ok(OutboxRead { page, purged_to, versions: Some(versions) })
                    })
                })
                .await
            });
            Reading { task, filtered_at }
        });
        let (page, filtered_at) = ((&mut reading.task).await, reading.filtered_at);
        replay.reading = None;
        let OutboxRead { page, purged_to, versions } = page.map_err(Error::internal)??;
        if let Some((accounts, schema)) = versions {
            let identities = &replay.app.identities;
            identities.follow(accounts);
            let is_old = |(generation, known): (u64, i64)| {
                identities.are_changing() || identities.generation() != generation || known != schema
            };
            if filtered_at.is_some_and(is_old) {
                replay.app.reach_schema(schema).await?;
                replay.reads_again = true;
                return Ok(Replayed::MoreFollows);
            }
        }
        // A reader inside the service goes on with the events that are left.
        if purged_to > after && self.catches_up.is_none() {
            return Ok(Replayed::Purged);
        }
        if let Some(last) = page.last {
            replay.looked = last;
            replay.page = page.events.into_iter();
            return Ok(Replayed::MoreFollows);
        }
        self.seen = self.seen.max(up_to);
        // During the read, more events arrived than a reader may be behind. They are in the outbox too.
        if self.receiver.len() > BEHIND_MAX / 2 {
            self.receiver = feed.subscribe();
            replay.up_to = Some(feed.position());
            return Ok(Replayed::MoreFollows);
        }
        self.replay = None;
        Ok(Replayed::CaughtUp)
    }
}

/// The filter with which a stream reads the outbox. With `by_rights` it has the conditions of the caller's rights that a statement can
/// check. Each event is checked again before it is shown.
fn filter_of(app: &App, caller: &Caller, patterns: &[TopicPattern], by_rights: bool) -> ReplayFilter {
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
        visible: if by_rights { app.visible_events(caller, Unknown::Included) } else { None },
    }
}

const EVENTS_TOO_LARGE: &str = "The events have more bytes than the server sends (`SVC_MAX_ANSWER_BYTES`).";
/// The purpose for which the positions of streams are encrypted.
const POSITION: &str = "position of an event stream";
/// The purpose for which the starts of lists are encrypted. A list takes no position of a stream, and a stream no start of a list.
const LIST_START: &str = "start of a list of events";
/// The number of digits of an event's number in both, so that the length of the text reveals nothing.
const POSITION_DIGITS: usize = 20;
/// The id in a position that does not follow an event of the outbox. It is as long as the id of an event.
const NO_EVENT: &str = "00000000-0000-0000-0000-000000000000";
/// The maximum number of events that a stream passes over, because its client could already read them.
const SKIPPED_MAX: i64 = 2_000;

fn no_such_event() -> Error {
    Error::new(Code::NotFound, "The outbox no longer holds this event, or never did.").with_hint(Hint::FollowFromNow)
}

/// The maximum number of events of the outbox that one response looks at.
pub(crate) const LOOKED_THROUGH_MAX: i64 = 100_000;
/// The maximum number of events whose payloads one response reads to decide about them.
const PAYLOADS_READ_MAX: usize = 2_000;
/// The number of events that one statement looks at.
const HEADS_AT_ONCE: i64 = 2_000;

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

    /// The place after which a stream continues. `from` is the id of an event, or a position that a stream has shown.
    ///
    /// The caller need not have the right to see that event now. So a caller who saw it once continues without a gap, even if their
    /// rights have changed.
    ///
    /// # Errors
    /// `not_found` if the outbox does not have the event any more, or if later events were purged.
    pub(crate) async fn start_after(&self, caller: &Caller, from: &str) -> Result<StartAfter> {
        let position = self.opened_position(from);
        let id = position.as_ref().map_or_else(|| from.to_ascii_lowercase(), |(_, id)| id.clone());
        // On Postgres, a caller can read an event while an earlier one is not committed yet. A position is never ahead of the feed.
        let may_be_ahead = position.is_none() && self.is_shared() && self.feed().has_started();
        let published = may_be_ahead.then(|| self.feed().position());
        let start = self.look_up(caller, move |connection| {
            Box::pin(async move {
                let event = connection.event_seq(&id).await?;
                let purged_to = connection.purged_to().await?;
                let found = match position {
                    None => event,
                    // Such a position directly follows the last purged event.
                    Some((seq, _)) if id == NO_EVENT => Some(seq).filter(|seq| *seq == purged_to),
                    // In a database that was restored from a backup, another event can have the number.
                    Some((seq, _)) => event.filter(|event| *event == seq),
                };
                // The purge leaves events that a consumer has not received yet. So the event may be there, but not its successors.
                let Some(seq) = found.filter(|seq| *seq >= purged_to) else { return Ok(None) };
                match published.filter(|published| *published < seq) {
                    None => Ok(Some(StartAfter::seq(seq))),
                    Some(published) => {
                        let skips = connection.newest_event_seqs(published, seq, SKIPPED_MAX).await?.into_iter().collect();
                        Ok(Some(StartAfter { seq: published, known: seq, skips }))
                    }
                }
            })
        });
        start.await?.ok_or_else(no_such_event)
    }

    /// The position of a stream that shows the events after the number `seq`: the newest event up to that number. Returns also that
    /// event's number.
    ///
    /// The position is encrypted. The caller may not know the event, and must not learn from its number how many events there are.
    pub(crate) async fn position_at(&self, caller: &Caller, seq: i64) -> Result<(i64, String)> {
        let newest = self.look_up(caller, move |connection| {
            Box::pin(async move {
                let newest = connection.newest_event(seq).await?;
                let purged_to = connection.purged_to().await?;
                let no_event = || (purged_to.min(seq), NO_EVENT.to_owned());
                // A stream cannot continue after an event before the last purged one.
                Ok(newest.filter(|(newest, _)| *newest >= purged_to).unwrap_or_else(no_event))
            })
        });
        let (number, id) = newest.await?;
        Ok((number, self.sealed_position(number, &id)?))
    }

    fn sealed_position(&self, seq: i64, id: &str) -> Result<String> {
        let text = format!("{seq:0width$}{id}", width = POSITION_DIGITS);
        Ok(self.secrets.seal(POSITION, &text).map_err(Error::internal)?.ciphertext)
    }

    /// The text with which a list begins before the event with a number. It is encrypted, because the caller may not know that
    /// event. It is not bound to a caller: each list shows only what its own caller may see.
    pub(crate) fn sealed_start(&self, seq: i64) -> Result<String> {
        let text = format!("{seq:0width$}", width = POSITION_DIGITS);
        Ok(self.secrets.seal(LIST_START, &text).map_err(Error::internal)?.ciphertext)
    }

    /// The number in the start of a list. `None` if the text is not such a start.
    fn opened_start(&self, text: &str) -> Option<i64> {
        self.secrets.open(LIST_START, &self.sealed(text)).ok()?.parse().ok()
    }

    /// The number and the id of the event in a position. `None` if the text is not a position.
    fn opened_position(&self, text: &str) -> Option<(i64, String)> {
        let text = self.secrets.open(POSITION, &self.sealed(text)).ok()?;
        let (number, id) = text.split_at_checked(POSITION_DIGITS)?;
        Some((number.parse().ok()?, id.to_owned()))
    }

    fn sealed(&self, text: &str) -> Sealed {
        Sealed { key_id: self.secrets.key_id().to_owned(), ciphertext: text.to_owned() }
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
        match self.stored_event(caller, id).await? {
            Some(event) => self.shown_event(caller, None, &event).await,
            None => Ok(None),
        }
    }

    /// Returns the complete event with this id, if the caller may see a part of it. The rights of others are decided by the complete
    /// event: a condition must not test a value that is null only because the caller may not read it.
    pub(crate) async fn event_seen_in_part(&self, caller: &Caller, id: &str) -> Result<Option<Arc<CommittedEvent>>> {
        let Some(event) = self.stored_event(caller, id).await? else { return Ok(None) };
        Ok(self.shown_event(caller, None, &event).await?.map(|_| event))
    }

    /// Returns the complete event with this id, whatever the caller may see of it.
    async fn stored_event(&self, caller: &Caller, id: &str) -> Result<Option<Arc<CommittedEvent>>> {
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
        self.recheck_at(caller, event.as_ref().map_or(0, |event| event.accounts)).await?;
        Ok(event.map(Arc::new))
    }

    /// The number of the event before which a list begins. `before` is the id of an event, or a text from an earlier list.
    ///
    /// # Errors
    /// `not_found` if the event is gone or the caller may not see it.
    pub(crate) async fn number_before(&self, caller: &Caller, permit: &Arc<ScanPermit>, before: &str) -> Result<i64> {
        if let Some(seq) = self.opened_start(before) {
            return Ok(seq);
        }
        let head = self.head_of(caller, before).await?;
        // A caller who may not see an event gets the same answer as if it did not exist.
        let head = match head {
            Some(head) if self.shows(caller, permit, &head).await? => Some(head),
            _ => None,
        };
        let missing = "The outbox does not have the event before which the list begins, or you may not see it.";
        head.map(|head| head.seq).ok_or_else(|| Error::new(Code::NotFound, missing).with_hint(Hint::FromNewestEvent))
    }

    /// The newest requested events that the caller may see, the newest first, as `{ data, pagination? }` with a JSON list of
    /// envelopes. It has an [`EventsPagination`] if the server stopped looking before the list was full.
    ///
    /// # Errors
    /// `not_found` if the event in `before` is gone or the caller may not see it. `answer_too_large`.
    pub async fn recent_events(&self, caller: &Caller, request: EventsRequest, limit: usize) -> Result<String> {
        caller.require(Resource::Events, Action::Read)?;
        let EventsRequest { topic, object, record, before } = request;
        let record_id = match record.as_deref().map(record_id) {
            // The text is not a record's id, so no event matches.
            Some(None) => return Ok(r#"{"data":[]}"#.to_owned()),
            Some(Some(id)) => Some(id.to_string()),
            None => None,
        };
        // Without a search, the answer does not depend on the number of the object's events.
        if object.as_deref().is_some_and(|object| !may_see_of(caller, object)) {
            return Ok(r#"{"data":[]}"#.to_owned());
        }
        let permit = Arc::new(self.scan_permit(caller).await?);
        let before = match before {
            Some(before) => self.number_before(caller, &permit, &before).await?,
            None => i64::MAX,
        };
        let filter = HeadFilter { object, record_id };
        let FoundEvents { heads, stopped_before } =
            self.found_events(caller, &permit, (&filter, topic.as_ref()), before, limit).await?;
        let bytes_max = self.answer_bytes_left(caller);
        let mut list = String::from("[");
        for head in heads {
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
        let pagination = match stopped_before {
            Some(seq) => {
                let pagination = EventsPagination { truncated: true, before: self.sealed_start(seq)? };
                format!(r#","pagination":{}"#, text_of(&pagination))
            }
            None => String::new(),
        };
        Ok(format!(r#"{{"data":{list}{pagination}}}"#))
    }

    /// Looks for at most `limit` events that the caller may see, from the number `before` on, the newest first.
    async fn found_events(
        &self,
        caller: &Caller,
        permit: &Arc<ScanPermit>,
        (filter, topic): (&HeadFilter, Option<&TopicFilter>),
        before: i64,
        limit: usize,
    ) -> Result<FoundEvents> {
        let (mut before, mut looked_through, mut payloads_read) = (before, 0, 0);
        let mut found: Vec<EventHead> = Vec::new();
        while found.len() < limit && looked_through < LOOKED_THROUGH_MAX && payloads_read < PAYLOADS_READ_MAX {
            let heads = self.heads_before(caller, permit, filter, before, HEADS_AT_ONCE).await?;
            if heads.is_empty() {
                return Ok(FoundEvents { heads: found, stopped_before: None });
            }
            looked_through += HEADS_AT_ONCE;
            for head in heads {
                if found.len() >= limit || payloads_read >= PAYLOADS_READ_MAX {
                    break;
                }
                before = head.seq;
                if topic.is_some_and(|topic| !topic.matches(&head.topic)) {
                    continue;
                }
                let decision = decide_early(caller, &head.topic, head.object.as_deref(), head.owner.as_deref());
                payloads_read += usize::from(decision == EarlyDecision::Unknown);
                if self.shows(caller, permit, &head).await? {
                    found.push(head);
                }
            }
        }
        // Without further events, the list lacks none.
        let has_stopped = found.len() < limit && !self.heads_before(caller, permit, filter, before, 1).await?.is_empty();
        Ok(FoundEvents { heads: found, stopped_before: has_stopped.then_some(before) })
    }

    async fn heads_before(
        &self,
        caller: &Caller,
        permit: &Arc<ScanPermit>,
        filter: &HeadFilter,
        before: i64,
        most: i64,
    ) -> Result<Vec<EventHead>> {
        let filter = filter.clone();
        let heads = self.scan_in(caller, Arc::clone(permit), move |connection| {
            Box::pin(async move { Ok(connection.event_heads_before(&filter, before, most).await?) })
        });
        heads.await
    }

    async fn event_in(&self, caller: &Caller, permit: &Arc<ScanPermit>, seq: i64) -> Result<Option<CommittedEvent>> {
        let event = self
            .scan_in(caller, Arc::clone(permit), move |connection| Box::pin(async move { Ok(connection.event(seq).await?) }))
            .await?;
        self.recheck_at(caller, event.as_ref().map_or(0, |event| event.accounts)).await?;
        Ok(event)
    }

    /// Whether `caller` is shown something of an event. Its payload is read only if the rest does not decide that.
    async fn shows(&self, caller: &Caller, permit: &Arc<ScanPermit>, head: &EventHead) -> Result<bool> {
        match decide_early(caller, &head.topic, head.object.as_deref(), head.owner.as_deref()) {
            EarlyDecision::Whole => self.recheck_at(caller, head.accounts).await.map(|()| true),
            EarlyDecision::Nothing => Ok(false),
            EarlyDecision::Unknown => match self.event_in(caller, permit, head.seq).await? {
                Some(event) => Ok(self.shown_event(caller, Some(permit), &Arc::new(event)).await?.is_some()),
                None => Ok(false),
            },
        }
    }
}

/// What a list of events says if the server stopped looking before the list was full.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "SvcEventsPagination", deny_unknown_fields)]
pub struct EventsPagination {
    /// True: the server stopped looking before the list was full, so there can be older events that the caller may see.
    truncated: bool,
    /// `before` of a request that goes on where the server stopped.
    before: String,
}

/// The events that a list shows, the newest first.
struct FoundEvents {
    heads: Vec<EventHead>,
    /// If the search stopped before the list was full: the number of the last event that it looked at.
    stopped_before: Option<i64>,
}

/// The requested events.
#[derive(Clone, Debug, Default)]
pub struct EventsRequest {
    pub topic: Option<TopicFilter>,
    /// Only events of this object's records.
    pub object: Option<String>,
    /// Only events of the record with this id.
    pub record: Option<String>,
    /// Only events older than the event with this id, or `pagination.before` of an earlier list.
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

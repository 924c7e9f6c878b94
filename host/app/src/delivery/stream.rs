//! Open streams of the feed, for every surface. A stream sends frames until its reader falls behind, its session ends or the
//! server drains.

use std::sync::Arc;
use std::time::Duration;

use blockbase_query::topic::TopicPattern;
use blockbase_quota::{Place, Places, PlacesRule, QuotaOwner};
use blockbase_schema::{BUSY_RETRY_AFTER_S, Code, Error, Result};
use blockbase_store::CommittedEvent;
use bytes::Bytes;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::App;
use crate::access::session_recheck::SessionRecheck;
use crate::base::frames::{CLIENT_STALLED_MAX, FrameSender, Frames, shared_frames};
use crate::caller::{Caller, Credentials};
use crate::delivery::feed::{FeedReader, NOTHING, StartAfter, Step};
use crate::delivery::shown::is_shown_whole;

/// How often a comment shows that the stream is alive.
pub const HEARTBEAT: Duration = Duration::from_secs(15);
/// The maximum number of open event streams on all surfaces together.
const STREAMS_MAX: usize = 10_000;
/// How often the caller is checked again, so that an ended session ends its streams.
pub const CALLER_RECHECK: Duration = Duration::from_secs(1);
/// The pause before an event is checked again, or the outbox is read again, if the first attempt was refused.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// The number of frames that are prepared before the client takes them.
const FRAMES_AHEAD: usize = 16;
/// The topics of a stream that names none.
pub const TOPICS_DEFAULT: &str = "data.#";
/// The maximum number of patterns of one stream.
pub const PATTERNS_MAX: usize = 50;

/// The contents and the form of a stream.
pub struct StreamRequest {
    /// Topic patterns. If the list is empty, the stream shows the events of all records.
    pub topics: Vec<String>,
    /// The id of the event after which the stream begins, or a position that an earlier stream has shown. Without it, the stream
    /// begins now.
    pub since: Option<String>,
    /// Whether the caller has to pass the gate of GraphQL and MCP ([`Caller::require_platform`]).
    pub needs_platform: bool,
    /// Turns true when the server drains.
    pub draining: watch::Receiver<bool>,
    pub form: StreamForm,
}

/// The form of a stream's frames.
pub struct StreamForm {
    /// The first frame, which tells the client that the stream is open.
    pub opening: Option<Bytes>,
    pub heartbeat: Option<Bytes>,
    /// The frame with the position of a stream. A client whose stream ends before the first event, or long after the last one,
    /// can continue from there. Without this function, the stream shows no positions.
    pub position: Option<fn(&str) -> Bytes>,
    pub frame: Box<dyn Fn(&CommittedEvent) -> Bytes + Send>,
}

/// Places for the open streams of all surfaces. One owner may have at most [`places_of_one`].
pub(crate) fn stream_places(of_one_max: usize) -> Arc<Places> {
    Places::new(PlacesRule::without_wait(STREAMS_MAX, places_of_one(of_one_max)))
}

/// The maximum number of places of one owner. It is `of_one_max`, but the last eighth of all places is for other owners.
fn places_of_one(of_one_max: usize) -> usize {
    of_one_max.min(STREAMS_MAX - STREAMS_MAX.div_ceil(8))
}

/// A place among the open streams of all surfaces. It is free again when this is dropped.
pub struct StreamPlace {
    _place: Place,
    /// Counts the stream for telemetry.
    _counted: blockbase_telemetry::OpenStream,
}

impl StreamPlace {
    /// Counts a stream that has opened in this place.
    fn opened(place: Place) -> StreamPlace {
        StreamPlace { _place: place, _counted: blockbase_telemetry::stream_opened() }
    }
}

/// The error for an owner who gets no further place. The owner has `held` places, and one owner may have `each`.
fn no_place(held: usize, each: usize) -> Error {
    let (code, message) = match held >= each {
        true => {
            let message =
                format!("You have {held} streams open, the most that one caller may have. Close one, or try again later.");
            (Code::RateLimited, message)
        }
        false => {
            let message = "This server has as many event streams open as it allows. Try again later.";
            (Code::Unavailable, message.to_owned())
        }
    };
    Error::new(code, message).with_retry_after(BUSY_RETRY_AFTER_S)
}

impl App {
    /// The number of open streams, and their maximum.
    pub(crate) fn streams_open_and_max(&self) -> (usize, usize) {
        (STREAMS_MAX.saturating_sub(self.streams.free()), STREAMS_MAX)
    }

    /// Takes a place for one more stream, and counts the stream as open.
    ///
    /// # Errors
    /// `rate_limited` if the owner has as many streams as one owner may have, `unavailable` if the process has the maximum number
    /// of all streams.
    pub fn stream_place(&self, owner: &QuotaOwner) -> Result<StreamPlace> {
        self.place_before_opening(owner).map(StreamPlace::opened)
    }

    /// Takes a place for a stream that may still be refused.
    ///
    /// # Errors
    /// The same as for [`App::stream_place`].
    fn place_before_opening(&self, owner: &QuotaOwner) -> Result<Place> {
        let each = places_of_one(self.settings.streams_of_one_max);
        self.streams.try_take(owner).map_err(|_| no_place(self.streams.held(owner), each))
    }

    /// Whether the caller may have streams.
    ///
    /// # Errors
    /// `unauthorized` if permissions are enforced and the caller is not authenticated.
    pub fn may_stream(&self, caller: &Caller) -> Result<()> {
        match self.settings.require_auth && !caller.is_known() {
            true => {
                Err(Error::new(Code::Unauthorized, "Authentication required. An event stream needs a session or an API key."))
            }
            false => Ok(()),
        }
    }

    /// Opens a stream and returns its frames. Dropping the frames ends the stream.
    ///
    /// A ticket among the credentials is used up by the last step, so a request that is refused for another reason does not use
    /// it up.
    ///
    /// # Errors
    /// `unauthorized` if permissions are enforced and the caller is not authenticated, or if the ticket is no longer valid.
    /// `invalid_request` for malformed topics, too many of them, and a `since` with a NUL character. `not_found` for an unknown
    /// `since`: the outbox has no such event, or a later event was purged. `rate_limited` and `unavailable` if there are too many
    /// streams, and `unavailable` if the database is busy.
    pub async fn open_stream(
        self: &Arc<Self>,
        caller: Caller,
        credentials: &Credentials,
        mut request: StreamRequest,
    ) -> Result<Frames> {
        self.may_stream(&caller)?;
        if request.needs_platform {
            caller.require_platform()?;
        }
        let mut patterns = request.topics.iter().map(|topic| TopicPattern::parse(topic.trim())).collect::<Result<Vec<_>>>()?;
        if patterns.len() > PATTERNS_MAX {
            return Err(Error::invalid_request(format!("A stream takes {PATTERNS_MAX} topic patterns at most.")));
        }
        if patterns.is_empty() {
            patterns.push(TopicPattern::parse(TOPICS_DEFAULT)?);
        }
        if request.since.as_ref().is_some_and(|since| since.contains('\0')) {
            return Err(Error::invalid_request("The id of the event after which to continue has a NUL character."));
        }
        // The stream takes its place before it reads the database. This bounds how many streams wait for the database.
        let place = self.place_before_opening(caller.quota_owner())?;
        let position_frame = request.form.position.take();
        let begins_now = request.since.is_none();
        let start = match request.since {
            Some(since) => Start::After(self.start_after(&caller, &since).await?),
            None if self.feed().has_started() => match position_frame {
                None => Start::Now,
                // The stream shows every event after the position that it is about to show.
                Some(_) => Start::After(StartAfter::seq(self.feed().position())),
            },
            // Before the feed has begun, transactions may be open whose events have smaller numbers than visible ones. So no
            // number is a position yet.
            None if position_frame.is_some() => Start::WithFeed,
            // On Postgres the feed waits for open transactions, so it may begin after the next writes. So the stream first reads
            // the outbox from here.
            None => {
                let last = self.look_up(&caller, |connection| Box::pin(async move { Ok(connection.last_event_seq().await?) }));
                Start::After(StartAfter::seq(last.await?))
            }
        };
        let position = match (position_frame, &start) {
            (Some(frame), Start::After(start)) if begins_now => Some(frame(&self.position_at(&caller, start.known).await?.1)),
            _ => None,
        };
        let positions = position_frame.map(|frame| {
            let known = match &start {
                Start::After(start) => start.known,
                Start::Now | Start::WithFeed => NOTHING,
            };
            Positions { frame, known, look: None }
        });
        let credentials = self.use_stream_ticket(&caller, credentials).await?;
        let interval = |period: Duration| {
            let mut interval = interval_at(Instant::now() + period, period);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        };
        let open = OpenStream {
            reader: match start {
                Start::Now => self.feed().read(patterns),
                Start::WithFeed => self.feed().read_from_beginning(Arc::clone(self), patterns),
                Start::After(start) => self.feed().read_after(Arc::clone(self), patterns, start),
            },
            app: Arc::clone(self),
            session_recheck: SessionRecheck::new(self, caller, &credentials),
            needs_platform: request.needs_platform,
            heartbeat: interval(HEARTBEAT),
            recheck: interval(CALLER_RECHECK),
            draining: request.draining,
            form: request.form,
            position,
            positions,
            parts_check: None,
            renewed_for: 0,
            _place: StreamPlace::opened(place),
        };
        // A separate task notices if the reader falls behind, its session ends or the server drains, even while the client reads
        // nothing.
        let (sender, frames) = shared_frames(FRAMES_AHEAD);
        tokio::spawn(open.run(sender));
        Ok(frames)
    }
}

/// Where a stream begins.
enum Start {
    Now,
    /// It begins when the feed begins.
    WithFeed,
    After(StartAfter),
}

struct OpenStream {
    reader: FeedReader,
    app: Arc<App>,
    session_recheck: SessionRecheck,
    needs_platform: bool,
    heartbeat: Interval,
    recheck: Interval,
    draining: watch::Receiver<bool>,
    form: StreamForm,
    /// The frame with the position at which the stream begins, until it is sent.
    position: Option<Bytes>,
    /// The later positions. `None` if the stream shows no positions.
    positions: Option<Positions>,
    /// The event that the stream is about to show, until its visible parts are known.
    parts_check: Option<PartsCheck>,
    /// The number of the last event for which the caller was checked again.
    renewed_for: i64,
    _place: StreamPlace,
}

impl OpenStream {
    /// Sends frames until the stream ends or the client has taken no frame for too long.
    async fn run(mut self, sender: FrameSender) {
        loop {
            let frame = tokio::select! {
                frame = self.next_frame() => frame,
                () = sender.closed() => None,
            };
            let Some(frame) = frame else { return };
            let stalled = tokio::time::sleep(CLIENT_STALLED_MAX);
            tokio::pin!(stalled);
            // The stream first waits for room for the frame. Meanwhile the caller is still checked again.
            let place = loop {
                tokio::select! {
                    biased;
                    () = drained(&mut self.draining) => return,
                    () = &mut stalled => return,
                    _ = self.recheck.tick() => {
                        if self.reader.is_cut_off() || Box::pin(self.look_again()).await.is_none() {
                            return;
                        }
                    }
                    place = sender.room(frame.len()) => break place,
                }
            };
            let Some(place) = place else { return };
            place.send(frame);
        }
    }

    /// Reads the caller's present rights. `None` if they may not have a stream any more.
    ///
    /// The call is boxed. Its state is larger than everything else in a stream, but exists only for a moment each second.
    async fn look_again(&mut self) -> Option<()> {
        self.session_recheck.renew().await?;
        let caller = self.session_recheck.caller();
        self.app.may_stream(caller).ok()?;
        (!self.needs_platform || caller.require_platform().is_ok()).then_some(())
    }

    /// Does the same after a pause, so that a database that is busy is not asked without end.
    async fn pause_and_look_again(&mut self) -> Option<()> {
        tokio::time::sleep(LOOK_PAUSE).await;
        Box::pin(self.look_again()).await
    }

    /// Begins the check of an event for the caller as they are now.
    fn check_parts(&mut self, event: Arc<CommittedEvent>) {
        self.parts_check = Some(PartsCheck::begin(&self.app, &self.session_recheck, event, self.reader.is_live()));
    }

    /// The next frame. `None` ends the stream: the reader fell behind, the session ended, or the server drains.
    async fn next_frame(&mut self) -> Option<Bytes> {
        if let Some(opening) = self.form.opening.take() {
            return Some(opening);
        }
        if let Some(position) = self.position.take() {
            return Some(position);
        }
        loop {
            tokio::select! {
                // The end of a session is handled before an event is sent.
                biased;
                () = drained(&mut self.draining) => return None,
                _ = self.recheck.tick() => Box::pin(self.look_again()).await?,
                found = position_found(&mut self.positions) => {
                    if let Some(frames) = self.position_frames(found) {
                        return Some(frames);
                    }
                }
                next = next_shown(&mut self.reader, &mut self.parts_check, &self.app, &self.session_recheck) => {
                    let (event, shown, checked_for) = match next? {
                        Next::Event { event, shown, checked_for } => (event, shown, checked_for),
                        Next::CaughtUp => {
                            self.look_for_position(None);
                            continue;
                        }
                        // The caller's rights changed while the outbox was read. It is read again by their present rights.
                        Next::Refused => {
                            self.pause_and_look_again().await?;
                            continue;
                        }
                    };
                    // The check comes before each event, so an event committed after the caller lost a right is never shown, and
                    // one committed after the caller got a right is never missed.
                    if !self.session_recheck.is_current() && self.renewed_for != event.seq {
                        Box::pin(self.look_again()).await?;
                        self.renewed_for = event.seq;
                        self.check_parts(event);
                        continue;
                    }
                    // The caller was found again during the check of the event, so the check had their earlier rights.
                    if checked_for != self.session_recheck.generation() {
                        self.check_parts(event);
                        continue;
                    }
                    match shown {
                        Ok(Some(shown)) => {
                            if let Some(positions) = &mut self.positions {
                                positions.known = event.seq;
                            }
                            return Some((self.form.frame)(&shown));
                        }
                        Ok(None) => {}
                        // The caller's rights changed meanwhile, or the server is busy. The event is checked again.
                        Err(error) if matches!(error.code, Code::Forbidden | Code::Unauthorized | Code::Unavailable) => {
                            self.pause_and_look_again().await?;
                            self.check_parts(event);
                        }
                        Err(error) => {
                            tracing::warn!(error.cause = %error, "the visible parts of an event could not be determined; the stream ends");
                            return None;
                        }
                    }
                }
                _ = self.heartbeat.tick() => {
                    let heartbeat = self.form.heartbeat.clone();
                    if !self.look_for_position(heartbeat.clone()) && heartbeat.is_some() {
                        return heartbeat;
                    }
                }
            }
        }
    }

    /// Looks for a new position, if the reader has passed events since the client's last id. With its old id, the client would
    /// read all of them again, or could not continue once its event is purged. Returns whether it looks. `then` is sent after the
    /// position.
    fn look_for_position(&mut self, then: Option<Bytes>) -> bool {
        let passed = self.reader.passed();
        let Some(positions) = &mut self.positions else { return false };
        if self.parts_check.is_some() || positions.look.is_some() || passed <= positions.known {
            return false;
        }
        let (app, caller) = (Arc::clone(&self.app), self.session_recheck.caller().clone());
        let look = tokio::spawn(async move { app.position_at(&caller, passed).await });
        positions.look = Some(PositionLook { passed, look, then });
        true
    }

    /// The frame with a position that was found, and the frame after it. `None` if there is nothing to send.
    fn position_frames(&mut self, found: Result<(i64, String)>) -> Option<Bytes> {
        let positions = self.positions.as_mut()?;
        let mut look = positions.look.take()?;
        let frame = match found {
            // Events that were sent meanwhile are newer.
            Ok((number, _)) if number <= positions.known => None,
            Ok((_, position)) => Some((positions.frame)(&position)),
            Err(error) => {
                tracing::debug!(error.cause = %error, "the position of a stream could not be read");
                return look.then.take();
            }
        };
        positions.known = positions.known.max(look.passed);
        match (frame, look.then.take()) {
            (Some(frame), Some(then)) => Some([&frame[..], &then[..]].concat().into()),
            (frame, then) => frame.or(then),
        }
    }
}

/// The positions of a stream. Their ids are newer than those of the events that it has sent.
struct Positions {
    frame: fn(&str) -> Bytes,
    /// The number of the event or the position whose id the client has.
    known: i64,
    look: Option<PositionLook>,
}

/// A look for a position. It continues while the stream does something else.
struct PositionLook {
    /// The number up to which the reader had read.
    passed: i64,
    look: JoinHandle<Result<(i64, String)>>,
    /// The frame that is sent after the position.
    then: Option<Bytes>,
}

impl Drop for PositionLook {
    fn drop(&mut self) {
        self.look.abort();
    }
}

/// The result of the look for a position. It never resolves if there is no look.
async fn position_found(positions: &mut Option<Positions>) -> Result<(i64, String)> {
    match positions.as_mut().and_then(|positions| positions.look.as_mut()) {
        Some(look) => (&mut look.look).await.map_err(Error::internal).and_then(|found| found),
        None => std::future::pending().await,
    }
}

/// The event that a stream is about to show, and the check of which parts its reader may see. The check continues while the
/// stream does something else.
struct PartsCheck {
    event: Arc<CommittedEvent>,
    /// The state of the accounts in which the caller of this check was found.
    checked_for: Option<u64>,
    look: JoinHandle<Result<Option<Arc<CommittedEvent>>>>,
}

impl PartsCheck {
    /// `is_live` says whether the event comes from the feed. Then other streams show it at the same time, and share decisions
    /// about it.
    fn begin(app: &Arc<App>, session_recheck: &SessionRecheck, event: Arc<CommittedEvent>, is_live: bool) -> PartsCheck {
        let (app, caller, checked) = (Arc::clone(app), session_recheck.caller().clone(), Arc::clone(&event));
        let look = tokio::spawn(async move {
            match is_live {
                true => app.shown_live_event(&caller, &checked).await,
                false => app.shown_event(&caller, None, &checked).await,
            }
        });
        PartsCheck { event, checked_for: session_recheck.generation(), look }
    }
}

impl Drop for PartsCheck {
    fn drop(&mut self) {
        self.look.abort();
    }
}

/// A step of a stream.
enum Next {
    /// An event of which the caller may be shown some part, its shown form, and the state of the accounts in which this caller was
    /// found.
    Event { event: Arc<CommittedEvent>, shown: Result<Option<Arc<CommittedEvent>>>, checked_for: Option<u64> },
    /// The stream has read the outbox, and goes on with live events.
    CaughtUp,
    /// The caller may not read the outbox any more with the rights that they had.
    Refused,
}

/// The next step of a stream. An event stays in `parts_check` until its check has ended, so that nothing is lost if the future is
/// dropped. `None` ends the stream.
async fn next_shown(
    reader: &mut FeedReader,
    parts_check: &mut Option<PartsCheck>,
    app: &Arc<App>,
    session_recheck: &SessionRecheck,
) -> Option<Next> {
    let caller = session_recheck.caller();
    let under_way = match parts_check {
        Some(under_way) => under_way,
        None => {
            let event = match reader.step(caller, || session_recheck.is_current()).await? {
                Step::Event(event) => event,
                Step::CaughtUp => return Some(Next::CaughtUp),
                Step::Refused => return Some(Next::Refused),
            };
            if is_shown_whole(caller, &event) {
                let checked_for = session_recheck.generation();
                return Some(Next::Event { event: Arc::clone(&event), shown: Ok(Some(event)), checked_for });
            }
            parts_check.insert(PartsCheck::begin(app, session_recheck, event, reader.is_live()))
        }
    };
    let shown = (&mut under_way.look).await.map_err(Error::internal).and_then(|shown| shown);
    let of_ended = |ended: PartsCheck| Next::Event { event: Arc::clone(&ended.event), shown, checked_for: ended.checked_for };
    parts_check.take().map(of_ended)
}

/// Waits until the server drains or has ended.
async fn drained(draining: &mut watch::Receiver<bool>) {
    // A closed channel means that the server has ended.
    let _ = draining.wait_for(|draining| *draining).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_leaves_an_eighth_of_the_streams_to_others_and_learns_that() {
        let places = stream_places(STREAMS_MAX);
        let (busy, other) = (QuotaOwner::User("busy".into()), QuotaOwner::User("other".into()));
        let held: Vec<Place> = std::iter::from_fn(|| places.try_take(&busy).ok()).collect();
        assert_eq!(held.len(), STREAMS_MAX - STREAMS_MAX / 8);
        let refused = || no_place(places.held(&busy), places_of_one(STREAMS_MAX));
        assert_eq!(refused().code, Code::RateLimited);
        assert!(refused().message.contains("8750"), "{}", refused().message);
        let others: Vec<Place> = std::iter::from_fn(|| places.try_take(&other).ok()).collect();
        assert_eq!((others.len(), places.free()), (STREAMS_MAX / 8, 0));
        // All places are in use now. Only the first owner has as many as one may have.
        assert_eq!(refused().code, Code::RateLimited);
        let refused = no_place(places.held(&other), places_of_one(STREAMS_MAX));
        assert_eq!((refused.code, refused.retry_after_s.is_some()), (Code::Unavailable, true));
    }

    #[test]
    fn an_owner_with_as_many_streams_as_one_may_have_is_told_their_number() {
        let refused = no_place(3, places_of_one(3));
        assert_eq!(refused.code, Code::RateLimited);
        assert!(refused.message.starts_with("You have 3 streams open"), "{}", refused.message);
        // A place has become free after the refusal.
        assert_eq!(no_place(0, places_of_one(3)).code, Code::Unavailable);
    }
}

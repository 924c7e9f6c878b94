//! Open streams of the feed, as every surface has them: frames until the reader falls behind, its session ends or the server
//! drains.

use std::sync::Arc;
use std::time::Duration;

use blockbase_query::topic::TopicPattern;
use blockbase_quota::{Place, Places, PlacesRule, QuotaOwner};
use blockbase_schema::{BUSY_RETRY_AFTER_S, Code, Error, Result};
use blockbase_store::CommittedEvent;
use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::App;
use crate::access::session_recheck::Standing;
use crate::base::frames::{FrameSender, Frames, shared_frames};
use crate::caller::{Caller, Credentials};
use crate::delivery::feed::{FeedReader, event_shows};

/// How often a comment shows that the stream lives.
pub const HEARTBEAT: Duration = Duration::from_secs(15);
/// Event streams open at a time, on all surfaces together.
const STREAMS_MAX: usize = 10_000;
/// How often the caller is checked again, so that an ended session ends its streams.
const RECHECK: Duration = Duration::from_secs(1);
/// Frames made before the client has taken them.
const FRAMES_AHEAD: usize = 16;
/// How long a client may take no frame.
const STALLED_MAX: Duration = Duration::from_secs(30);
/// Topics of a stream that names none.
pub const TOPICS_DEFAULT: &str = "data.#";
/// Most patterns of one stream.
pub const PATTERNS_MAX: usize = 50;

/// What a stream shows, and how.
pub struct StreamRequest {
    /// Topic patterns. If the list is empty, the stream shows the events of all records.
    pub topics: Vec<String>,
    /// The id of the event after which it begins; else it begins now.
    pub since: Option<String>,
    /// Whether it belongs to a surface that has the platform's gate.
    pub needs_platform: bool,
    /// Turns true when the server drains.
    pub draining: watch::Receiver<bool>,
    pub form: StreamForm,
}

/// How a stream shows what it has.
pub struct StreamForm {
    /// The first frame, which tells the client that the stream is open.
    pub opening: Option<Bytes>,
    pub heartbeat: Option<Bytes>,
    pub frame: Box<dyn Fn(&CommittedEvent) -> Bytes + Send>,
}

/// Places for the open streams of all surfaces.
pub(crate) fn stream_places(of_one_max: usize) -> Arc<Places> {
    Places::new(PlacesRule::without_wait(STREAMS_MAX, of_one_max))
}

/// A place among the open streams, which are counted on all surfaces together, for as long as it is held.
pub struct StreamPlace {
    _place: Place,
    /// The same for telemetry.
    _counted: blockbase_telemetry::OpenStream,
}

impl App {
    /// How many streams are open, and how many may be.
    pub(crate) fn streams_open_and_max(&self) -> (usize, usize) {
        (STREAMS_MAX.saturating_sub(self.streams.free()), STREAMS_MAX)
    }

    /// A place for one more stream.
    ///
    /// # Errors
    /// `rate_limited` if the owner has as many as one may have, `unavailable` if the process has as many as may be.
    pub fn stream_place(&self, owner: &QuotaOwner) -> Result<StreamPlace> {
        let place = self.streams.try_take(owner).map_err(|_| {
            let most = self.settings.streams_of_one_max;
            let (code, message) = match self.streams.held(owner) >= most {
                true => {
                    let message = format!(
                        "You have {most} streams open, the most that one caller may have. Close one, or try again later."
                    );
                    (Code::RateLimited, message)
                }
                false => {
                    let message = "This server has as many event streams open as it allows. Try again later.";
                    (Code::Unavailable, message.to_owned())
                }
            };
            Error::new(code, message).with_retry_after(BUSY_RETRY_AFTER_S)
        })?;
        Ok(StreamPlace { _place: place, _counted: blockbase_telemetry::stream_opened() })
    }

    /// Whether the caller is one who may have streams.
    ///
    /// # Errors
    /// `unauthorized` for callers that nobody knows, under enforcement.
    pub fn may_stream(&self, caller: &Caller) -> Result<()> {
        match self.settings.require_auth && !caller.is_known() {
            true => {
                Err(Error::new(Code::Unauthorized, "Authentication required. An event stream needs a session or an API key."))
            }
            false => Ok(()),
        }
    }

    /// Opens a stream: its frames, which end with it.
    ///
    /// # Errors
    /// `unauthorized` for callers that nobody knows, under enforcement; `invalid_request` for malformed topics, `not_found`
    /// for an event that the outbox does not hold, `rate_limited` and `unavailable` if there are as many streams as may be.
    pub async fn open_stream(
        self: &Arc<Self>,
        caller: Caller,
        credentials: &Credentials,
        request: StreamRequest,
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
        let since = match request.since {
            Some(since) if since.contains('\0') => {
                return Err(Error::invalid_request("The id of the event to go on after holds a NUL character."));
            }
            Some(since) => Some(self.event_seq(&caller, &since).await?),
            None if self.feed().has_started() => None,
            // The feed may begin behind what is written from now on: on Postgres it waits for the transactions that it found under way.
            None => {
                Some(self.look_up(&caller, |connection| Box::pin(async move { Ok(connection.last_event_seq().await?) })).await?)
            }
        };
        let place = self.stream_place(caller.quota_owner())?;
        let interval = |period: Duration| {
            let mut interval = interval_at(Instant::now() + period, period);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        };
        let open = OpenStream {
            reader: match since {
                Some(seq) => self.feed().read_after(Arc::clone(self), patterns, seq),
                None => self.feed().read(patterns),
            },
            app: Arc::clone(self),
            standing: Standing::new(self, caller, credentials),
            needs_platform: request.needs_platform,
            heartbeat: interval(HEARTBEAT),
            recheck: interval(RECHECK),
            draining: request.draining,
            form: request.form,
            _place: place,
        };
        // A task of its own notices that the reader lags, that its session ended and that the server drains, also while the
        // client reads nothing.
        let (sender, frames) = shared_frames(FRAMES_AHEAD);
        tokio::spawn(open.run(sender));
        Ok(frames)
    }
}

struct OpenStream {
    reader: FeedReader,
    app: Arc<App>,
    standing: Standing,
    needs_platform: bool,
    heartbeat: Interval,
    recheck: Interval,
    draining: watch::Receiver<bool>,
    form: StreamForm,
    _place: StreamPlace,
}

impl OpenStream {
    /// Sends frames until the stream ends or the client has taken none for too long.
    async fn run(mut self, sender: FrameSender) {
        loop {
            let frame = tokio::select! {
                frame = self.next_frame() => frame,
                () = sender.closed() => None,
            };
            let Some(frame) = frame else { return };
            let stalled = tokio::time::sleep(STALLED_MAX);
            tokio::pin!(stalled);
            // First take a place for the frame. The caller is checked again also while the stream waits for one.
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

    /// The caller as they are now; `None` if they are not any more who may have a stream.
    ///
    /// Boxed where it is called: its state is larger than all else that a stream needs, and is there for a moment a second.
    async fn look_again(&mut self) -> Option<()> {
        self.standing.renew().await?;
        let caller = self.standing.caller();
        self.app.may_stream(caller).ok()?;
        (!self.needs_platform || caller.require_platform().is_ok()).then_some(())
    }

    /// The next frame; `None` ends the stream: the reader fell behind, the session ended, or the server drains.
    async fn next_frame(&mut self) -> Option<Bytes> {
        if let Some(opening) = self.form.opening.take() {
            return Some(opening);
        }
        loop {
            tokio::select! {
                // Before an event goes out, an ended session has its say.
                biased;
                () = drained(&mut self.draining) => return None,
                _ = self.recheck.tick() => Box::pin(self.look_again()).await?,
                event = self.reader.next(self.standing.caller()) => {
                    let event = event?;
                    // Nothing that was committed after the caller lost a right is shown, so the look is before each event.
                    if !self.standing.is_current() {
                        Box::pin(self.look_again()).await?;
                        if !event_shows(self.standing.caller(), &event) {
                            continue;
                        }
                    }
                    return Some((self.form.frame)(&event));
                }
                _ = self.heartbeat.tick() => {
                    if let Some(heartbeat) = &self.form.heartbeat {
                        return Some(heartbeat.clone());
                    }
                }
            }
        }
    }
}

/// Waits until the server drains, or is gone.
async fn drained(draining: &mut watch::Receiver<bool>) {
    // A closed channel means that the server is gone.
    let _ = draining.wait_for(|draining| *draining).await;
}

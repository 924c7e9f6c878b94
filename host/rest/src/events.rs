//! `GET /api/v1/events/stream`: the live feed as Server-Sent Events.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use blockbase_app::schema::{Code, Error};
use blockbase_app::{App, Caller, Credentials, FeedReader, RenewalSlot, TopicPattern};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::AppState;
use crate::error::ApiError;
use crate::extract::{Authenticated, Presented, QueryPairs};

/// How often a comment shows that the stream lives.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often the caller is looked at again, so that an ended session ends its streams.
const RECHECK: Duration = Duration::from_secs(1);
/// Frames made before the client has taken them.
const FRAMES_AHEAD: usize = 16;
/// How long a client may take no frame.
const STALLED_MAX: Duration = Duration::from_secs(30);
/// Topics of a stream that names none.
const TOPICS_DEFAULT: &str = "data.#";
/// Most patterns of one stream.
const PATTERNS_MAX: usize = 50;

pub(crate) async fn stream(
    State(state): State<AppState>,
    Authenticated(caller): Authenticated,
    Presented(credentials): Presented,
    query: QueryPairs,
) -> Result<Response, ApiError> {
    let settings = state.app.settings();
    if settings.require_auth && !caller.is_known() {
        return Err(
            Error::new(Code::Unauthorized, "Authentication required. An event stream needs a session or an API key.").into()
        );
    }
    query.only(&["topics", "since"])?;
    let topics = query.get("topics").filter(|topics| !topics.is_empty()).unwrap_or(TOPICS_DEFAULT);
    let patterns = topics.split(',').map(|topic| TopicPattern::parse(topic.trim())).collect::<Result<Vec<_>, _>>()?;
    if patterns.len() > PATTERNS_MAX {
        return Err(Error::invalid_request(format!("A stream takes {PATTERNS_MAX} topic patterns at most.")).into());
    }
    let since = match query.get("since").filter(|since| !since.is_empty()) {
        Some(since) if since.contains('\0') => return Err(Error::invalid_request("`since` holds a NUL character.").into()),
        Some(since) => Some(state.app.event_seq(since).await?),
        None => None,
    };
    let permit = Arc::clone(&state.streams).try_acquire_owned().map_err(|_| {
        Error::new(Code::Unavailable, "This server has as many event streams open as it allows. Try again later.")
    })?;
    let interval = |period: Duration| {
        let mut interval = interval_at(Instant::now() + period, period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        interval
    };
    let open = OpenStream {
        reader: match since {
            Some(seq) => state.app.feed().read_after(Arc::clone(&state.app), patterns, seq),
            None => state.app.feed().read(patterns),
        },
        app: Arc::clone(&state.app),
        // What looks again later has no answer left to tell a client by that its session was extended.
        credentials: Credentials { renewal: RenewalSlot::default(), ..credentials },
        caller,
        heartbeat: interval(HEARTBEAT),
        recheck: interval(RECHECK),
        draining: state.draining.clone(),
        is_new: true,
        _permit: permit,
        _counted: blockbase_telemetry::stream_opened(),
    };
    // A task of its own notices that the reader lags, that its session ended and that the server drains, also while the
    // client reads nothing.
    let (sender, mut frames) = mpsc::channel(FRAMES_AHEAD);
    tokio::spawn(open.run(sender));
    let frames =
        stream::poll_fn(move |context| frames.poll_recv(context).map(|frame| frame.map(Ok::<_, std::convert::Infallible>)));
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

struct OpenStream {
    reader: FeedReader,
    app: Arc<App>,
    credentials: Credentials,
    caller: Caller,
    heartbeat: Interval,
    recheck: Interval,
    draining: watch::Receiver<bool>,
    is_new: bool,
    /// Counts the stream among those that are open.
    _permit: OwnedSemaphorePermit,
    /// The same for telemetry.
    _counted: blockbase_telemetry::OpenStream,
}

impl OpenStream {
    /// Sends frames until the stream ends or the client has taken none for too long.
    async fn run(mut self, sender: mpsc::Sender<Bytes>) {
        loop {
            let frame = tokio::select! {
                frame = self.next_frame() => frame,
                () = sender.closed() => None,
            };
            let Some(frame) = frame else { return };
            let stalled = tokio::time::sleep(STALLED_MAX);
            tokio::pin!(stalled);
            // A place for the frame first: while there is none, the caller is looked at again all the same.
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
                    place = sender.reserve() => break place,
                }
            };
            let Ok(place) = place else { return };
            place.send(frame);
        }
    }

    /// The caller as they are now; `None` where they are not any more who may have a stream.
    ///
    /// Boxed where it is called: its state is larger than all else that a stream needs, and is there for a moment a second.
    async fn look_again(&mut self) -> Option<()> {
        self.caller = self.app.authenticate(&self.credentials).await.ok()?;
        (!self.app.settings().require_auth || self.caller.is_known()).then_some(())
    }

    /// The next frame; `None` ends the stream: the reader fell behind, the session ended, or the server drains.
    async fn next_frame(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.is_new) {
            return Some(Bytes::from_static(b": open\n\n"));
        }
        loop {
            tokio::select! {
                // Before an event goes out, an ended session has its say.
                biased;
                () = drained(&mut self.draining) => return None,
                _ = self.recheck.tick() => Box::pin(self.look_again()).await?,
                event = self.reader.next(&self.caller) => {
                    return Some(event?.frame());
                }
                _ = self.heartbeat.tick() => return Some(Bytes::from_static(b": heartbeat\n\n")),
            }
        }
    }
}

/// Waits until the server drains, or is gone.
async fn drained(draining: &mut watch::Receiver<bool>) {
    let _ = draining.wait_for(|draining| *draining).await;
}

//! The stream of a session. It only notifies the client that the list of tools changed.

use std::convert::Infallible;

use blockbase_app::{CLIENT_STALLED_MAX, HEARTBEAT, StreamPlace};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::{mpsc, watch};

use crate::answer::Answer;
use crate::call::Invoked;
use crate::session::StreamOfSession;
use crate::watch::{Watched, every};
use crate::{Mcp, answer, message};

/// The maximum number of frames that wait for the client.
const FRAMES_AHEAD: usize = 4;

const OPEN: &[u8] = b": open\n\n";
const ALIVE: &[u8] = b": heartbeat\n\n";
const LIST_CHANGED: &[u8] = b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";

struct Open {
    watched: Watched,
    /// Becomes true when the session ends.
    ended: watch::Receiver<bool>,
    draining: watch::Receiver<bool>,
    _of_session: StreamOfSession,
    _place: StreamPlace,
}

impl Mcp {
    /// `GET`: the stream of the session that the request names.
    pub(crate) fn stream(&self, invoked: &Invoked, parts: &http::request::Parts) -> Answer {
        if !message::accepts(&parts.headers, "text/event-stream") {
            let text = "GET opens an event stream. Send `Accept: text/event-stream`.";
            return answer::error(StatusCode::NOT_ACCEPTABLE, answer::INVALID_REQUEST, text, None, None);
        }
        let session = match self.sessions.named(&parts.headers, &invoked.caller) {
            Ok(session) => session,
            Err(refused) => return *refused,
        };
        let opened = self.app.stream_place(invoked.caller.quota_owner()).and_then(|place| Ok((place, session.open_stream()?)));
        let (place, of_session) = match opened {
            Ok(opened) => opened,
            Err(error) => return answer::refused(&error, None),
        };
        let open = Open {
            watched: Watched::new(&self.app, invoked, session.known_tools(), self.draining.clone()),
            ended: session.watch_end(),
            draining: self.draining.clone(),
            _of_session: of_session,
            _place: place,
        };
        // A separate task notices when the client's rights end, even if the client does not read.
        let (sender, mut frames) = mpsc::channel(FRAMES_AHEAD);
        tokio::spawn(open.run(sender));
        let frames = stream::poll_fn(move |context| {
            frames.poll_recv(context).map(|frame| frame.map(|frame| Ok::<_, Infallible>(Frame::data(frame))))
        });
        let mut response = Response::new(BodyExt::boxed(StreamBody::new(frames)));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }
}

impl Open {
    async fn run(mut self, sender: mpsc::Sender<Bytes>) {
        let mut heartbeat = every(HEARTBEAT);
        let mut frame = OPEN;
        loop {
            tokio::select! {
                biased;
                _ = self.draining.wait_for(|draining| *draining) => return,
                taken = sender.send_timeout(Bytes::from_static(frame), CLIENT_STALLED_MAX) => if taken.is_err() {
                    return;
                }
            }
            frame = tokio::select! {
                biased;
                _ = self.ended.wait_for(|ended| *ended) => return,
                () = sender.closed() => return,
                changed = self.watched.changed() => match changed {
                    Some(()) => LIST_CHANGED,
                    None => return,
                },
                _ = heartbeat.tick() => ALIVE,
            };
        }
    }
}

//! Reads the rest of bodies that no handler reads. If a request is refused early, its body is still read for a while. Otherwise a
//! client that is still sending when the connection closes would not see the response.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;

/// The maximum number of bytes of a body that are read and dropped.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// The longest time for reading the rest of a body.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A request's body. If it is dropped before its end, the rest is still read.
struct DrainOnDrop(Option<Body>);

/// Wraps a body, so that its rest is read when it is dropped. An empty body stays as it is.
pub(crate) fn drain_on_drop(body: Body) -> Body {
    match body.is_end_stream() {
        true => body,
        false => Body::new(DrainOnDrop(Some(body))),
    }
}

async fn drop_rest(mut body: Body) {
    let mut dropped = 0_usize;
    while let Some(Ok(frame)) = body.frame().await {
        dropped += frame.data_ref().map_or(0, Bytes::len);
        if dropped > BYTES_MAX {
            return;
        }
    }
}

impl HttpBody for DrainOnDrop {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = self.0.as_mut() else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.0 = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for DrainOnDrop {
    fn drop(&mut self) {
        let Some(body) = self.0.take().filter(|body| !body.is_end_stream()) else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tokio::time::timeout(TIMEOUT, drop_rest(body)));
        }
    }
}

//! Counts the bytes of responses on their way to the client. They count until they are written to the connection, even if the
//! client does not read them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::response::Response;
use blockbase_quota::{ByteQuota, BytesHeld, QuotaOwner};
use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// Smaller bodies and frames do not count, because they need no more memory than the connection itself, and the number of
/// connections is limited.
const COUNTED_BYTES_MIN: usize = 16 * 1024;

/// Counts the body of a response. If its size is not known, counts it frame by frame.
pub(crate) fn counted(response: Response, quota: &Arc<ByteQuota>, owner: impl FnOnce() -> QuotaOwner) -> Response {
    let exact = response.body().size_hint().exact().map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if exact.is_some_and(|bytes| bytes < COUNTED_BYTES_MIN) {
        return response;
    }
    let owner = owner();
    let whole = exact.map(|bytes| quota.hold(&owner, bytes));
    response.map(|body| Body::new(Counted { body, whole, quota: Arc::clone(quota), owner }))
}

struct Counted {
    body: Body,
    /// The count of a body that has one frame.
    whole: Option<BytesHeld>,
    quota: Arc<ByteQuota>,
    owner: QuotaOwner,
}

/// Bytes that count until the connection has written all of them.
struct CountedBytes {
    bytes: Bytes,
    _held: BytesHeld,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let Poll::Ready(Some(Ok(frame))) = polled else { return polled };
        let frame = match frame.into_data() {
            Ok(bytes) if bytes.len() >= COUNTED_BYTES_MIN => {
                let held = self.whole.take().unwrap_or_else(|| self.quota.hold(&self.owner, bytes.len()));
                Frame::data(Bytes::from_owner(CountedBytes { bytes, _held: held }))
            }
            Ok(bytes) => Frame::data(bytes),
            Err(other) => other,
        };
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use blockbase_quota::BytesRule;
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn bytes_count_until_the_last_of_them_is_written() {
        let rule = BytesRule { all: 1 << 20, each: 1 << 20, waiting_each: 1, waiting: 1, wait: Duration::ZERO };
        let (quota, owner) = (ByteQuota::new(rule), || QuotaOwner::of_address(None));
        let response = |bytes: usize| counted(Response::new(Body::from(vec![0_u8; bytes])), &quota, owner);
        let _small = response(COUNTED_BYTES_MIN - 1);
        assert_eq!(quota.bytes(), 0);
        let large = response(100_000);
        assert_eq!(quota.bytes(), 100_000, "the body counts as soon as it exists");
        assert_eq!(large.body().size_hint().exact(), Some(100_000));
        let mut body = large.into_body();
        let mut bytes = body.frame().await.expect("a frame").expect("no error").into_data().expect("data");
        drop(body);
        let last = bytes.split_off(99_999);
        drop(bytes);
        assert_eq!(quota.bytes(), 100_000, "its memory is still in use");
        drop(last);
        assert_eq!(quota.bytes(), 0);
        let frames = futures_util::stream::iter([vec![0_u8; 50_000], vec![0; 10]].map(Ok::<_, std::io::Error>));
        let mut body = counted(Response::new(Body::from_stream(frames)), &quota, owner).into_body();
        assert_eq!(quota.bytes(), 0);
        let frame = body.frame().await;
        assert_eq!(quota.bytes(), 50_000);
        drop((frame, body.frame().await));
        assert_eq!(quota.bytes(), 0);
    }
}

//! Queues of frames for the clients of streams. The number and the bytes of the waiting frames are bounded, even if a client
//! reads slowly.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use blockbase_quota::{ByteQuota, BytesHeld, QuotaOwner};
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// The longest time for which a client may leave the data that waits for it unread.
pub const CLIENT_STALLED_MAX: Duration = Duration::from_secs(30);
/// The maximum number of bytes of frames that may wait for a client. A single frame may be larger.
const BYTES_AHEAD_MAX: u32 = 1024 * 1024;

/// The sending end of a queue.
#[derive(Clone)]
pub struct FrameSender {
    sender: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
    /// A quota that also counts the frames, both while they wait for room and while they wait for the client.
    counted: Option<(Arc<ByteQuota>, QuotaOwner)>,
}

/// A frame that waits for the client.
struct Waiting {
    frame: Bytes,
    _room: OwnedSemaphorePermit,
    _held: Option<BytesHeld>,
}

/// The receiving end of a queue, from which the client's connection takes frames.
pub struct Frames(mpsc::Receiver<Waiting>);

/// A queue of at most `frames_max` frames.
pub(crate) fn frames(frames_max: usize, counted: Option<(Arc<ByteQuota>, QuotaOwner)>) -> (FrameSender, Frames) {
    let (sender, receiver) = mpsc::channel(frames_max);
    (FrameSender { sender, room: Arc::new(Semaphore::new(BYTES_AHEAD_MAX as usize)), counted }, Frames(receiver))
}

/// A queue of at most `frames_max` frames that all streams share. Their bytes are not counted, because a stream uses no memory of
/// its own for them.
pub(crate) fn shared_frames(frames_max: usize) -> (FrameSender, Frames) {
    frames(frames_max, None)
}

/// Room in a queue for one frame.
pub struct FramePlace<'s> {
    slot: mpsc::Permit<'s, Waiting>,
    room: OwnedSemaphorePermit,
    held: Option<BytesHeld>,
}

impl FramePlace<'_> {
    pub fn send(self, frame: Bytes) {
        self.slot.send(Waiting { frame, _room: self.room, _held: self.held });
    }
}

impl FrameSender {
    /// Waits until there is room for a frame of `bytes` bytes. `None` once the client has disconnected.
    pub async fn room(&self, bytes: usize) -> Option<FramePlace<'_>> {
        // The frame already exists, so its bytes count while it waits.
        let held = self.counted.as_ref().map(|(quota, owner)| quota.hold(owner, bytes));
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(BYTES_AHEAD_MAX);
        let room = tokio::select! {
            room = Arc::clone(&self.room).acquire_many_owned(bytes) => room.ok()?,
            () = self.sender.closed() => return None,
        };
        Some(FramePlace { slot: self.sender.reserve().await.ok()?, room, held })
    }

    /// Sends a frame once there is room. Returns whether the client is still connected.
    pub async fn send(&self, frame: Bytes) -> bool {
        match self.room(frame.len()).await {
            Some(place) => {
                place.send(frame);
                true
            }
            None => false,
        }
    }

    /// Waits until the client has disconnected.
    pub async fn closed(&self) {
        self.sender.closed().await;
    }
}

impl Frames {
    /// The next frame. `None` at the end.
    pub async fn next(&mut self) -> Option<Bytes> {
        self.0.recv().await.map(|waiting| waiting.frame)
    }

    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.poll_recv(context).map(|next| next.map(|waiting| waiting.frame))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn few_bytes_wait_for_a_slow_client() {
        let quota = crate::access::quota::response_bytes();
        let (sender, mut frames) = frames(16, Some((Arc::clone(&quota), QuotaOwner::Service)));
        let large = Bytes::from(vec![0; 3 * BYTES_AHEAD_MAX as usize]);
        let waits = async |bytes| tokio::time::timeout(Duration::from_millis(50), sender.room(bytes)).await.is_err();
        assert!(sender.send(large.clone()).await);
        assert!(waits(1).await, "a larger frame waits alone");
        assert_eq!(quota.bytes(), large.len());
        assert_eq!(frames.next().await.map(|frame| frame.len()), Some(large.len()));
        for _ in 0..16 {
            assert!(sender.send(Bytes::from_static(b"x")).await);
        }
        assert!(waits(1).await, "the queue is full");
        assert!(waits(large.len()).await);
        drop(frames);
        assert!(!sender.send(large).await);
        assert_eq!(quota.bytes(), 0);
    }
}

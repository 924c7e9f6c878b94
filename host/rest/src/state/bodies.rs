//! Limits the bytes of request bodies in memory, for the whole process and for each owner.
//!
//! As soon as a body begins to arrive, its complete announced size counts in its owner's share. In the total, only the bytes that
//! have arrived count. So an upload that stalls takes no room from other owners, and two half-sent bodies of one owner never wait
//! for each other.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use blockbase_app::QuotaOwner;
use blockbase_app::schema::{Error, Result};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// The maximum number of bytes of all bodies together.
const BYTES_MAX: usize = 256 * 1024 * 1024;
/// The maximum number of bytes of one owner's bodies. A larger body is admitted if its owner has no other.
const BYTES_OF_ONE_MAX: usize = BYTES_MAX / 8;
/// The longest time that a body waits for room.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// The maximum number of bodies that wait: of all owners, and of one owner.
const WAITING_MAX: usize = 1_000;
const WAITING_OF_ONE_MAX: usize = 100;

/// The bodies that are in memory.
pub(crate) struct Bodies {
    bytes_max: usize,
    of_one_max: usize,
    wait_max: Duration,
    state: Mutex<State>,
    /// Notified when a body is dropped.
    freed: Notify,
}

#[derive(Default)]
struct State {
    arrived: usize,
    waiting: usize,
    owners: HashMap<QuotaOwner, Share>,
}

/// The bodies of one owner.
#[derive(Default)]
struct Share {
    reserved: usize,
    bodies: usize,
    waiting: usize,
}

impl Default for Bodies {
    fn default() -> Self {
        Bodies {
            bytes_max: BYTES_MAX,
            of_one_max: BYTES_OF_ONE_MAX,
            wait_max: WAIT_MAX,
            state: Mutex::default(),
            freed: Notify::new(),
        }
    }
}

/// The place of one body. Dropping it frees the bytes.
pub(crate) struct BodyPlace {
    bodies: Arc<Bodies>,
    owner: QuotaOwner,
    reserved: usize,
    arrived: usize,
}

impl std::fmt::Debug for BodyPlace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("BodyPlace").field("arrived", &self.arrived).finish_non_exhaustive()
    }
}

impl Bodies {
    /// The bytes that a body counts against its owner's share. A body that is larger than the share was admitted because its
    /// owner had no other. It counts as 0 bytes, so that smaller bodies can use the share.
    fn counted(&self, bytes: usize) -> usize {
        if bytes > self.of_one_max { 0 } else { bytes }
    }

    /// Makes a place for a body that has not begun to arrive.
    pub(crate) fn place(self: &Arc<Self>, owner: QuotaOwner) -> BodyPlace {
        BodyPlace { bodies: Arc::clone(self), owner, reserved: 0, arrived: 0 }
    }
}

impl BodyPlace {
    /// Makes room for `bytes` that have arrived. `announced` is the complete size of the body, as far as it is known.
    ///
    /// # Errors
    /// `unavailable` if there is no room in time.
    pub(crate) async fn arrive(&mut self, bytes: usize, announced: usize) -> Result<()> {
        let expected = announced.max(self.arrived + bytes);
        if self.take(bytes, expected) {
            return Ok(());
        }
        let _waiting = Waiting::begin(&self.bodies, &self.owner)?;
        let (bodies, deadline) = (Arc::clone(&self.bodies), Instant::now() + self.bodies.wait_max);
        loop {
            let freed = bodies.freed.notified();
            tokio::pin!(freed);
            // From here on, no notification is lost.
            freed.as_mut().enable();
            if self.take(bytes, expected) {
                return Ok(());
            }
            timeout_at(deadline, freed).await.map_err(|_| no_room())?;
        }
    }

    /// Takes the room and returns true, if there is enough.
    fn take(&mut self, bytes: usize, expected: usize) -> bool {
        let mut state = self.bodies.state.lock();
        let is_only_one_of_all = state.arrived == self.arrived;
        if state.arrived + bytes > self.bodies.bytes_max && !is_only_one_of_all {
            return false;
        }
        let is_new = self.reserved == 0;
        let share = state.owners.entry(self.owner.clone()).or_default();
        let others = share.bodies - usize::from(!is_new);
        let reserved = share.reserved - self.bodies.counted(self.reserved);
        // This body was admitted before and may continue, because it is larger than the share, or because its complete size is
        // reserved.
        let is_admitted = self.reserved > self.bodies.of_one_max || expected <= self.reserved;
        let is_past_share = reserved + expected > self.bodies.of_one_max;
        if !is_admitted && is_past_share && (others > 0 || expected <= self.bodies.of_one_max) {
            state.forget(&self.owner);
            return false;
        }
        share.bodies = others + 1;
        share.reserved = reserved + self.bodies.counted(expected);
        state.arrived += bytes;
        (self.reserved, self.arrived) = (expected, self.arrived + bytes);
        true
    }
}

impl Drop for BodyPlace {
    fn drop(&mut self) {
        if self.reserved == 0 {
            return;
        }
        let mut state = self.bodies.state.lock();
        state.arrived -= self.arrived;
        if let Some(share) = state.owners.get_mut(&self.owner) {
            share.bodies -= 1;
            share.reserved -= self.bodies.counted(self.reserved);
        }
        state.forget(&self.owner);
        drop(state);
        self.bodies.freed.notify_waiters();
    }
}

impl State {
    /// Drops the entry of an owner without bodies.
    fn forget(&mut self, owner: &QuotaOwner) {
        if self.owners.get(owner).is_some_and(|share| share.bodies == 0 && share.waiting == 0) {
            self.owners.remove(owner);
        }
    }
}

/// A body that waits for room.
struct Waiting {
    bodies: Arc<Bodies>,
    owner: QuotaOwner,
}

impl Waiting {
    fn begin(bodies: &Arc<Bodies>, owner: &QuotaOwner) -> Result<Waiting> {
        let mut state = bodies.state.lock();
        let all = state.waiting;
        let share = state.owners.entry(owner.clone()).or_default();
        if all >= WAITING_MAX || share.waiting >= WAITING_OF_ONE_MAX {
            state.forget(owner);
            return Err(no_room());
        }
        share.waiting += 1;
        state.waiting += 1;
        Ok(Waiting { bodies: Arc::clone(bodies), owner: owner.clone() })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.bodies.state.lock();
        state.waiting -= 1;
        if let Some(share) = state.owners.get_mut(&self.owner) {
            share.waiting -= 1;
        }
        state.forget(&self.owner);
    }
}

fn no_room() -> Error {
    let message = "The server has too many bytes of request bodies in flight, in all or from this caller. Try again later.";
    Error::busy(message)
}

#[cfg(test)]
mod tests {
    use blockbase_app::schema::{BUSY_RETRY_AFTER_S, Code};

    use super::*;

    fn bodies(bytes_max: usize, of_one_max: usize) -> Arc<Bodies> {
        Arc::new(Bodies { bytes_max, of_one_max, wait_max: Duration::from_millis(50), ..Bodies::default() })
    }

    fn owner(number: u8) -> QuotaOwner {
        QuotaOwner::at(std::net::IpAddr::from([192, 0, 2, number]))
    }

    #[tokio::test]
    async fn an_owner_has_a_share_and_a_larger_body_only_alone() {
        let bodies = bodies(800, 100);
        let mut large = bodies.place(owner(1));
        large.arrive(10, 300).await.expect("the only one");
        let refused = bodies.place(owner(1)).arrive(1, 101).await.expect_err("not the only one");
        assert_eq!((refused.code, refused.retry_after_s.map(u16::from)), (Code::Unavailable, Some(BUSY_RETRY_AFTER_S)));
        bodies.place(owner(2)).arrive(60, 60).await.expect("another's share");
        let mut second = bodies.place(owner(1));
        second.arrive(1, 1).await.expect("the share is for small ones");
        large.arrive(10, 300).await.expect("it continues while a small body exists");
        large.arrive(281, 300).await.expect("also past what it announced");
        drop(large);
        bodies.place(owner(1)).arrive(1, 101).await.expect_err("still not the only one");
        bodies.place(owner(1)).arrive(99, 99).await.expect("the rest of the share");
        bodies.place(owner(1)).arrive(1, 100).await.expect_err("more than the rest");
    }

    #[tokio::test]
    async fn what_stalls_takes_nothing_from_others_and_what_ends_lets_them_in() {
        let bodies = bodies(100, 80);
        let mut stalled = Vec::new();
        for number in 0..50 {
            let mut place = bodies.place(owner(number));
            place.arrive(1, 80).await.expect("one byte");
            stalled.push(place);
        }
        let mut whole = bodies.place(owner(60));
        whole.arrive(50, 50).await.expect("bytes that did not arrive are free");
        let waiting = tokio::spawn({
            let mut place = bodies.place(owner(61));
            async move { place.arrive(50, 50).await }
        });
        tokio::task::yield_now().await;
        drop(whole);
        waiting.await.expect("no panic").expect("room");
        drop(stalled);
        let state = bodies.state.lock();
        assert_eq!((state.arrived, state.waiting, state.owners.len()), (0, 0, 0));
    }
}

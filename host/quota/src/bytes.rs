//! Shares memory between owners. It counts the bytes that wait for clients, both for each owner and in total.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::{Busy, QuotaOwner};

/// The rule for sharing bytes.
#[derive(Clone, Copy, Debug)]
pub struct BytesRule {
    /// The maximum number of bytes of all owners together.
    pub all: usize,
    /// The maximum number of bytes of one owner.
    pub each: usize,
    /// The maximum number of requests that wait for room, of one owner and of all.
    pub waiting_each: usize,
    pub waiting: usize,
    /// The longest time that a request waits.
    pub wait: Duration,
}

/// Bytes that owners share.
///
/// The size of a response is often known only when it exists. So a caller waits for [`ByteQuota::room`] before it makes bytes,
/// and calls [`ByteQuota::hold`] afterwards to count them. An owner can exceed its share by the bytes that its requests make at
/// the same time. It then gets no further room until it is below its share again.
#[derive(Debug)]
pub struct ByteQuota {
    rule: BytesRule,
    /// The bytes of all owners together. While they are few, the shares need not be checked.
    total: AtomicUsize,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    bytes: usize,
    waiting: usize,
    owners: HashMap<QuotaOwner, Share>,
}

#[derive(Debug, Default)]
struct Share {
    bytes: usize,
    waiting: usize,
}

impl State {
    fn forget(&mut self, owner: &QuotaOwner) {
        if self.owners.get(owner).is_some_and(|share| share.bytes == 0 && share.waiting == 0) {
            self.owners.remove(owner);
        }
    }
}

/// Bytes that count until this is dropped.
#[derive(Debug)]
pub struct BytesHeld {
    quota: Arc<ByteQuota>,
    owner: QuotaOwner,
    bytes: usize,
}

impl Drop for BytesHeld {
    fn drop(&mut self) {
        self.quota.give_back(&self.owner, self.bytes);
    }
}

impl ByteQuota {
    pub fn new(rule: BytesRule) -> Arc<ByteQuota> {
        Arc::new(ByteQuota { rule, total: AtomicUsize::new(0), state: Mutex::default(), freed: Notify::new() })
    }

    /// The counted bytes of all owners.
    pub fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Whether an owner is below its share.
    pub fn has_room(&self, owner: &QuotaOwner) -> bool {
        if self.total.load(Ordering::Relaxed) < self.rule.each.min(self.rule.all) {
            return true;
        }
        let state = self.state.lock();
        let own = state.owners.get(owner).map_or(0, |share| share.bytes);
        // An owner without any bytes always gets room, so that other owners cannot prevent it from working.
        own == 0 || (own < self.rule.each && state.bytes < self.rule.all)
    }

    /// Waits until an owner is below its share.
    ///
    /// # Errors
    /// [`Busy`] if too many requests wait, or the wait is too long.
    pub async fn room(&self, owner: &QuotaOwner) -> Result<(), Busy> {
        if owner.is_service() || self.has_room(owner) {
            return Ok(());
        }
        let _waits = Waits::begin(self, owner)?;
        let deadline = Instant::now() + self.rule.wait;
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // From here on, no notification is lost.
            freed.as_mut().enable();
            if self.has_room(owner) {
                return Ok(());
            }
            timeout_at(deadline, freed).await.map_err(|_| Busy)?;
        }
    }

    /// Counts bytes that already exist.
    pub fn hold(self: &Arc<Self>, owner: &QuotaOwner, bytes: usize) -> BytesHeld {
        let mut state = self.state.lock();
        state.bytes += bytes;
        self.total.store(state.bytes, Ordering::Relaxed);
        state.owners.entry(owner.clone()).or_default().bytes += bytes;
        drop(state);
        BytesHeld { quota: Arc::clone(self), owner: owner.clone(), bytes }
    }

    fn give_back(&self, owner: &QuotaOwner, bytes: usize) {
        let mut state = self.state.lock();
        state.bytes -= bytes;
        self.total.store(state.bytes, Ordering::Relaxed);
        if let Some(share) = state.owners.get_mut(owner) {
            share.bytes -= bytes;
        }
        state.forget(owner);
        let others_wait = state.waiting > 0;
        drop(state);
        if others_wait {
            self.freed.notify_waiters();
        }
    }
}

/// A request that waits for room.
struct Waits<'q> {
    quota: &'q ByteQuota,
    owner: &'q QuotaOwner,
}

impl<'q> Waits<'q> {
    fn begin(quota: &'q ByteQuota, owner: &'q QuotaOwner) -> Result<Waits<'q>, Busy> {
        let mut state = quota.state.lock();
        let all = state.waiting;
        let share = state.owners.entry(owner.clone()).or_default();
        if all >= quota.rule.waiting || share.waiting >= quota.rule.waiting_each {
            state.forget(owner);
            return Err(Busy);
        }
        share.waiting += 1;
        state.waiting += 1;
        Ok(Waits { quota, owner })
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut state = self.quota.state.lock();
        state.waiting -= 1;
        if let Some(share) = state.owners.get_mut(self.owner) {
            share.waiting -= 1;
        }
        state.forget(self.owner);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;

    use super::*;

    fn owner(number: u8) -> QuotaOwner {
        QuotaOwner::at(std::net::IpAddr::from([192, 0, 2, number]))
    }

    fn quota(all: usize, each: usize) -> Arc<ByteQuota> {
        ByteQuota::new(BytesRule { all, each, waiting_each: 1, waiting: 2, wait: Duration::from_secs(3600) })
    }

    #[tokio::test]
    async fn an_owner_gets_room_again_below_its_share() {
        let quota = quota(800, 100);
        let (busy, other) = (owner(1), owner(2));
        quota.room(&busy).await.expect("nothing is counted");
        let (large, rest, last) = (quota.hold(&busy, 200), quota.hold(&busy, 99), quota.hold(&busy, 1));
        let mut waits = Box::pin(quota.room(&busy));
        assert!(poll!(waits.as_mut()).is_pending(), "past its share");
        assert_eq!(quota.room(&busy).await, Err(Busy), "one request already waits");
        quota.room(&other).await.expect("the share of another");
        drop(large);
        assert!(poll!(waits.as_mut()).is_pending(), "its share is used up");
        drop(last);
        waits.await.expect("room");
        drop(rest);
        assert!(quota.bytes() == 0 && quota.state.lock().owners.is_empty());
    }

    #[tokio::test]
    async fn an_owner_who_has_nothing_gets_room_past_the_bound_of_all() {
        let quota = quota(100, 90);
        let busy = owner(1);
        let _held = (quota.hold(&busy, 80), quota.hold(&owner(2), 20));
        let mut waits = Box::pin(quota.room(&busy));
        assert!(poll!(waits.as_mut()).is_pending());
        quota.room(&owner(3)).await.expect("an owner without bytes always gets room");
    }
}

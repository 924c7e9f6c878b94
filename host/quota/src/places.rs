//! Shares places between owners. There is a total number of places, a share for each owner, and a bounded queue that serves
//! owners in turn.
//!
//! A rule may let one owner use all places. Even then an eighth of the places stays free for other owners. So another owner can
//! be served at once, and need not wait until a place becomes free. While others wait, an owner gets a further place only if it
//! has less than half of the total.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::{QuotaOwner, Turns};

/// The rule for sharing places.
#[derive(Clone, Copy, Debug)]
pub struct PlacesRule {
    /// The total number of places.
    pub all: usize,
    /// The maximum number of places that one owner may have, regardless of other owners.
    pub each: usize,
    /// The maximum number of requests that wait, of one owner and of all.
    pub waiting_each: usize,
    pub waiting: usize,
    /// The longest time that a request waits.
    pub wait: Duration,
}

impl PlacesRule {
    /// A rule for places without a queue. A request that finds no free place is refused at once.
    pub fn without_wait(all: usize, each: usize) -> PlacesRule {
        PlacesRule { all, each, waiting_each: 0, waiting: 0, wait: Duration::ZERO }
    }

    /// The number of places that an owner may have while others wait.
    fn half(&self) -> usize {
        (self.all / 2).max(1)
    }

    /// The number of places that are kept free for owners who have less than half of the total. It is an eighth of the total. It
    /// is at least one if there are several places.
    fn kept_free(&self) -> usize {
        if self.all > 1 { self.all.div_ceil(8) } else { 0 }
    }
}

/// No place is available, because too many requests wait or the wait was too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// Places that owners share.
#[derive(Debug)]
pub struct Places<K = QuotaOwner>
where
    K: Clone + Eq + Hash,
{
    rule: PlacesRule,
    state: Mutex<State<K>>,
}

#[derive(Debug)]
struct State<K: Clone + Eq + Hash> {
    free: usize,
    /// The number of places that each owner has.
    held: HashMap<K, usize>,
    waiting: Turns<K, Waiting<K>>,
    /// The number of the next request that waits.
    next: u64,
}

#[derive(Debug)]
struct Waiting<K: Clone + Eq + Hash> {
    number: u64,
    place: oneshot::Sender<Place<K>>,
}

/// A place. It becomes free when this is dropped.
#[derive(Debug)]
pub struct Place<K = QuotaOwner>
where
    K: Clone + Eq + Hash,
{
    places: Arc<Places<K>>,
    owner: K,
}

impl<K: Clone + Eq + Hash> Place<K> {
    /// The owner of the place.
    pub fn owner(&self) -> &K {
        &self.owner
    }
}

impl<K: Clone + Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        let mut state = self.places.state.lock();
        state.give_back(&self.owner);
        Places::serve(&self.places, state);
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    /// Whether an owner may have one more place now.
    fn may_have(&self, owner: &K, rule: &PlacesRule) -> bool {
        let held = self.held.get(owner).copied().unwrap_or(0);
        if self.free == 0 || held >= rule.each {
            return false;
        }
        if rule.each < rule.all {
            return true;
        }
        let others_wait = self.waiting.owners() > usize::from(self.waiting.len_of(owner) > 0);
        held < rule.half() || (!others_wait && self.free > rule.kept_free())
    }

    fn take(&mut self, owner: &K) {
        self.free -= 1;
        *self.held.entry(owner.clone()).or_default() += 1;
    }

    fn give_back(&mut self, owner: &K) {
        self.free += 1;
        if let Some(held) = self.held.get_mut(owner) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(owner);
            }
        }
    }
}

impl<K: Clone + Eq + Hash> Places<K> {
    pub fn new(rule: PlacesRule) -> Arc<Places<K>> {
        let state = State { free: rule.all, held: HashMap::new(), waiting: Turns::default(), next: 0 };
        Arc::new(Places { rule, state: Mutex::new(state) })
    }

    /// The number of free places.
    pub fn free(&self) -> usize {
        self.state.lock().free
    }

    /// The number of places that an owner has.
    pub fn held(&self, owner: &K) -> usize {
        self.state.lock().held.get(owner).copied().unwrap_or(0)
    }

    /// Whether all places are free, and no request waits.
    pub fn is_idle(&self) -> bool {
        let state = self.state.lock();
        state.held.is_empty() && state.waiting.is_empty()
    }

    /// The number of requests that wait.
    pub fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Returns a place without waiting.
    ///
    /// # Errors
    /// [`Busy`] if the owner may not have a place now.
    pub fn try_take(self: &Arc<Self>, owner: &K) -> Result<Place<K>, Busy> {
        let mut state = self.state.lock();
        // Requests that came earlier are served first.
        if state.waiting.len_of(owner) > 0 || !state.may_have(owner, &self.rule) {
            return Err(Busy);
        }
        state.take(owner);
        Ok(Place { places: Arc::clone(self), owner: owner.clone() })
    }

    /// Waits for a place, at most as long as the rule allows.
    ///
    /// # Errors
    /// [`Busy`] if too many requests wait, or the wait is too long.
    pub async fn take(self: &Arc<Self>, owner: &K) -> Result<Place<K>, Busy> {
        self.take_until(owner, Instant::now() + self.rule.wait).await
    }

    /// Does the same as [`Places::take`], with a deadline.
    ///
    /// # Errors
    /// The same as for [`Places::take`].
    pub async fn take_until(self: &Arc<Self>, owner: &K, deadline: Instant) -> Result<Place<K>, Busy> {
        if let Ok(place) = self.try_take(owner) {
            return Ok(place);
        }
        let mut displaced = None;
        let mut waits = {
            let mut state = self.state.lock();
            if state.waiting.len_of(owner) >= self.rule.waiting_each {
                return Err(Busy);
            }
            // If the queue is full, an owner without an entry replaces the last entry of the owner with the most entries.
            if state.waiting.len() >= self.rule.waiting {
                let has_turn = state.waiting.len_of(owner) == 0;
                displaced = if has_turn { state.waiting.pop_last_of_longest() } else { None };
                if displaced.is_none() {
                    return Err(Busy);
                }
            }
            let number = state.next;
            state.next += 1;
            let (place, promised) = oneshot::channel();
            state.waiting.push(owner.clone(), Waiting { number, place });
            // A place may have become free meanwhile.
            Places::serve(self, state);
            Waits { places: Arc::clone(self), owner: owner.clone(), number, promised }
        };
        // The request that was replaced gets [`Busy`].
        drop(displaced);
        match timeout_at(deadline, &mut waits.promised).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(Busy),
        }
    }

    /// Gives free places to the requests that wait. The lock is released before a place is sent. If the receiver no longer
    /// exists, the place is dropped, and dropping it needs the lock.
    fn serve(self: &Arc<Self>, mut state: parking_lot::MutexGuard<'_, State<K>>) {
        let mut served = Vec::new();
        while state.free > 0 && !state.waiting.is_empty() {
            let Some(owner) = self.next_owner(&state) else { break };
            let Some((owner, waiting)) = state.waiting.pop_where(|other| *other == owner) else { break };
            state.take(&owner);
            served.push((waiting.place, owner));
        }
        drop(state);
        for (place, owner) in served {
            drop(place.send(Place { places: Arc::clone(self), owner }));
        }
    }

    fn next_owner(&self, state: &State<K>) -> Option<K> {
        state.waiting.first_where(|owner| state.may_have(owner, &self.rule)).cloned()
    }
}

/// A request that waits for a place. When this is dropped, the request is removed from the queue.
struct Waits<K: Clone + Eq + Hash> {
    places: Arc<Places<K>>,
    owner: K,
    number: u64,
    promised: oneshot::Receiver<Place<K>>,
}

impl<K: Clone + Eq + Hash> Drop for Waits<K> {
    fn drop(&mut self) {
        let mut state = self.places.state.lock();
        state.waiting.remove_where(&self.owner, |waiting| waiting.number == self.number);
        // Perhaps another owner was limited to half of the places only because this request waited.
        Places::serve(&self.places, state);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;

    use super::*;

    fn rule(all: usize, each: usize) -> PlacesRule {
        PlacesRule { all, each, waiting_each: 4, waiting: 6, wait: Duration::from_secs(3600) }
    }

    macro_rules! waits {
        ($places:expr, $owner:expr) => {{
            let mut waits = Box::pin($places.take(&$owner));
            assert!(poll!(waits.as_mut()).is_pending());
            waits
        }};
    }

    #[tokio::test]
    async fn an_owner_has_a_share_and_others_theirs() {
        let places = Places::new(rule(3, 2));
        let held = [places.take(&"a").await, places.take(&"a").await];
        let third = waits!(places, "a");
        let other = places.take(&"b").await.expect("a place of their own");
        drop(held);
        let third = third.await.expect("the place that became free");
        drop((third, other));
        assert!(places.is_idle() && places.free() == 3);
    }

    #[tokio::test]
    async fn one_alone_leaves_an_eighth_to_those_who_come_later() {
        let places = Places::new(rule(16, 16));
        let mut held = Vec::new();
        for _ in 0..14 {
            held.push(places.take(&"busy").await.expect("a place"));
        }
        let further = waits!(places, "busy");
        let _other = places.take(&"other").await.expect("at once");
        let _other = places.take(&"other").await.expect("at once");
        let _waits = waits!(places, "other");
        drop(held.pop());
        assert_eq!(places.held(&"other"), 3, "a place that becomes free goes to an owner with less than half");
        held.truncate(7);
        drop(further.await.expect("a place"));
    }

    #[tokio::test]
    async fn owners_who_wait_are_served_in_turn() {
        let places = Places::new(rule(1, 1));
        let first = places.take(&"a").await.expect("a place");
        let (second, third) = (waits!(places, "a"), waits!(places, "a"));
        let other = waits!(places, "b");
        drop(first);
        let place = second.await.expect("a place");
        let mut third = third;
        assert!(poll!(third.as_mut()).is_pending());
        drop(place);
        let place = other.await.expect("the other owner is served before the first one gets a third place");
        drop(place);
        third.await.expect("a place");
        assert!(places.is_idle());
    }

    #[tokio::test]
    async fn the_queue_is_bounded_and_whoever_leaves_it_is_forgotten() {
        let places = Places::new(rule(1, 1));
        let held = places.take(&"a").await.expect("a place");
        let mut of_a = Vec::new();
        for _ in 0..4 {
            of_a.push(waits!(places, "a"));
        }
        assert_eq!(places.take(&"a").await.err(), Some(Busy), "four wait");
        let (of_b, of_c) = (waits!(places, "b"), waits!(places, "c"));
        let of_d = waits!(places, "d");
        assert_eq!(of_a.pop().expect("the fourth").await.err(), Some(Busy), "an owner without a waiting request replaced it");
        let (of_e, of_f) = (waits!(places, "e"), waits!(places, "f"));
        assert_eq!(places.take(&"g").await.err(), Some(Busy), "one request of each owner waits");
        assert_eq!(places.take(&"b").await.err(), Some(Busy), "six requests wait in total");
        drop((of_a, of_d));
        drop(of_b);
        drop(held);
        drop(of_c.await.expect("a place"));
        drop((of_e, of_f));
        assert!(places.is_idle() && places.free() == 1);
    }

    #[tokio::test]
    async fn a_wait_ends_at_its_deadline() {
        let places = Places::new(PlacesRule { wait: Duration::from_millis(1), ..rule(1, 1) });
        let _held = places.take(&"a").await.expect("a place");
        assert_eq!(places.take(&"b").await.err(), Some(Busy));
        assert_eq!(places.take_until(&"b", Instant::now()).await.err(), Some(Busy));
    }
}

//! A queue that serves its owners in turn. The next item belongs to the owner who was served longest ago.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// The items, in the order of their owners' turns. The items of one owner are in the order of their arrival.
#[derive(Debug)]
pub struct Turns<K, T> {
    queues: HashMap<K, VecDeque<T>>,
    /// The owners that have items. The owner whose turn is next comes first.
    order: VecDeque<K>,
    len: usize,
}

impl<K, T> Default for Turns<K, T> {
    fn default() -> Turns<K, T> {
        Turns { queues: HashMap::new(), order: VecDeque::new(), len: 0 }
    }
}

impl<K: Clone + Eq + Hash, T> Turns<K, T> {
    /// The number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of items of one owner.
    pub fn len_of(&self, owner: &K) -> usize {
        self.queues.get(owner).map_or(0, VecDeque::len)
    }

    /// The number of owners with items.
    pub fn owners(&self) -> usize {
        self.order.len()
    }

    pub fn push(&mut self, owner: K, item: T) {
        self.len += 1;
        match self.queues.get_mut(&owner) {
            Some(queue) => queue.push_back(item),
            None => {
                self.order.push_back(owner.clone());
                self.queues.insert(owner, VecDeque::from([item]));
            }
        }
    }

    /// Removes and returns the next item.
    pub fn pop(&mut self) -> Option<(K, T)> {
        self.pop_where(|_| true)
    }

    /// Removes and returns the next item of an owner who may be served. Owners who are skipped keep their turn.
    pub fn pop_where(&mut self, may_be_served: impl Fn(&K) -> bool) -> Option<(K, T)> {
        let place = self.order.iter().position(may_be_served)?;
        let owner = self.order.remove(place)?;
        let queue = self.queues.get_mut(&owner)?;
        let item = queue.pop_front()?;
        match queue.is_empty() {
            true => drop(self.queues.remove(&owner)),
            false => self.order.push_back(owner.clone()),
        }
        self.len -= 1;
        Some((owner, item))
    }

    /// The owner whose turn is next, among those who may be served.
    pub fn first_where(&self, may_be_served: impl Fn(&K) -> bool) -> Option<&K> {
        self.order.iter().find(|owner| may_be_served(owner))
    }

    /// Removes the last item of the owner with the most items, if the owner has more than one.
    pub fn pop_last_of_longest(&mut self) -> Option<(K, T)> {
        let owner = self.order.iter().max_by_key(|owner| self.len_of(owner)).cloned()?;
        let queue = self.queues.get_mut(&owner).filter(|queue| queue.len() > 1)?;
        let item = queue.pop_back()?;
        self.len -= 1;
        Some((owner, item))
    }

    /// Removes the items of an owner for which `is_gone` is true.
    pub fn remove_where(&mut self, owner: &K, is_gone: impl Fn(&T) -> bool) {
        let Some(queue) = self.queues.get_mut(owner) else { return };
        let before = queue.len();
        queue.retain(|item| !is_gone(item));
        self.len -= before - queue.len();
        if queue.is_empty() {
            self.queues.remove(owner);
            self.order.retain(|other| other != owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_served_in_turn() {
        let mut turns = Turns::default();
        for number in 0..4 {
            turns.push("busy", number);
        }
        turns.push("a", 10);
        turns.push("b", 20);
        turns.push("a", 11);
        assert_eq!((turns.len(), turns.owners(), turns.len_of(&"busy")), (7, 3, 4));
        let served: Vec<_> = std::iter::from_fn(|| turns.pop()).map(|(_, item)| item).collect();
        assert_eq!(served, [0, 10, 20, 1, 11, 2, 3]);
        assert!(turns.is_empty() && turns.queues.is_empty() && turns.order.is_empty());
    }

    #[test]
    fn who_may_not_be_served_keeps_their_turn_and_what_is_gone_is_left_out() {
        let mut turns = Turns::default();
        for (owner, item) in [("a", 1), ("b", 2), ("a", 3), ("c", 4)] {
            turns.push(owner, item);
        }
        assert_eq!(turns.pop_where(|owner| *owner != "a"), Some(("b", 2)));
        assert_eq!(turns.pop(), Some(("a", 1)));
        turns.remove_where(&"a", |item| *item == 3);
        assert_eq!((turns.len(), turns.owners()), (1, 1));
        assert_eq!(turns.pop_where(|owner| *owner == "a"), None);
        assert_eq!(turns.pop_last_of_longest(), None, "no owner has more than one item");
        turns.push("d", 5);
        turns.push("d", 6);
        assert_eq!(turns.pop_last_of_longest(), Some(("d", 6)));
        assert_eq!((turns.pop(), turns.pop(), turns.len()), (Some(("c", 4)), Some(("d", 5)), 0));
    }
}

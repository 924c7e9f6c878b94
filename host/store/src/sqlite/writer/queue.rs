//! The queue of the writer: the service's jobs, and those of callers, who are served in turn.

use std::collections::VecDeque;
use std::sync::Arc;

use blockbase_quota::{Place, Places, PlacesRule, QuotaOwner, Turns};
use blockbase_schema::{Error, Result};
use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::job::Job;
use crate::error::unavailable;
use crate::waiting::{PLACE_WAIT, WAITING_MAX, WAITING_OF_A_CALLER_MAX};

/// The maximum number of callers' jobs in the queue. Further callers wait for a place.
const CALLERS_JOBS_MAX: usize = 4096;
/// The maximum number of the service's jobs in the queue.
const OWN_JOBS_MAX: usize = 4096;

pub(super) struct Queue {
    places: Arc<Places>,
    own_places: Arc<Semaphore>,
    state: Mutex<State>,
    arrived: Condvar,
}

/// A job, and the number that identifies it in the queue.
type Waiting = (u64, Box<dyn Job>);

#[derive(Default)]
struct State {
    own: VecDeque<Waiting>,
    callers: Turns<QuotaOwner, Waiting>,
    /// The number of the next job.
    number: u64,
    /// Whether the last job that was taken was the service's own.
    was_own: bool,
    is_closed: bool,
}

impl State {
    /// The next job. The service's jobs and callers' jobs alternate.
    fn next(&mut self) -> Option<Box<dyn Job>> {
        let own = if self.was_own && !self.callers.is_empty() { None } else { self.own.pop_front() };
        self.was_own = own.is_some();
        own.or_else(|| self.callers.pop().map(|(_, job)| job)).map(|(_, job)| job)
    }
}

/// A place in the queue.
pub(super) enum QueuePlace {
    Own { _permit: OwnedSemaphorePermit },
    Caller { _place: Place },
}

impl Queue {
    pub(super) fn new() -> Queue {
        Queue {
            places: Places::new(PlacesRule {
                all: CALLERS_JOBS_MAX,
                each: CALLERS_JOBS_MAX,
                waiting_each: WAITING_OF_A_CALLER_MAX,
                waiting: WAITING_MAX,
                wait: PLACE_WAIT,
            }),
            own_places: Arc::new(Semaphore::new(OWN_JOBS_MAX)),
            state: Mutex::default(),
            arrived: Condvar::new(),
        }
    }

    /// Waits for a place in the queue.
    ///
    /// # Errors
    /// `unavailable` with `Retry-After` if no place becomes free in time.
    pub(super) async fn place(&self, owner: &QuotaOwner) -> Result<QueuePlace> {
        if owner.is_service() {
            let permit = Arc::clone(&self.own_places).acquire_owned().await.map_err(unavailable)?;
            return Ok(QueuePlace::Own { _permit: permit });
        }
        let place =
            self.places.take(owner).await.map_err(|_| Error::busy("Too many writes wait for their turn. Try again later."))?;
        Ok(QueuePlace::Caller { _place: place })
    }

    /// Queues a job. If the returned value is dropped before the job was answered, nobody waits for the job any more. The job is then
    /// removed, with everything that it keeps in memory.
    ///
    /// # Errors
    /// `unavailable` once the queue is closed.
    pub(super) fn push(&self, owner: QuotaOwner, job: Box<dyn Job>) -> Result<Queued<'_>> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(unavailable("the server is shutting down"));
        }
        let number = state.number;
        state.number += 1;
        match owner.is_service() {
            true => state.own.push_back((number, job)),
            false => state.callers.push(owner.clone(), (number, job)),
        }
        drop(state);
        self.arrived.notify_one();
        Ok(Queued { queue: self, owner, number, is_answered: false })
    }

    /// The number of queued jobs.
    pub(super) fn len(&self) -> usize {
        let state = self.state.lock();
        state.own.len() + state.callers.len()
    }

    /// The next job, if there is one.
    pub(super) fn next(&self) -> Option<Box<dyn Job>> {
        self.state.lock().next()
    }

    /// Waits for the next job. `None` once the queue is closed and empty.
    pub(super) fn wait(&self) -> Option<Box<dyn Job>> {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.next() {
                return Some(job);
            }
            if state.is_closed {
                return None;
            }
            self.arrived.wait(&mut state);
        }
    }

    /// Refuses further jobs. Queued jobs still run.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.arrived.notify_all();
    }

    /// Closes the queue and drops its jobs when the returned value is dropped, so that their callers learn that nobody runs them.
    pub(super) fn close_on_drop(&self) -> impl Drop + use<'_> {
        Closing(self)
    }
}

/// A job whose caller waits for its answer.
pub(super) struct Queued<'q> {
    queue: &'q Queue,
    owner: QuotaOwner,
    number: u64,
    is_answered: bool,
}

impl Queued<'_> {
    /// The job has run.
    pub(super) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let mut state = self.queue.state.lock();
        match self.owner.is_service() {
            true => state.own.retain(|(number, _)| *number != self.number),
            false => state.callers.remove_where(&self.owner, |(number, _)| *number == self.number),
        }
    }
}

struct Closing<'q>(&'q Queue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_closed = true;
        let forgotten = (std::mem::take(&mut state.own), std::mem::take(&mut state.callers));
        drop(state);
        drop(forgotten);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Connection;
    use crate::sqlite::writer::job::NotCommitted;

    /// A job that records its name.
    struct Named(&'static str, Arc<Mutex<Vec<&'static str>>>);

    impl Job for Named {
        fn is_schema(&self) -> bool {
            false
        }

        fn is_wanted(&self) -> bool {
            true
        }

        fn run(&mut self, _connection: &mut Connection) -> bool {
            true
        }

        fn found_no_room(&self) -> bool {
            false
        }

        fn answer(self: Box<Self>, _not_committed: Option<&NotCommitted>) {
            self.1.lock().push(self.0);
        }
    }

    #[test]
    fn callers_are_served_in_turn_and_the_service_between_them() {
        let (queue, served) = (Queue::new(), Arc::default());
        let owner = |name: &str| QuotaOwner::User(name.into());
        let push = |owner: QuotaOwner, name| {
            queue.push(owner, Box::new(Named(name, Arc::clone(&served)))).expect("an open queue").answered();
        };
        for _ in 0..3 {
            push(owner("busy"), "busy");
        }
        push(owner("other"), "other");
        push(QuotaOwner::Service, "service");
        push(QuotaOwner::Service, "service");
        let left = queue.push(owner("busy"), Box::new(Named("left", Arc::clone(&served)))).expect("an open queue");
        assert_eq!(queue.len(), 7);
        drop(left);
        assert_eq!(queue.len(), 6, "nobody waits for it any more");
        queue.close();
        assert!(queue.push(owner("late"), Box::new(Named("late", Arc::clone(&served)))).is_err());
        while let Some(job) = queue.wait() {
            job.answer(None);
        }
        assert_eq!(*served.lock(), ["service", "busy", "service", "other", "busy", "busy"]);
    }
}

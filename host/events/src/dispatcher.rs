//! The dispatcher: finds the consumer groups that have waiting deliveries, and starts a task for each group.

mod group;
mod wake;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use blockbase_app::App;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

use crate::settings::Settings;
use crate::throttle::Throttle;

/// After this many calls in a row without a response, an endpoint counts as unavailable.
const UNANSWERED_MAX: u32 = 3;
/// The maximum number of calls of block handlers for events that run at the same time, in all blocks together. The limit leaves
/// slots for actions.
const INSTANCE_BLOCK_CALLS_MAX: usize = 32;

/// Serves consumer groups in parallel, so that a slow group does not delay the others.
pub(crate) struct Dispatcher {
    pub(crate) app: Arc<App>,
    pub(crate) settings: Settings,
    pub(crate) throttle: Throttle,
    pub(crate) block_calls: Arc<Semaphore>,
    groups: Mutex<HashMap<String, Arc<Running>>>,
    /// Groups that will be served later, each with the instant in steps of [`wake::WAKE_STEP`].
    planned: Mutex<HashSet<(String, u128)>>,
    /// For each group, the number of its last calls in a row that got no response.
    unanswered: Mutex<HashMap<String, u32>>,
    began: Instant,
    is_draining: AtomicBool,
    /// Notified when a group has been served.
    idle: Notify,
}

/// A group that is being served.
#[derive(Default)]
pub(crate) struct Running {
    /// Set if there may be deliveries that the group's task does not know.
    has_more: AtomicBool,
    more: Notify,
}

impl Running {
    /// Whether there may be new deliveries since the last call.
    pub(crate) fn take_more(&self) -> bool {
        self.has_more.swap(false, Ordering::AcqRel)
    }

    pub(crate) async fn more(&self) {
        while !self.has_more.load(Ordering::Acquire) {
            self.more.notified().await;
        }
    }
}

impl Dispatcher {
    pub(crate) fn new(app: Arc<App>, settings: Settings) -> Arc<Dispatcher> {
        Arc::new(Dispatcher {
            throttle: Throttle::new(&app),
            app,
            settings,
            block_calls: Arc::new(Semaphore::new(INSTANCE_BLOCK_CALLS_MAX)),
            groups: Mutex::default(),
            planned: Mutex::default(),
            unanswered: Mutex::default(),
            began: Instant::now(),
            is_draining: AtomicBool::new(false),
            idle: Notify::new(),
        })
    }

    /// Whether the group's receiver did not respond to its last calls, or was never called. If so, it gets only one request at a
    /// time. So a hundred receivers that do not respond get a hundred requests at once, not sixteen times as many.
    pub(crate) fn is_away(&self, consumer: &str) -> bool {
        self.unanswered.lock().get(consumer).is_none_or(|unanswered| *unanswered >= UNANSWERED_MAX)
    }

    pub(crate) fn answered(&self, consumer: &str, answered: bool) {
        let mut all = self.unanswered.lock();
        match all.get_mut(consumer) {
            Some(unanswered) if !answered => *unanswered = unanswered.saturating_add(1),
            Some(unanswered) => *unanswered = 0,
            None => drop(all.insert(consumer.to_owned(), if answered { 0 } else { UNANSWERED_MAX })),
        }
    }

    /// Ends the task of a group, unless more deliveries have arrived.
    pub(crate) fn is_over(&self, consumer: &str, running: &Running) -> bool {
        let mut groups = self.groups.lock();
        if running.has_more.load(Ordering::Acquire) && !self.is_draining() {
            return false;
        }
        groups.remove(consumer);
        if groups.is_empty() {
            self.idle.notify_waiters();
        }
        true
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }

    pub(crate) fn begin_drain(&self) {
        self.is_draining.store(true, Ordering::Release);
    }

    /// Starts no further deliveries, and waits for those in progress.
    pub(crate) async fn drain(&self) {
        self.begin_drain();
        loop {
            let idle = self.idle.notified();
            {
                let groups = self.groups.lock();
                if groups.is_empty() {
                    return;
                }
                for running in groups.values() {
                    running.has_more.store(true, Ordering::Release);
                    running.more.notify_one();
                }
            }
            idle.await;
        }
    }
}

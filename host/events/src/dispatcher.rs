//! The dispatcher: finds the consumer groups that have something to get, and lets each be served by a task of its own.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use blockbase_app::App;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{MissedTickBehavior, interval};

use crate::Settings;
use crate::group;
use crate::nudges::{Nudge, Nudges};
use crate::pace::Pace;

/// Calls of blocks' handlers at a time, so that actions find a place as well.
const BLOCK_CALLS_MAX: usize = 32;

/// Serves consumer groups side by side; one that is slow holds none of the others.
pub(crate) struct Dispatcher {
    pub(crate) app: Arc<App>,
    pub(crate) settings: Settings,
    pub(crate) pace: Pace,
    pub(crate) block_calls: Arc<Semaphore>,
    groups: Mutex<HashMap<String, Arc<Running>>>,
    is_draining: AtomicBool,
    /// Told when a group is served.
    idle: Notify,
}

/// A group that is served at this moment.
#[derive(Default)]
pub(crate) struct Running {
    /// There is, or may be, more than it knew.
    has_more: AtomicBool,
    more: Notify,
}

impl Running {
    /// Whether there may be more since the last time that this was asked.
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
            pace: Pace::new(&app),
            app,
            settings,
            block_calls: Arc::new(Semaphore::new(BLOCK_CALLS_MAX)),
            groups: Mutex::default(),
            is_draining: AtomicBool::new(false),
            idle: Notify::new(),
        })
    }

    /// Looks at once, then whenever it is nudged and every so often. Never ends.
    pub(crate) async fn run(self: Arc<Self>, nudges: Nudges) {
        let mut poll = interval(self.settings.poll);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut subscriptions = self.app.watch_subscriptions();
        loop {
            let nudge = tokio::select! {
                nudge = nudges.next() => nudge,
                _ = poll.tick() => Nudge::Anything,
                Ok(()) = subscriptions.changed() => Nudge::Anything,
            };
            let groups: BTreeSet<String> = match nudge {
                Nudge::Groups(groups) => groups,
                Nudge::Anything => match self.app.groups_with_work().await {
                    Ok(groups) => groups.into_iter().collect(),
                    Err(error) => {
                        tracing::warn!(error.cause = %error, "deliveries that are due could not be looked for");
                        continue;
                    }
                },
            };
            for group in groups {
                self.wake(group);
            }
        }
    }

    /// Has a group served.
    pub(crate) fn wake(self: &Arc<Self>, consumer: String) {
        let mut groups = self.groups.lock();
        if let Some(running) = groups.get(&consumer) {
            running.has_more.store(true, Ordering::Release);
            running.more.notify_one();
            return;
        }
        if self.is_draining() {
            return;
        }
        let running = Arc::new(Running::default());
        groups.insert(consumer.clone(), Arc::clone(&running));
        tokio::spawn(group::serve(Arc::clone(self), consumer, running));
    }

    /// Has a group served in a while.
    pub(crate) fn wake_later(self: &Arc<Self>, consumer: String, pause: Duration) {
        let dispatcher = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            dispatcher.wake(consumer);
        });
    }

    /// Ends the service of a group, unless there is more by now.
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

    /// Begins nothing any more, and waits for what is under way.
    pub(crate) async fn drain(&self) {
        self.is_draining.store(true, Ordering::Release);
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

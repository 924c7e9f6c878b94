//! Finds the groups that have waiting deliveries, and starts a task for each.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::{Dispatcher, Running, group};
use crate::wakeups::{Wakeup, Wakeups};

/// If several retries of a group become due within this time, they share one lookup.
const WAKE_STEP: Duration = Duration::from_millis(20);

/// Makes sure that a group can be served again if a bug ends its task.
struct Guard {
    dispatcher: Arc<Dispatcher>,
    consumer: String,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut groups = self.dispatcher.groups.lock();
            groups.remove(&self.consumer);
            if groups.is_empty() {
                self.dispatcher.idle.notify_waiters();
            }
        }
    }
}

impl Dispatcher {
    /// Looks for work at the start, after each wakeup, and at each poll. It never ends.
    pub(crate) async fn run(self: Arc<Self>, wakeups: Wakeups) {
        let mut poll = interval(self.settings.poll);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut subscriptions = self.app.watch_subscriptions();
        loop {
            let wakeup = tokio::select! {
                wakeup = wakeups.next() => wakeup,
                _ = poll.tick() => Wakeup::Anything,
                Ok(()) = subscriptions.changed() => Wakeup::Anything,
            };
            let groups: BTreeSet<String> = match wakeup {
                Wakeup::Groups(groups) => groups,
                Wakeup::Anything => match self.app.groups_with_work().await {
                    Ok(groups) => groups.into_iter().collect(),
                    Err(error) => {
                        tracing::warn!(error.cause = %error, "due deliveries could not be read");
                        continue;
                    }
                },
            };
            for group in groups {
                self.wake(group);
            }
        }
    }

    /// Starts a task that serves a group. If one is already running, it is notified that there may be more deliveries.
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
        let guard = Guard { dispatcher: Arc::clone(self), consumer: consumer.clone() };
        tokio::spawn(async move {
            group::serve(Arc::clone(&guard.dispatcher), consumer, running).await;
        });
    }

    /// Serves a group after a pause. The group is served only once, even if many of its deliveries wait for the same moment.
    pub(crate) fn wake_later(self: &Arc<Self>, consumer: &str, pause: Duration) {
        let step = (self.began.elapsed() + pause).as_millis() / WAKE_STEP.as_millis() + 1;
        let plan = (consumer.to_owned(), step);
        if !self.planned.lock().insert(plan.clone()) {
            return;
        }
        let dispatcher = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(pause + WAKE_STEP).await;
            dispatcher.planned.lock().remove(&plan);
            dispatcher.wake(plan.0);
        });
    }
}

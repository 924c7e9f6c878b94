//! Looks at what a client with an open stream may see, for as long as the stream is open.

use std::sync::Arc;
use std::time::Duration;

use blockbase_app::{App, Authority, Caller, Credentials};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::call::Invoked;
use crate::require_admission;
use crate::session::Owner;
use crate::tools::Shown;

/// How often the caller is looked at again, so that an ended session of sign-in, a deleted key and other roles count at once.
const RECHECK: Duration = Duration::from_secs(1);

/// The tools that are shown to one caller, watched.
pub(crate) struct Watched {
    app: Arc<App>,
    caller: Caller,
    credentials: Credentials,
    owner: Owner,
    /// The list that the client knows of.
    told: u64,
    catalogue: watch::Receiver<()>,
    recheck: Interval,
    draining: watch::Receiver<bool>,
    /// Whether the list has to be looked at, because something that it is made of changed, or nobody looked yet.
    is_stale: bool,
}

/// An interval whose first tick is one period away.
pub(crate) fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

impl Watched {
    /// `told` is the list that the client knows of.
    pub(crate) fn new(app: &Arc<App>, invoked: &Invoked, told: u64, draining: watch::Receiver<bool>) -> Watched {
        Watched {
            // Before the first look, so that no change falls between the two.
            catalogue: app.watch_catalogue(),
            app: Arc::clone(app),
            owner: Owner::of(&invoked.caller),
            caller: invoked.caller.clone(),
            credentials: invoked.kept_credentials(),
            told,
            recheck: every(RECHECK),
            draining,
            is_stale: true,
        }
    }

    /// Waits until the list is another one than the client was told of; `None` once the stream has to end, because the caller is
    /// not any more who may have it, or the server drains. May be dropped and called again.
    pub(crate) async fn changed(&mut self) -> Option<()> {
        loop {
            if !self.is_stale {
                tokio::select! {
                    biased;
                    _ = self.draining.wait_for(|draining| *draining) => return None,
                    _ = self.recheck.tick() => {}
                    changed = self.catalogue.changed() => {
                        changed.ok()?;
                        self.is_stale = true;
                    }
                }
            }
            // Its state is larger than all else that a stream needs, and is there for a moment a second.
            let caller = Box::pin(self.app.authenticate(&self.credentials)).await.ok()?;
            if Owner::of(&caller) != self.owner || require_admission(&self.app, &caller).is_err() {
                return None;
            }
            self.is_stale |= !are_same_rights(&caller.authority, &self.caller.authority);
            self.caller = caller;
            if std::mem::take(&mut self.is_stale) {
                let shown = Shown::to(&self.app, &self.caller).fingerprint();
                if shown != self.told {
                    self.told = shown;
                    return Some(());
                }
            }
        }
    }
}

/// Whether rights are plainly those that they were.
fn are_same_rights(one: &Authority, other: &Authority) -> bool {
    matches!((one, other), (Authority::Own(one), Authority::Own(other)) if Arc::ptr_eq(one, other))
}

//! Watches which tools a client with an open stream may see.

use std::sync::Arc;
use std::time::Duration;

use blockbase_app::{App, Authority, CALLER_RECHECK, Caller, Credentials};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::admission::require_admission;
use crate::call::Invoked;
use crate::session::Owner;
use crate::tools::VisibleTools;

/// Watches the tools that one caller sees.
pub(crate) struct Watched {
    app: Arc<App>,
    caller: Caller,
    credentials: Credentials,
    owner: Owner,
    /// The fingerprint of the list that the client knows.
    known_tools: u64,
    catalogue: watch::Receiver<()>,
    recheck: Interval,
    draining: watch::Receiver<bool>,
    /// Whether the list has to be checked, because it was never checked or something that it depends on has changed.
    is_stale: bool,
}

/// An interval whose first tick is one period away.
pub(crate) fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

impl Watched {
    /// `known_tools` is the fingerprint of the list that the client knows.
    pub(crate) fn new(app: &Arc<App>, invoked: &Invoked, known_tools: u64, draining: watch::Receiver<bool>) -> Watched {
        Watched {
            // The subscription begins before the first check, so that no change is missed.
            catalogue: app.watch_catalogue(),
            app: Arc::clone(app),
            owner: Owner::of(&invoked.caller),
            caller: invoked.caller.clone(),
            credentials: invoked.kept_credentials(),
            known_tools,
            recheck: every(CALLER_RECHECK),
            draining,
            is_stale: true,
        }
    }

    /// Waits until the list differs from the one that the client knows. Returns `None` if the stream has to end, because the
    /// caller lost the right to it or the server drains. The future may be dropped, and the function may then be called again.
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
            // The future is boxed, because its state is larger than the rest of a stream, and exists only for a moment each
            // second.
            let caller = Box::pin(self.app.authenticate(&self.credentials)).await.ok()?;
            if Owner::of(&caller) != self.owner || require_admission(&self.app, &caller).is_err() {
                return None;
            }
            self.is_stale |= !are_same_rights(&caller.authority, &self.caller.authority);
            self.caller = caller;
            if std::mem::take(&mut self.is_stale) {
                let shown = VisibleTools::to(&self.app, &self.caller).fingerprint();
                if shown != self.known_tools {
                    self.known_tools = shown;
                    return Some(());
                }
            }
        }
    }
}

/// Whether the rights are certainly the same. The comparison is cheap.
fn are_same_rights(one: &Authority, other: &Authority) -> bool {
    matches!((one, other), (Authority::Own(one), Authority::Own(other)) if Arc::ptr_eq(one, other))
}

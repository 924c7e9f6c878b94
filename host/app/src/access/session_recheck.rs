//! A caller who has something open: whether they are still who they were when it was opened.

use std::sync::Arc;

use crate::App;
use crate::caller::identity::RenewalSlot;
use crate::caller::{Caller, Credentials};

/// A caller with what they presented, looked at again whenever accounts may have changed.
pub struct SessionRecheck {
    app: Arc<App>,
    credentials: Credentials,
    caller: Caller,
    /// The state of the accounts that `caller` was found in; unknown for one that a surface brings.
    generation: Option<u64>,
}

impl SessionRecheck {
    pub fn new(app: &Arc<App>, caller: Caller, credentials: &Credentials) -> SessionRecheck {
        SessionRecheck {
            app: Arc::clone(app),
            // A later check has no response that could tell the client that its session was extended.
            credentials: Credentials { renewal: RenewalSlot::default(), ..credentials.clone() },
            caller,
            generation: None,
        }
    }

    /// The caller as they were when they were last looked at.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether nothing happened on this instance since then that could have changed the caller: no sign-out, no ban, no other
    /// role, and no end of their session or key.
    pub fn is_current(&self) -> bool {
        self.generation == Some(self.app.identities.generation())
            && self.caller.identity().is_none_or(|identity| identity.holds_until > self.app.now())
    }

    /// Looks at the caller again. `None` if what they presented does not hold any more.
    pub async fn renew(&mut self) -> Option<()> {
        // Read before the check, so that the next check notices a change during this one.
        let generation = self.app.identities.generation();
        let caller = self.app.authenticate(&self.credentials).await.ok()?;
        // A cookie that does not hold any more shows nobody; they were somebody.
        if caller.is_known() != self.caller.is_known() {
            return None;
        }
        (self.caller, self.generation) = (caller, Some(generation));
        Some(())
    }
}

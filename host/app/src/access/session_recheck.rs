//! Checks a caller again for as long as they have a stream open.

use std::sync::Arc;

use crate::App;
use crate::caller::identity::RenewalSlot;
use crate::caller::{Caller, Credentials};

/// A caller with their credentials. They are checked again whenever accounts may have changed.
pub struct SessionRecheck {
    app: Arc<App>,
    credentials: Credentials,
    caller: Caller,
    /// The state of the accounts before `caller` was found. `None` for a caller without an identity that a surface passes in.
    generation: Option<u64>,
}

impl SessionRecheck {
    /// `caller` was found by these credentials.
    pub fn new(app: &Arc<App>, caller: Caller, credentials: &Credentials) -> SessionRecheck {
        let generation = caller.identity().map(|identity| identity.last_check.first_generation);
        SessionRecheck {
            app: Arc::clone(app),
            // A later check has no response with which it could tell the client that its session was extended.
            credentials: Credentials { renewal: RenewalSlot::default(), ..credentials.clone() },
            caller,
            generation,
        }
    }

    /// The caller as of the last check.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The state of the accounts before the caller was found. `None` for a caller without an identity who was passed in.
    pub fn generation(&self) -> Option<u64> {
        self.generation
    }

    /// Whether the caller is certainly unchanged since the last check, as far as this instance knows: no sign-out, ban, other
    /// role, or end of their session or key has happened.
    pub fn is_current(&self) -> bool {
        self.generation == Some(self.app.identities.generation())
            && self.caller.identity().is_none_or(|identity| identity.holds_until > self.app.now())
    }

    /// Checks the caller again. `None` if the credentials are no longer valid.
    pub async fn renew(&mut self) -> Option<()> {
        // Read before the check, so that the next check notices a change during this one.
        let generation = self.app.identities.generation();
        let caller = self.app.authenticate(&self.credentials).await.ok()?;
        // With a cookie that is no longer valid, a known caller becomes an anonymous one.
        if caller.is_known() != self.caller.is_known() {
            return None;
        }
        (self.caller, self.generation) = (caller, Some(generation));
        Some(())
    }
}

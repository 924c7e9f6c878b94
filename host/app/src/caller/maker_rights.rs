//! What the maker of a thing may do now.

use blockbase_store::SuspensionReason;

use crate::caller::Caller;

/// The current rights of a thing's maker.
#[derive(Clone)]
pub(crate) enum MakerRights {
    /// There is no maker: the thing keeps its rights.
    Unlimited,
    /// The maker as a caller.
    Held(Caller),
    Suspended(SuspensionReason),
}

impl MakerRights {
    /// The maker as a caller; `None` without a maker, or if the maker may do nothing.
    pub(crate) fn caller(&self) -> Option<Caller> {
        match self {
            MakerRights::Held(caller) => Some(caller.clone()),
            MakerRights::Unlimited | MakerRights::Suspended(_) => None,
        }
    }

    /// Until when it can be kept at most: a key of the maker expires.
    pub(crate) fn holds_until(&self) -> i64 {
        match self {
            MakerRights::Held(caller) => caller.identity().map_or(i64::MAX, |identity| identity.holds_until),
            MakerRights::Unlimited | MakerRights::Suspended(_) => i64::MAX,
        }
    }
}

//! The present rights of the maker of a thing.

use std::sync::Arc;

use blockbase_query::Permissions;
use blockbase_store::SuspensionReason;

use crate::caller::Caller;

/// The current rights of a thing's maker.
#[derive(Clone)]
pub(crate) enum MakerRights {
    /// There is no maker, so the thing keeps its rights.
    Unlimited,
    /// The maker as a caller.
    Held(Box<Caller>),
    Suspended(SuspensionReason),
}

impl MakerRights {
    /// The maker as a caller. `None` if there is no maker, or if the thing is suspended.
    pub(crate) fn caller(&self) -> Option<Caller> {
        match self {
            MakerRights::Held(caller) => Some(Caller::clone(caller)),
            MakerRights::Unlimited | MakerRights::Suspended(_) => None,
        }
    }

    /// The rights of the maker. `None` if there is no maker, or if the thing is suspended.
    pub(crate) fn rights(&self) -> Option<&Arc<Permissions>> {
        match self {
            MakerRights::Held(caller) => Some(caller.rights()),
            MakerRights::Unlimited | MakerRights::Suspended(_) => None,
        }
    }

    /// The time until which these rights can be cached: when the first key of the maker expires.
    pub(crate) fn holds_until(&self) -> i64 {
        match self {
            MakerRights::Held(caller) => caller.identity().map_or(i64::MAX, |identity| identity.holds_until),
            MakerRights::Unlimited | MakerRights::Suspended(_) => i64::MAX,
        }
    }
}

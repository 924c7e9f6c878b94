//! The identity of a credential, or of the maker of a thing, with its rights.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use blockbase_auth::{Actor, Via};
use blockbase_query::Permissions;
use blockbase_quota::QuotaOwner;
use blockbase_store::{ApiKeyRow, SessionRow, SuspensionReason, UserRow};

use crate::caller::check_basis::Stamp;

/// The credential of an identity.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    Session {
        row: SessionRow,
        /// Whether the session began with the bootstrap password, and the account is not claimed yet.
        pending_claim: bool,
    },
    ApiKey(ApiKeyRow),
}

/// A user with the rights that they have with one credential.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) user: UserRow,
    pub(crate) credential: Credential,
    pub(crate) roles: Vec<String>,
    pub(crate) permissions: Arc<Permissions>,
    /// The reason why the key is suspended, if it is.
    pub(crate) suspended: Option<SuspensionReason>,
    /// The time when the identity expires: the end of the session or the key, or of a key in the key's chain of makers, whichever
    /// comes first.
    pub(crate) holds_until: i64,
    /// The answer of `/api/v1/me`. It is made when somebody first asks for it.
    pub(crate) me_answer: OnceLock<Arc<str>>,
    /// The last check of the rights.
    pub(crate) last_check: Arc<Stamp>,
    pub(crate) cached_at: i64,
}

impl Identity {
    pub(crate) fn session(&self) -> Option<&SessionRow> {
        match &self.credential {
            Credential::Session { row, .. } => Some(row),
            Credential::ApiKey(_) => None,
        }
    }

    pub(crate) fn api_key(&self) -> Option<&ApiKeyRow> {
        match &self.credential {
            Credential::Session { .. } => None,
            Credential::ApiKey(key) => Some(key),
        }
    }

    pub(crate) fn actor(&self) -> Actor {
        let api_key_id = self.api_key().map(|key| key.id.clone());
        let via = if api_key_id.is_some() { Via::ApiKey } else { Via::Session };
        Actor { user_id: Some(self.user.id.clone()), api_key_id, via }
    }

    /// The owner of the share that a request from `address` uses. Background work has no address.
    ///
    /// Nobody can get another share by themselves. Anybody can become any number of guests, so guests with one address have one
    /// share. A user can make many keys for themselves, so these keys use the user's share. A key that somebody else made has its
    /// own share.
    pub(crate) fn quota_owner(&self, address: Option<IpAddr>) -> QuotaOwner {
        match &self.credential {
            Credential::ApiKey(key) if key.maker.user_id.as_ref() != Some(&self.user.id) => {
                QuotaOwner::Key(key.id.as_str().into())
            }
            _ if self.user.is_anonymous => QuotaOwner::of_address(address),
            _ => QuotaOwner::User(self.user.id.as_str().into()),
        }
    }
}

/// A session that a request extended. The client has to be notified.
#[derive(Clone, Debug)]
pub struct Renewed {
    pub token: String,
    /// Whether the session's token came in a cookie, which then has to be extended too.
    pub by_cookie: bool,
}

/// Reports to a request that its session was extended. A session is only extended with a listening slot, because a request that
/// cannot notify its client must not use up the extension.
#[derive(Clone, Debug, Default)]
pub struct RenewalSlot(pub(crate) Option<Arc<OnceLock<Renewed>>>);

impl RenewalSlot {
    /// A slot for a request that can notify its client.
    pub fn listening() -> RenewalSlot {
        RenewalSlot(Some(Arc::default()))
    }

    /// The extended session.
    pub fn renewed(&self) -> Option<&Renewed> {
        self.0.as_ref().and_then(|slot| slot.get())
    }

    pub(crate) fn note(&self, renewed: Renewed) {
        if let Some(slot) = &self.0 {
            let _ = slot.set(renewed);
        }
    }
}

/// Reports to a request who its caller is.
#[derive(Clone, Debug, Default)]
pub struct PrincipalSlot(Option<Arc<OnceLock<String>>>);

impl PrincipalSlot {
    /// A slot that receives the caller.
    pub fn listening() -> PrincipalSlot {
        PrincipalSlot(Some(Arc::default()))
    }

    /// `user:<id>`, `key:<id>`, or `none` if there was no valid credential.
    pub fn shown(&self) -> &str {
        self.0.as_ref().and_then(|slot| slot.get()).map_or("none", String::as_str)
    }

    pub(crate) fn note(&self, identity: &Identity) {
        if let Some(slot) = &self.0 {
            let _ = slot.set(match identity.api_key() {
                Some(key) => format!("key:{}", key.id),
                None => format!("user:{}", identity.user.id),
            });
        }
    }
}

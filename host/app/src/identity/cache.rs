//! What is kept of identities, and for how long.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blockbase_query::Permissions;
use parking_lot::RwLock;

use super::Identity;

/// How long an answer is believed. A change made on another instance holds here after it at the latest.
const KEPT_MS: i64 = 3_000;
/// Identities kept; past it all are forgotten and asked for anew.
const KEPT_MAX: usize = 20_000;
#[derive(Default)]
pub(crate) struct IdentityCache {
    /// By the SHA-256 of the token or key.
    by_hash: RwLock<HashMap<String, Arc<Identity>>>,
    public: RwLock<Option<(Arc<Permissions>, i64)>>,
    /// Goes up whenever everything is forgotten: what was read before that is not kept.
    generation: AtomicU64,
}

impl IdentityCache {
    /// What was read since is kept only where nothing was forgotten meanwhile.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(super) fn get(&self, hash: &str, now: i64) -> Option<Arc<Identity>> {
        let kept = self.by_hash.read();
        kept.get(hash).filter(|kept| (0..KEPT_MS).contains(&(now - kept.kept_at)) && kept.expires_at() > now).cloned()
    }

    pub(super) fn keep(&self, hash: String, identity: Identity, generation: u64) -> Arc<Identity> {
        let identity = Arc::new(identity);
        let mut kept = self.by_hash.write();
        if self.generation.load(Ordering::Acquire) != generation {
            return identity;
        }
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(hash, Arc::clone(&identity));
        identity
    }

    pub(super) fn public(&self, now: i64) -> Option<Arc<Permissions>> {
        let kept = self.public.read();
        kept.as_ref().filter(|(_, kept_at)| (0..KEPT_MS).contains(&(now - kept_at))).map(|(kept, _)| Arc::clone(kept))
    }

    pub(super) fn keep_public(&self, permissions: Permissions, now: i64, generation: u64) -> Arc<Permissions> {
        let permissions = Arc::new(permissions);
        let mut kept = self.public.write();
        if self.generation.load(Ordering::Acquire) == generation {
            *kept = Some((Arc::clone(&permissions), now));
        }
        permissions
    }

    /// Forgets everything: users, roles, keys or sessions changed here.
    pub(crate) fn forget(&self) {
        let (mut kept, mut public) = (self.by_hash.write(), self.public.write());
        self.generation.fetch_add(1, Ordering::Release);
        kept.clear();
        *public = None;
    }
}

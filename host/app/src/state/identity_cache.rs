//! The cache of identities, and the time for which its entries are valid.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use blockbase_auth::TokenHash;
use blockbase_query::Permissions;
use blockbase_store::Maker;
use parking_lot::{Mutex, RwLock};

use crate::caller::block_rights::{BlockRights, RightsOfParties};
use crate::caller::check_basis::CheckedRights;
use crate::caller::identity::Identity;
use crate::caller::maker_rights::MakerRights;

/// How long an entry is valid if the database's versions cannot be read. Usually this instance sees the new version of the
/// accounts earlier, and a change on another instance takes effect then.
pub(crate) const KEPT_MS: i64 = 3_000;
/// The maximum number of identities in the cache. If there are more, all are dropped and read again.
const KEPT_MAX: usize = 20_000;
/// The maximum number of entries for callers who view the service as a role.
const VIEWS_MAX: usize = 500;
/// The maximum number of rights of blocks for their invokers. If there are more, all are dropped and computed again.
const BLOCK_RIGHTS_MAX: usize = 2_000;

/// The rights of blocks for their invokers. The key has the memory addresses of the rights that they were computed from. Those
/// rights are kept in memory too, so that no other rights get the same addresses.
#[derive(Default)]
struct KeptBlockRights {
    /// Each with the time when it was kept. After [`KEPT_MS`] the identities have been read again, so nothing finds it any more.
    by_parties: HashMap<(usize, usize), (Arc<BlockRights>, i64)>,
    /// The time when old entries were last dropped.
    swept_at: i64,
}

/// A caller's rights, limited to those of a role, and the time when they were limited.
struct View {
    whole: Arc<Permissions>,
    cut: Arc<Permissions>,
    kept_at: i64,
}

#[derive(Default)]
pub(crate) struct IdentityCache {
    /// The identities by the hash of their token or key.
    by_hash: RwLock<HashMap<TokenHash, Arc<Identity>>>,
    /// The rights of makers, and the time at which they were read.
    by_maker: RwLock<HashMap<Maker, (MakerRights, i64)>>,
    public: RwLock<Option<(Arc<CheckedRights>, i64)>>,
    /// Rights limited to a role. The key has the role and the memory address of the full rights. The full rights are kept in
    /// memory, so that no other rights get the same address.
    by_view: RwLock<HashMap<(String, usize), View>>,
    by_block: RwLock<KeptBlockRights>,
    /// Whether a user with a credential exists, and the time at which that was read.
    has_users: RwLock<Option<(bool, i64)>>,
    /// Increases each time the cache is cleared. Identities that were read before that are not put into the cache.
    generation: AtomicU64,
    /// The newest version of the accounts (in `svc_versions`) for which the cache was cleared. Nothing in it was read before that
    /// version.
    version: AtomicI64,
    /// Held while the cache is cleared for a new version, so that it is cleared once for each.
    following: Mutex<()>,
    /// The number of changes of accounts in progress on this instance. A change counts from before its start until the cache is
    /// cleared after its commit.
    changing: AtomicU64,
}

/// A change of accounts, which is in progress until this is dropped. The cache is cleared before that.
pub(crate) struct ChangeOfAccounts {
    cache: Arc<IdentityCache>,
    /// The version of the accounts to which the change was committed. `None` if there are no versions, or if it may have failed.
    version: Option<i64>,
}

impl ChangeOfAccounts {
    /// Ends a change that was committed. `version` is the version of the accounts to which it raised them.
    pub(crate) fn committed(mut self, version: Option<i64>) {
        self.version = version;
    }
}

impl Drop for ChangeOfAccounts {
    fn drop(&mut self) {
        match self.version {
            Some(version) => self.cache.follow(version),
            None => self.cache.forget(),
        }
        self.cache.changing.fetch_sub(1, Ordering::SeqCst);
    }
}

impl IdentityCache {
    /// Begins a change of accounts. While it is in progress, a read of the accounts may have seen the state before or after it.
    pub(crate) fn begin_change(self: &Arc<Self>) -> ChangeOfAccounts {
        self.changing.fetch_add(1, Ordering::SeqCst);
        ChangeOfAccounts { cache: Arc::clone(self), version: None }
    }

    /// Whether a change of accounts is in progress on this instance.
    pub(crate) fn are_changing(&self) -> bool {
        self.changing.load(Ordering::SeqCst) > 0
    }

    /// The state of the accounts on this instance, as a number that increases when the cache is cleared. The cache keeps a new
    /// identity only if the number did not change while it was read.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn get(&self, hash: &TokenHash, now: i64) -> Option<Arc<Identity>> {
        let kept = self.by_hash.read();
        kept.get(hash).filter(|kept| (0..KEPT_MS).contains(&(now - kept.cached_at)) && kept.holds_until > now).cloned()
    }

    /// The rights of a maker, and the time at which they were read.
    pub(crate) fn maker(&self, maker: &Maker, now: i64) -> Option<(MakerRights, i64)> {
        let kept = self.by_maker.read();
        let (rights, kept_at) = kept.get(maker)?;
        let holds = rights.holds_until() > now && (0..KEPT_MS).contains(&(now - kept_at));
        holds.then(|| (rights.clone(), *kept_at))
    }

    pub(crate) fn keep_maker(&self, maker: Maker, rights: MakerRights, now: i64, generation: u64) {
        let mut kept = self.by_maker.write();
        if self.generation.load(Ordering::Acquire) != generation {
            return;
        }
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(maker, (rights, now));
    }

    pub(crate) fn keep(&self, hash: TokenHash, identity: Identity, generation: u64) -> Arc<Identity> {
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

    pub(crate) fn public(&self, now: i64) -> Option<Arc<CheckedRights>> {
        let kept = self.public.read();
        kept.as_ref().filter(|(_, kept_at)| (0..KEPT_MS).contains(&(now - kept_at))).map(|(kept, _)| Arc::clone(kept))
    }

    pub(crate) fn keep_public(&self, permissions: Permissions, now: i64, generation: u64) -> Arc<CheckedRights> {
        let public = Arc::new(CheckedRights::new(Arc::new(permissions), generation, now));
        let mut kept = self.public.write();
        if self.generation.load(Ordering::Acquire) == generation {
            *kept = Some((Arc::clone(&public), now));
        }
        public
    }

    /// The rights `whole`, limited to those of a role.
    pub(crate) fn view(&self, role: &str, whole: &Arc<Permissions>, now: i64) -> Option<Arc<Permissions>> {
        let kept = self.by_view.read();
        let view = kept.get(&(role.to_owned(), Arc::as_ptr(whole) as usize))?;
        let holds = Arc::ptr_eq(&view.whole, whole) && (0..KEPT_MS).contains(&(now - view.kept_at));
        holds.then(|| Arc::clone(&view.cut))
    }

    pub(crate) fn keep_view(
        &self,
        role: &str,
        whole: &Arc<Permissions>,
        cut: Permissions,
        now: i64,
        generation: u64,
    ) -> Arc<Permissions> {
        let cut = Arc::new(cut);
        let mut kept = self.by_view.write();
        if self.generation.load(Ordering::Acquire) == generation {
            if kept.len() >= VIEWS_MAX {
                kept.clear();
            }
            let view = View { whole: Arc::clone(whole), cut: Arc::clone(&cut), kept_at: now };
            kept.insert((role.to_owned(), Arc::as_ptr(whole) as usize), view);
        }
        cut
    }

    /// The rights of a block that were computed from exactly these rights. They are as old as the rights that they come from, so
    /// they need no time of their own.
    pub(crate) fn block_rights(&self, parties: &RightsOfParties) -> Option<Arc<BlockRights>> {
        let kept = self.by_block.read();
        kept.by_parties.get(&parties.addresses()).map(|(rights, _)| rights).filter(|rights| rights.are_of(parties)).cloned()
    }

    /// Keeps the rights of a block, and drops those that are older than [`KEPT_MS`].
    pub(crate) fn keep_block_rights(&self, rights: &Arc<BlockRights>, now: i64, generation: u64) {
        // They may be large, so they are dropped after the lock is released.
        let mut removed: Vec<(Arc<BlockRights>, i64)> = Vec::new();
        let mut kept = self.by_block.write();
        if self.generation.load(Ordering::Acquire) != generation {
            return;
        }
        let is_old = |at: i64| !(0..KEPT_MS).contains(&(now - at));
        if is_old(kept.swept_at) {
            removed.extend(kept.by_parties.extract_if(|_, (_, kept_at)| is_old(*kept_at)).map(|(_, old)| old));
            kept.swept_at = now;
        }
        if kept.by_parties.len() >= BLOCK_RIGHTS_MAX {
            removed.extend(kept.by_parties.drain().map(|(_, old)| old));
        }
        removed.extend(kept.by_parties.insert(rights.addresses(), (Arc::clone(rights), now)));
    }

    /// Whether a user with a credential exists.
    pub(crate) fn has_users(&self, now: i64) -> Option<bool> {
        let kept = *self.has_users.read();
        kept.filter(|(_, kept_at)| (0..KEPT_MS).contains(&(now - kept_at))).map(|(has_users, _)| has_users)
    }

    pub(crate) fn keep_has_users(&self, has_users: bool, now: i64, generation: u64) {
        let mut kept = self.has_users.write();
        if self.generation.load(Ordering::Acquire) == generation {
            *kept = Some((has_users, now));
        }
    }

    /// Clears the cache if this version of the accounts is newer than every version before. Afterwards the cache has nothing that
    /// was read before this version, also if another thread clears it at the same time.
    pub(crate) fn follow(&self, version: i64) {
        let is_known = || version <= self.version.load(Ordering::Acquire);
        if is_known() {
            return;
        }
        let _turn = self.following.lock();
        if is_known() {
            return;
        }
        self.forget();
        // This comes last, so that nobody takes the version for known while the cache has older rights.
        self.version.store(version, Ordering::Release);
    }

    /// Clears the cache, because users, roles, keys or sessions changed here.
    pub(crate) fn forget(&self) {
        let (mut kept, mut makers, mut public) = (self.by_hash.write(), self.by_maker.write(), self.public.write());
        let (mut views, mut blocks) = (self.by_view.write(), self.by_block.write());
        let mut has_users = self.has_users.write();
        self.generation.fetch_add(1, Ordering::Release);
        kept.clear();
        makers.clear();
        views.clear();
        blocks.by_parties.clear();
        *public = None;
        *has_users = None;
    }
}

#[cfg(test)]
mod tests {
    use blockbase_query::Variables;

    use super::*;

    fn rights() -> Arc<Permissions> {
        Arc::new(Permissions::new(Vec::new(), None))
    }

    /// The same rights in memory, for a user with this id.
    fn parties(of: &RightsOfParties, user_id: Option<&str>) -> RightsOfParties {
        RightsOfParties {
            asked: of.asked.clone(),
            invoker: Arc::clone(&of.invoker),
            maker: of.maker.clone(),
            subject: Variables { user_id: user_id.map(str::to_owned), ..Variables::default() },
        }
    }

    #[test]
    fn rights_of_a_block_are_found_only_by_the_rights_that_they_come_from() {
        let cache = IdentityCache::default();
        let known = RightsOfParties {
            asked: [rights(), rights()],
            invoker: rights(),
            maker: Some(rights()),
            subject: Variables::default(),
        };
        let same = || parties(&known, None);
        let keep = |generation: u64| {
            let rights = Arc::new(BlockRights::new("block", &Maker::default(), same(), generation, 0));
            cache.keep_block_rights(&rights, 0, generation);
        };
        keep(cache.generation());
        assert!(cache.block_rights(&same()).is_some());
        for other in [
            parties(&known, Some("u")),
            RightsOfParties { asked: [rights(), Arc::clone(&known.asked[1])], ..same() },
            RightsOfParties { asked: [Arc::clone(&known.asked[0]), rights()], ..same() },
            RightsOfParties { invoker: rights(), ..same() },
            RightsOfParties { maker: Some(rights()), ..same() },
            RightsOfParties { maker: None, ..same() },
        ] {
            assert!(cache.block_rights(&other).is_none());
        }
        // After a change of accounts nothing is found, and rights that were computed before it are not kept.
        let before = cache.generation();
        cache.forget();
        assert!(cache.block_rights(&same()).is_none());
        keep(before);
        assert!(cache.block_rights(&same()).is_none());
        keep(cache.generation());
        assert!(cache.block_rights(&same()).is_some());
    }

    #[test]
    fn a_version_of_the_accounts_clears_the_cache_once() {
        let cache = Arc::new(IdentityCache::default());
        let keep = || drop(cache.keep_public(Permissions::new(Vec::new(), None), 0, cache.generation()));
        let is_kept = || cache.public(0).is_some();
        keep();
        cache.follow(0);
        assert!(is_kept());
        std::thread::scope(|threads| {
            // The first thread to follow stops in the middle. Until it has cleared the cache, no other thread knows the version.
            let read = cache.has_users.read();
            let following: Vec<_> = (0..4).map(|_| threads.spawn(|| cache.follow(2))).collect();
            while !cache.by_hash.is_locked_exclusive() {
                std::thread::yield_now();
            }
            assert_eq!(cache.version.load(Ordering::Acquire), 0);
            drop(read);
            following.into_iter().for_each(|thread| thread.join().expect("an end"));
        });
        assert!(!is_kept());
        assert_eq!(cache.generation(), 1);
        keep();
        // A version may be read late.
        for known in [2, 1, 0] {
            cache.follow(known);
        }
        assert!(is_kept());
        // A change of this instance is cleared for once too, whoever comes first.
        cache.begin_change().committed(Some(3));
        cache.follow(3);
        assert_eq!(cache.generation(), 2);
        let change = cache.begin_change();
        cache.follow(4);
        change.committed(Some(4));
        assert_eq!(cache.generation(), 3);
        // If the change has no version, or may have failed, nothing is kept.
        keep();
        cache.begin_change().committed(None);
        assert!(!is_kept());
        drop(cache.begin_change());
        assert_eq!((cache.generation(), cache.are_changing()), (5, false));
    }

    #[test]
    fn old_rights_of_blocks_take_no_memory() {
        let cache = IdentityCache::default();
        let keep = |now: i64| {
            let asked = [rights(), rights()];
            let parties = RightsOfParties { asked, invoker: rights(), maker: None, subject: Variables::default() };
            let rights = Arc::new(BlockRights::new("block", &Maker::default(), parties, cache.generation(), now));
            cache.keep_block_rights(&rights, now, cache.generation());
            Arc::downgrade(&rights)
        };
        let start = 1_000_000;
        let first = keep(start);
        let second = keep(start + 1);
        // The last sweep was a moment ago.
        let third = keep(start + KEPT_MS - 1);
        assert!([&first, &second, &third].iter().all(|rights| rights.upgrade().is_some()));
        let fourth = keep(start + KEPT_MS);
        assert!(first.upgrade().is_none());
        assert!([&second, &third, &fourth].iter().all(|rights| rights.upgrade().is_some()));
        let fifth = keep(start + 2 * KEPT_MS);
        assert!([&second, &third, &fourth].iter().all(|rights| rights.upgrade().is_none()));
        // If the clock is set back, no entry stays for longer.
        keep(start);
        assert!(fifth.upgrade().is_none());
    }
}

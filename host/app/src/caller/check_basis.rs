//! The data by which a caller was checked, so that they can be checked again.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use blockbase_query::{Action, Permissions, Variables};
use blockbase_schema::Result;
use blockbase_store::Maker;
use tokio::sync::Semaphore;

use crate::caller::identity::Identity;

/// How long one check of a caller waits for others. Then it reads the accounts by itself.
const TURN_WAIT: Duration = Duration::from_secs(1);

/// The last check of a caller: the state of the accounts, and the time. A new check renews the stamp for everything that shares
/// it.
#[derive(Debug)]
pub(crate) struct Stamp {
    /// The state of the accounts before they were read. Later checks do not change it: they only show that no right was lost.
    pub(crate) first_generation: u64,
    pub(crate) generation: AtomicU64,
    pub(crate) at: AtomicI64,
    /// The permit to check again. All streams of a caller may need a check at the same moment, because of an event.
    turn: Semaphore,
}

impl Stamp {
    /// `generation` is the state of the accounts before they were read.
    pub(crate) fn new(generation: u64, now: i64) -> Stamp {
        let first_generation = generation;
        Stamp { first_generation, generation: AtomicU64::new(generation), at: AtomicI64::new(now), turn: Semaphore::new(1) }
    }

    /// Runs `check` in turn with other checks, unless one of those has made the caller current. It waits at most [`TURN_WAIT`]
    /// for its turn.
    ///
    /// # Errors
    /// Those of `check`.
    pub(crate) async fn check_in_turn(
        &self,
        is_current: impl Fn() -> bool,
        check: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        // The permit is held until the end of this function.
        let _turn = tokio::time::timeout(TURN_WAIT, self.turn.acquire()).await;
        if is_current() { Ok(()) } else { check.await }
    }

    pub(crate) fn renew(&self, generation: u64, now: i64) {
        self.at.store(now, Ordering::Release);
        self.generation.store(generation, Ordering::Release);
    }
}

/// The data by which a caller was checked. All parts are `None` for the service itself.
#[derive(Clone, Default)]
pub(crate) struct CheckBasis {
    /// The identity of a credential, or of the maker of a thing.
    pub(crate) identity: Option<Arc<Identity>>,
    /// The rights of everybody, for a caller without a credential.
    pub(crate) public: Option<Arc<CheckedRights>>,
    /// The consent of a block's maker, from which the caller has its rights.
    pub(crate) consent: Option<Arc<Consent>>,
    /// For a long operation, the only rights that must still be present at a later check.
    pub(crate) needs: Option<Arc<Needs>>,
}

/// Rights, and their last check.
pub(crate) struct CheckedRights {
    pub(crate) rights: Arc<Permissions>,
    pub(crate) stamp: Stamp,
}

impl CheckedRights {
    pub(crate) fn new(rights: Arc<Permissions>, generation: u64, now: i64) -> CheckedRights {
        CheckedRights { rights, stamp: Stamp::new(generation, now) }
    }
}

/// The rights that a block has by its maker's consent.
pub(crate) struct Consent {
    pub(crate) maker: Maker,
    /// The rights that the manifest asks for: first the rights of the block for itself, then its rights as its caller.
    pub(crate) asked: [Arc<Permissions>; 2],
    /// The same rights, limited to those that the maker had.
    pub(crate) cut: [Arc<Permissions>; 2],
    /// The variables of the block's caller. `own` means the rows of this caller.
    pub(crate) subject: Variables,
    pub(crate) stamp: Stamp,
}

impl Consent {
    pub(crate) fn new(
        maker: Maker,
        asked: [Arc<Permissions>; 2],
        rights: &Arc<Permissions>,
        subject: Variables,
        generation: u64,
        now: i64,
    ) -> Consent {
        let cut = Consent::cut(&asked, rights, &subject);
        Consent { maker, asked, cut, subject, stamp: Stamp::new(generation, now) }
    }

    /// The rights of the block for itself, and as its caller.
    pub(crate) fn rights(&self) -> [Arc<Permissions>; 2] {
        self.cut.clone()
    }

    pub(crate) fn cut(asked: &[Arc<Permissions>; 2], rights: &Arc<Permissions>, subject: &Variables) -> [Arc<Permissions>; 2] {
        let limited = |asked: &Permissions, limit: Arc<Permissions>| Arc::new(asked.clone().limited_to(limit));
        // A maker who only has a right to own rows can consent to access to the caller's own rows, so `own` means the rows of the
        // caller here. But variables in conditions of the maker's grants stand for the maker, so these grants never give a caller
        // rows that the maker cannot access.
        let of_caller = Arc::new(rights.as_ref().clone().with_owner(subject.user_id.clone()));
        [limited(&asked[0], Arc::clone(rights)), limited(&asked[1], of_caller)]
    }
}

/// Rights that a long operation needs until its end.
pub(crate) struct Needs {
    pub(crate) rights: Vec<(String, Action)>,
    pub(crate) stamp: Stamp,
}

impl CheckBasis {
    /// The data for a check by an identity.
    pub(crate) fn of(identity: &Arc<Identity>) -> CheckBasis {
        CheckBasis { identity: Some(Arc::clone(identity)), ..CheckBasis::default() }
    }

    /// The data for a check by the rights that everybody has.
    pub(crate) fn as_everybody(public: Arc<CheckedRights>) -> CheckBasis {
        CheckBasis { public: Some(public), ..CheckBasis::default() }
    }

    /// The same data for a long operation that needs only these rights at a later check.
    pub(crate) fn that_needs(mut self, rights: Vec<(String, Action)>) -> CheckBasis {
        // The stamp matches no state of the accounts, so that the first use checks the rights.
        self.needs = Some(Arc::new(Needs { rights, stamp: Stamp::new(u64::MAX, 0) }));
        self
    }

    /// Whether the caller is the service itself, which cannot lose its rights.
    pub(crate) fn is_service(&self) -> bool {
        self.identity.is_none() && self.public.is_none() && self.consent.is_none()
    }

    /// The stamp of the caller's identity, if only the identity is checked. Then a check of one stream is a check of all others
    /// with this identity. Callers without a credential never wait for each other.
    pub(crate) fn only_stamp(&self) -> Option<&Stamp> {
        match self {
            CheckBasis { identity: Some(identity), public: None, consent: None, needs: None } => Some(&identity.last_check),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use blockbase_schema::Error;
    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    /// A check that must not begin.
    async fn never() -> Result<()> {
        panic!("another check is enough")
    }

    #[tokio::test]
    async fn a_check_that_succeeds_is_the_check_of_all_who_wait_for_it() {
        let stamp = Stamp::new(0, 0);
        let is_current = || stamp.generation.load(Ordering::Acquire) == 1;
        let (found, finds) = oneshot::channel::<Result<()>>();
        let mut first = pin!(stamp.check_in_turn(is_current, async {
            finds.await.unwrap_or_else(|_| Err(Error::internal("no answer")))?;
            stamp.renew(1, 0);
            Ok(())
        }));
        assert!(first.as_mut().now_or_never().is_none());
        let mut others: Vec<_> = (0..3).map(|_| Box::pin(stamp.check_in_turn(is_current, never()))).collect();
        for other in &mut others {
            assert!(other.as_mut().now_or_never().is_none());
        }
        found.send(Ok(())).expect("the first check");
        assert!(first.await.is_ok());
        for other in others {
            assert!(other.await.is_ok());
        }
    }

    #[tokio::test]
    async fn the_next_check_reads_if_the_first_one_fails_or_is_closed() {
        let stamp = Stamp::new(0, 0);
        let mut closed = Box::pin(stamp.check_in_turn(|| false, std::future::pending()));
        assert!(closed.as_mut().now_or_never().is_none());
        let mut failing = pin!(stamp.check_in_turn(|| false, async { Err(Error::internal("no database")) }));
        assert!(failing.as_mut().now_or_never().is_none());
        drop(closed);
        assert!(failing.await.is_err());
        assert!(stamp.check_in_turn(|| false, async { Ok(()) }).now_or_never().expect("a free turn").is_ok());
    }
}

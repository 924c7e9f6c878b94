//! What a caller was judged by, so that they can be judged again.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use blockbase_query::{Action, Permissions, Variables};
use blockbase_store::Maker;

use crate::caller::identity::Identity;

/// When a caller was judged last: the state of the accounts, and the time. Judging again renews it for all who share it.
#[derive(Debug)]
pub(crate) struct Stamp {
    pub(crate) generation: AtomicU64,
    pub(crate) at: AtomicI64,
}

impl Stamp {
    /// `generation` is the state of the accounts before they were read.
    pub(crate) fn new(generation: u64, now: i64) -> Stamp {
        Stamp { generation: AtomicU64::new(generation), at: AtomicI64::new(now) }
    }

    pub(crate) fn renew(&self, generation: u64, now: i64) {
        self.at.store(now, Ordering::Release);
        self.generation.store(generation, Ordering::Release);
    }
}

/// The data by which a caller was judged. All parts are empty for the service itself.
#[derive(Clone, Default)]
pub(crate) struct Judged {
    /// The identity that a credential showed, or the maker of a thing.
    pub(crate) identity: Option<Arc<Identity>>,
    /// The rights of everybody, for a caller without a credential.
    pub(crate) public: Option<Arc<Held>>,
    /// The maker of a block whose consent gives the caller its rights.
    pub(crate) consent: Option<Arc<Consent>>,
    /// For a long operation: the only rights that count.
    pub(crate) needs: Option<Arc<Needs>>,
}

/// Rights, and when they were judged.
pub(crate) struct Held {
    pub(crate) rights: Arc<Permissions>,
    pub(crate) stamp: Stamp,
}

impl Held {
    pub(crate) fn new(rights: Arc<Permissions>, generation: u64, now: i64) -> Held {
        Held { rights, stamp: Stamp::new(generation, now) }
    }
}

/// What a block may do by its maker's consent.
pub(crate) struct Consent {
    pub(crate) maker: Maker,
    /// For itself, and as its caller: what its manifest asks for.
    pub(crate) asked: [Arc<Permissions>; 2],
    /// The same, cut to what the maker held.
    pub(crate) cut: [Arc<Permissions>; 2],
    /// The caller of the block, whose rows `own` means.
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

    /// What the block may do for itself, and as its caller.
    pub(crate) fn rights(&self) -> [Arc<Permissions>; 2] {
        self.cut.clone()
    }

    pub(crate) fn cut(asked: &[Arc<Permissions>; 2], rights: &Arc<Permissions>, subject: &Variables) -> [Arc<Permissions>; 2] {
        let limited = |asked: &Permissions, limit: Arc<Permissions>| Arc::new(asked.clone().limited_to(limit));
        // Consent to the caller's own rows needs no more than a right to own rows, so there `own` means the caller's. Conditions of the
        // maker's grants are about the maker: the block reaches no row for its caller that the maker does not reach.
        let of_caller = Arc::new(rights.as_ref().clone().with_owner(subject.user_id.clone()));
        [limited(&asked[0], Arc::clone(rights)), limited(&asked[1], of_caller)]
    }
}

/// Rights that something needs until its end.
pub(crate) struct Needs {
    pub(crate) rights: Vec<(String, Action)>,
    pub(crate) stamp: Stamp,
}

impl Judged {
    /// Judged by a session.
    pub(crate) fn of(identity: &Arc<Identity>) -> Judged {
        Judged { identity: Some(Arc::clone(identity)), ..Judged::default() }
    }

    /// Judged by what everybody may do.
    pub(crate) fn as_everybody(public: Arc<Held>) -> Judged {
        Judged { public: Some(public), ..Judged::default() }
    }

    /// The same for something that runs for long and needs only these rights.
    pub(crate) fn that_needs(mut self, rights: Vec<(String, Action)>) -> Judged {
        // Of no state at all: the first look judges.
        self.needs = Some(Arc::new(Needs { rights, stamp: Stamp::new(u64::MAX, 0) }));
        self
    }

    /// Whether it is the service itself, whose rights nobody can take.
    pub(crate) fn is_service(&self) -> bool {
        self.identity.is_none() && self.public.is_none() && self.consent.is_none()
    }
}

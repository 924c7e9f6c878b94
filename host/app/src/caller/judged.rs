//! The data by which a caller was checked, so that they can be checked again.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use blockbase_query::{Action, Permissions, Variables};
use blockbase_store::Maker;

use crate::caller::identity::Identity;

/// When a caller was last checked: the state of the accounts, and the time. Another check renews it for everything that shares
/// it.
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

/// The data by which a caller was checked. All parts are empty for the service itself.
#[derive(Clone, Default)]
pub(crate) struct Judged {
    /// The identity of a credential, or of the maker of a thing.
    pub(crate) identity: Option<Arc<Identity>>,
    /// The rights of everybody, for a caller without a credential.
    pub(crate) public: Option<Arc<Held>>,
    /// The maker of a block whose consent gives the caller its rights.
    pub(crate) consent: Option<Arc<Consent>>,
    /// For a long operation: the only rights that count.
    pub(crate) needs: Option<Arc<Needs>>,
}

/// Rights, and when they were last checked.
pub(crate) struct Held {
    pub(crate) rights: Arc<Permissions>,
    pub(crate) stamp: Stamp,
}

impl Held {
    pub(crate) fn new(rights: Arc<Permissions>, generation: u64, now: i64) -> Held {
        Held { rights, stamp: Stamp::new(generation, now) }
    }
}

/// The rights that a block has by its maker's consent.
pub(crate) struct Consent {
    pub(crate) maker: Maker,
    /// The rights that the manifest asks for: first those for the block itself, then those as its caller.
    pub(crate) asked: [Arc<Permissions>; 2],
    /// The same rights, limited to those that the maker had.
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

    /// The rights of the block for itself, and as its caller.
    pub(crate) fn rights(&self) -> [Arc<Permissions>; 2] {
        self.cut.clone()
    }

    pub(crate) fn cut(asked: &[Arc<Permissions>; 2], rights: &Arc<Permissions>, subject: &Variables) -> [Arc<Permissions>; 2] {
        let limited = |asked: &Permissions, limit: Arc<Permissions>| Arc::new(asked.clone().limited_to(limit));
        // To consent to access to the caller's own rows, a right to own rows is enough, so here `own` means the rows of the
        // caller. But variables in conditions of the maker's grants mean the maker, so by these the block reaches no row for its
        // caller that the maker does not reach.
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
    /// Checked by an identity.
    pub(crate) fn of(identity: &Arc<Identity>) -> Judged {
        Judged { identity: Some(Arc::clone(identity)), ..Judged::default() }
    }

    /// Checked by the rights that everybody has.
    pub(crate) fn as_everybody(public: Arc<Held>) -> Judged {
        Judged { public: Some(public), ..Judged::default() }
    }

    /// The same for a long operation that needs only these rights.
    pub(crate) fn that_needs(mut self, rights: Vec<(String, Action)>) -> Judged {
        // The stamp belongs to no state of the accounts, so the first use is checked.
        self.needs = Some(Arc::new(Needs { rights, stamp: Stamp::new(u64::MAX, 0) }));
        self
    }

    /// Whether it is the service itself, whose rights cannot be lost.
    pub(crate) fn is_service(&self) -> bool {
        self.identity.is_none() && self.public.is_none() && self.consent.is_none()
    }
}

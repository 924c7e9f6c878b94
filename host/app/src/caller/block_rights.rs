//! The rights of a block's calls, for one invoker.

use std::sync::Arc;

use blockbase_query::{Compiled, Permissions, Variables};
use blockbase_store::Maker;

use crate::caller::Authority;
use crate::caller::check_basis::Consent;

/// Everything from which the rights of a block's calls are computed.
pub(crate) struct RightsOfParties {
    /// The rights that the manifest asks for: first the rights of the block for itself, then its rights as its caller.
    pub(crate) asked: [Arc<Permissions>; 2],
    /// The rights of the invoker.
    pub(crate) invoker: Arc<Permissions>,
    /// The rights of the maker who consented. `None` if there is no maker, so that nothing limits the block.
    pub(crate) maker: Option<Arc<Permissions>>,
    /// The values of the invoker's variables.
    pub(crate) subject: Variables,
}

impl RightsOfParties {
    /// Whether both have the very same rights in memory. Rights in memory never change: a change of a role, a ban or an upgrade
    /// of the block leads to new ones.
    fn are_the_same(&self, other: &RightsOfParties) -> bool {
        let same_maker = match (&self.maker, &other.maker) {
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            (one, two) => one.is_none() && two.is_none(),
        };
        same_maker
            && self.asked.iter().zip(&other.asked).all(|(one, two)| Arc::ptr_eq(one, two))
            && Arc::ptr_eq(&self.invoker, &other.invoker)
            && self.subject == other.subject
    }

    /// The memory addresses of the block's own rights and of the invoker's rights. As long as these rights are in memory, all
    /// other rights have other addresses.
    pub(crate) fn addresses(&self) -> (usize, usize) {
        (Arc::as_ptr(&self.asked[0]) as usize, Arc::as_ptr(&self.invoker) as usize)
    }
}

/// The rights of a block's calls for one invoker. All of these calls share the compiled conditions.
pub(crate) struct BlockRights {
    parties: RightsOfParties,
    pub(crate) authority: Authority,
    pub(crate) consent: Option<Arc<Consent>>,
}

impl BlockRights {
    /// `generation` is the state of the accounts before the rights of the maker were read.
    pub(crate) fn new(name: &str, maker: &Maker, parties: RightsOfParties, generation: u64, now: i64) -> BlockRights {
        let subject = &parties.subject;
        let of_subject = |asked: &Arc<Permissions>| Arc::new(asked.as_ref().clone().with_subject(subject.clone()));
        let asked = [of_subject(&parties.asked[0]), of_subject(&parties.asked[1])];
        let consent = parties
            .maker
            .as_ref()
            .map(|rights| Arc::new(Consent::new(maker.clone(), asked.clone(), rights, subject.clone(), generation, now)));
        let [plain, as_caller] = consent.as_ref().map_or(asked, |consent| consent.rights());
        let (caller, compiled) = (Arc::clone(&parties.invoker), Arc::<Compiled>::default());
        let authority = Authority::Block { name: name.into(), plain, as_caller, caller, compiled };
        BlockRights { parties, authority, consent }
    }

    pub(crate) fn are_of(&self, parties: &RightsOfParties) -> bool {
        self.parties.are_the_same(parties)
    }

    pub(crate) fn addresses(&self) -> (usize, usize) {
        self.parties.addresses()
    }
}

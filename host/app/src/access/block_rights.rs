//! The rights of a block's calls. They are kept in memory with the identities that they are computed from, so that the conditions
//! of grants are compiled once, and not again for each call and each operation of a call.

use std::sync::Arc;

use blockbase_query::Permissions;

use crate::App;
use crate::caller::Caller;
use crate::caller::block_rights::{BlockRights, RightsOfParties};
use crate::state::block_types::InstalledBlock;

impl App {
    /// The rights of the calls of a block for this invoker: those that the manifest asks for, limited to those of the maker.
    ///
    /// `maker` are the rights that the maker has now, and `generation` is the state of the accounts before they were read. The
    /// result comes from the cache only if it was computed from these rights of the maker, of the invoker and of the block. So it
    /// is never older than they are.
    pub(crate) fn rights_of_block(
        &self,
        block: &InstalledBlock,
        invoker: &Caller,
        maker: Option<&Arc<Permissions>>,
        generation: u64,
    ) -> Arc<BlockRights> {
        let parties = RightsOfParties {
            asked: block.asked(),
            // If the invoker is a block, only the rights that it has for itself count as the caller's.
            invoker: Arc::clone(invoker.rights()),
            maker: maker.cloned(),
            subject: invoker.variables(0),
        };
        if let Some(rights) = self.identities.block_rights(&parties) {
            return rights;
        }
        // Each caller without enforcement has rights of its own, which no later call finds.
        let is_found_again = !parties.invoker.is_unrestricted();
        let now = self.clock.now();
        let rights = Arc::new(BlockRights::new(block.name(), &block.maker, parties, generation, now));
        if is_found_again {
            self.identities.keep_block_rights(&rights, now, generation);
        }
        rights
    }
}

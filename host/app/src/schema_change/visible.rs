//! The objects and the blocks' actions that descriptions of the service show to a caller.

use std::sync::Arc;

use blockbase_query::Action;
use blockbase_schema::{Registry, Resource};

use crate::App;
use crate::caller::Caller;
use crate::state::block_types::InstalledBlock;

/// The schema and the actions that one caller may see, at one version of each.
#[derive(Clone, Debug)]
pub struct Visible {
    pub registry: Arc<Registry>,
    /// Goes up by one with each change of the installed blocks.
    pub blocks_version: i64,
    /// Names of the objects that may be shown, in order, each with whether the caller may read its records.
    pub objects: Vec<(String, bool)>,
    /// Actions that may be shown: the block, and the index in its manifest.
    pub actions: Vec<(Arc<InstalledBlock>, usize)>,
}

impl App {
    /// The objects and actions that `caller` may see.
    ///
    /// A caller with read on `objects` sees every object. Other callers see the objects on which they have any right. An action is
    /// visible to callers who may call it or read `blocks`. So this shows no caller an object that the caller could not find otherwise.
    pub fn visible(&self, caller: &Caller) -> Visible {
        let registry = self.registry();
        let (blocks_version, blocks) = {
            // Both change only under this lock.
            let version = self.blocks_version.lock();
            (*version, Arc::clone(&self.blocks.read()))
        };
        let objects = registry
            .objects()
            .filter(|object| caller.knows(object.name()))
            .map(|object| (object.name().to_owned(), caller.may(object.name(), Action::Read)))
            .collect();
        let reads_blocks = caller.holds(Resource::Blocks, Action::Read);
        let mut actions = Vec::new();
        for block in blocks.values().filter(|block| block.enabled) {
            for (place, declared) in block.manifest.actions.iter().enumerate() {
                if reads_blocks || self.may_call(caller, declared) {
                    actions.push((Arc::clone(block), place));
                }
            }
        }
        Visible { registry, blocks_version, objects, actions }
    }
}

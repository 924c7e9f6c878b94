//! Decides which objects and actions of blocks a caller sees in descriptions of the service.

use std::collections::BTreeMap;
use std::sync::Arc;

use blockbase_query::{Action, KnownObjects};
use blockbase_schema::{Object, Registry, Resource, USERS};

use crate::App;
use crate::caller::Caller;
use crate::state::block_types::InstalledBlock;

/// The schema and the actions that one caller may see, at one version of each.
#[derive(Clone, Debug)]
pub struct Visible {
    /// The registry with the fields that the caller may read.
    pub registry: Arc<Registry>,
    /// The complete registry.
    whole: Arc<Registry>,
    /// For reading, for creating and for changing records: the objects whose fields the caller does not all know.
    limits: [Arc<KnownObjects>; 3],
    /// The objects with the fields that the caller may write: for creating and for changing records.
    written: [BTreeMap<String, Arc<Object>>; 2],
    /// The version of the installed blocks. Each change of them adds one.
    pub blocks_version: i64,
    /// Sorted names of the objects that may be shown. The flag says whether the caller may read the records.
    pub objects: Vec<(String, bool)>,
    /// Actions that may be shown, each with its block and its index in the manifest.
    pub actions: Vec<(Arc<InstalledBlock>, usize)>,
}

impl Visible {
    /// The view of a caller who knows all fields of each object.
    pub fn whole(registry: Arc<Registry>, blocks_version: i64, objects: Vec<(String, bool)>) -> Visible {
        let whole = Arc::clone(&registry);
        Visible {
            registry,
            whole,
            limits: Default::default(),
            written: Default::default(),
            blocks_version,
            objects,
            actions: Vec::new(),
        }
    }

    /// For reading, for creating and for changing records: the objects whose fields the caller does not all know. Callers with
    /// the same objects and the same limits see the same things.
    pub fn limits(&self) -> &[Arc<KnownObjects>; 3] {
        &self.limits
    }

    /// An object with the columns that the caller may name in a new record.
    pub fn to_create(&self, object: &str) -> Option<&Arc<Object>> {
        self.written[0].get(object).or_else(|| self.whole.object(object))
    }

    /// An object with the columns that the caller may name in a change of a record.
    pub fn to_change(&self, object: &str) -> Option<&Arc<Object>> {
        self.written[1].get(object).or_else(|| self.whole.object(object))
    }
}

impl App {
    /// The objects and actions that `caller` may see.
    ///
    /// A caller with read on `objects` sees every object. Other callers see the objects on which they have any right. An action
    /// is visible to callers who may call it or read `blocks`. So callers see only objects that they could also find in other
    /// ways.
    pub fn visible(&self, caller: &Caller) -> Visible {
        let whole = self.registry();
        let grant_context = self.grant_context(&whole);
        let limits = [
            caller.known_objects(&grant_context),
            caller.writable_objects(&grant_context, Action::Create),
            caller.writable_objects(&grant_context, Action::Update),
        ];
        let registry = self.shapes.registry(&whole, &limits[0]);
        let written = [&limits[1], &limits[2]].map(|limits| {
            let of = |object: &Arc<Object>| {
                let known = limits.get(&object.id)?;
                Some((object.name().to_owned(), self.shapes.to_write(&whole, object, known)))
            };
            if limits.is_empty() { BTreeMap::new() } else { whole.objects().filter_map(of).collect() }
        });
        let (blocks_version, blocks) = {
            // The registry and the blocks change only under this lock.
            let version = self.blocks_version.lock();
            (*version, Arc::clone(&self.blocks.read()))
        };
        let mut objects: Vec<(String, bool)> = registry
            .objects()
            .filter(|object| caller.knows(object.name()))
            .map(|object| (object.name().to_owned(), caller.may(object.name(), Action::Read)))
            .collect();
        // Users are described only if a relation leads to them, which the caller need not know. REST lists them in any case.
        if whole.leads_to_users() && caller.may(USERS, Action::Read) {
            objects.push((USERS.to_owned(), true));
        }
        let reads_blocks = caller.holds(Resource::Blocks, Action::Read);
        let mut actions = Vec::new();
        for block in blocks.values().filter(|block| block.enabled) {
            for (place, declared) in block.manifest.actions.iter().enumerate() {
                if reads_blocks || self.may_call(caller, declared) {
                    actions.push((Arc::clone(block), place));
                }
            }
        }
        Visible { registry, whole, limits, written, blocks_version, objects, actions }
    }
}

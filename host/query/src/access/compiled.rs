//! Conditions of grants that were read before, for the requests to come of the same caller.

use std::collections::HashMap;
use std::sync::Arc;

use blockbase_schema::Object;
use parking_lot::Mutex;

use super::{Access, Action, Decision, Ground, KnownObjects};

/// What the conditions of one caller's grants came to, on one version of the schema.
#[derive(Debug, Default)]
pub(super) struct Compiled(Mutex<OnSchema>);

#[derive(Debug, Default)]
struct OnSchema {
    version: i64,
    /// By object and action. There are no more than the grants name.
    accesses: HashMap<(i64, Action), Access>,
    /// What the caller knows of the objects whose fields their grants do not all list, by action.
    known: HashMap<Action, Arc<KnownObjects>>,
}

impl OnSchema {
    /// Whether it is of this version now. What belongs to an older version is not kept.
    fn is_of(&mut self, version: i64) -> bool {
        if self.version < version {
            *self = OnSchema { version, ..OnSchema::default() };
        }
        self.version == version
    }
}

impl PartialEq for Compiled {
    /// It holds nothing that the grants do not say.
    fn eq(&self, _: &Compiled) -> bool {
        true
    }
}

impl Compiled {
    /// The decision on the rows of `object`, as [`Decision::on`] gives it.
    pub(super) fn access(&self, decision: Decision, ground: &Ground<'_>, object: &Arc<Object>, action: Action) -> Access {
        if !decision.is_kept() {
            return decision.on(ground, object);
        }
        let key = (object.id, action);
        {
            let known = self.0.lock();
            if known.version == ground.registry.version
                && let Some(access) = known.accesses.get(&key)
            {
                return access.clone();
            }
        }
        let access = decision.on(ground, object);
        let mut known = self.0.lock();
        if known.is_of(ground.registry.version) {
            known.accesses.insert(key, access.clone());
        }
        access
    }

    /// What `make` finds, once for each version of the schema.
    pub(super) fn known(&self, version: i64, action: Action, make: impl FnOnce() -> KnownObjects) -> Arc<KnownObjects> {
        {
            let mut kept = self.0.lock();
            if kept.is_of(version)
                && let Some(known) = kept.known.get(&action)
            {
                return Arc::clone(known);
            }
        }
        let known = Arc::new(make());
        let mut kept = self.0.lock();
        if kept.is_of(version) {
            kept.known.insert(action, Arc::clone(&known));
        }
        known
    }
}

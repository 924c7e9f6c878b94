//! Conditions of grants that were read before, for the requests to come of the same caller.

use std::collections::HashMap;
use std::sync::Arc;

use blockbase_schema::Object;
use parking_lot::Mutex;

use super::{Access, Action, Decision, Ground, KnownObjects};

/// What was made from one version of the schema.
#[derive(Debug, Default)]
pub(super) struct OfVersion<T> {
    version: i64,
    kept: T,
}

impl<T: Default> OfVersion<T> {
    /// What was made from this version; `None` if there is already something from a newer one. What belongs to an older one is dropped.
    pub(super) fn of(&mut self, version: i64) -> Option<&mut T> {
        if self.version < version {
            *self = OfVersion { version, kept: T::default() };
        }
        (self.version == version).then_some(&mut self.kept)
    }
}

/// What the conditions of one caller's grants came to, on one version of the schema.
#[derive(Debug, Default)]
pub(super) struct Compiled(Mutex<OfVersion<Made>>);

#[derive(Debug, Default)]
struct Made {
    /// By object and action. There are no more than the grants name.
    accesses: HashMap<(i64, Action), Access>,
    /// What the caller knows of the objects whose fields their grants do not all list, by action.
    known: HashMap<Action, Arc<KnownObjects>>,
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
        let version = ground.registry.version;
        if let Some(access) = self.0.lock().of(version).and_then(|made| made.accesses.get(&key)) {
            return access.clone();
        }
        let access = decision.on(ground, object);
        if let Some(made) = self.0.lock().of(version) {
            made.accesses.insert(key, access.clone());
        }
        access
    }

    /// What `make` finds, once for each version of the schema.
    pub(super) fn known(&self, version: i64, action: Action, make: impl FnOnce() -> KnownObjects) -> Arc<KnownObjects> {
        if let Some(known) = self.0.lock().of(version).and_then(|made| made.known.get(&action)) {
            return Arc::clone(known);
        }
        let known = Arc::new(make());
        if let Some(made) = self.0.lock().of(version) {
            made.known.insert(action, Arc::clone(&known));
        }
        known
    }
}

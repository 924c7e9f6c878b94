//! A cache of the compiled grant conditions of one caller, for later requests of the same caller.

use std::collections::HashMap;
use std::sync::Arc;

use blockbase_schema::Object;
use parking_lot::Mutex;

use super::of_version::OfVersion;
use super::{Access, Action, Decision, GrantContext, KnownObjects};

/// The accesses that one caller's decisions give, for one version of the schema. It belongs to rights that never change, so that
/// the same object and action always have the same decision.
#[derive(Debug, Default)]
pub struct Compiled(Mutex<OfVersion<CachedAccess>>);

#[derive(Debug, Default)]
struct CachedAccess {
    /// The accesses, keyed by object number and action. There are at most as many entries as the grants allow.
    accesses: HashMap<(i64, Action), Access>,
    /// For each action, the known fields of those objects of which the caller's grants list only some fields.
    known: HashMap<Action, Arc<KnownObjects>>,
}

impl PartialEq for Compiled {
    /// The cache is computed from the grants, so it does not matter for equality.
    fn eq(&self, _: &Compiled) -> bool {
        true
    }
}

impl Compiled {
    /// The access that [`Decision::on`] gives, from the cache if the decision can be cached.
    pub fn access(&self, decision: Decision, grant_context: &GrantContext<'_>, object: &Arc<Object>, action: Action) -> Access {
        if !decision.is_kept() {
            return decision.on(grant_context, object);
        }
        let key = (object.id, action);
        let version = grant_context.registry.version;
        if let Some(access) = self.0.lock().of(version).and_then(|made| made.accesses.get(&key)) {
            return access.clone();
        }
        let access = decision.on(grant_context, object);
        if let Some(made) = self.0.lock().of(version) {
            made.accesses.insert(key, access.clone());
        }
        access
    }

    /// Returns the result of `make`, which is computed once for each version of the schema.
    pub fn known(&self, version: i64, action: Action, make: impl FnOnce() -> KnownObjects) -> Arc<KnownObjects> {
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

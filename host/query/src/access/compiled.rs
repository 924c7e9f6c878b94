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

#[cfg(test)]
mod tests {
    use blockbase_schema::{Registry, StoredObject};
    use serde_json::{Value, json};

    use super::*;
    use crate::access::{Grant, Permissions, Shapes};
    use crate::condition::{Condition, Scope};

    fn registry(version: i64) -> Registry {
        let fields = json!([{ "name": "due", "type": "datetime" }, { "name": "day", "type": "date" }]);
        let definition = json!({ "name": "task", "fields": fields });
        let definition = serde_json::from_value(definition).expect("a definition");
        let task = StoredObject { id: 1, revision: 1, keys: vec![1, 2], definition, since: Default::default() };
        Registry::new(version, vec![task], Vec::new()).expect("a registry")
    }

    /// The condition of a caller's reads at a moment.
    fn condition(permissions: &Permissions, registry: &Registry, now: i64) -> Arc<Condition> {
        let shapes = Shapes::default();
        let grant_context = GrantContext { registry, now, shapes: &shapes };
        let decision = permissions.decide("task", Action::Read).expect("a right");
        let object = registry.object("task").expect("an object");
        match permissions.decided_on(decision, &grant_context, object, Action::Read).scope() {
            Scope::Where(condition) => Arc::clone(condition),
            other => panic!("{other:?}"),
        }
    }

    fn permissions(condition: Value) -> Permissions {
        let grant = json!({ "resource": "task", "actions": ["read"], "where": condition });
        let grant: Grant = serde_json::from_value(grant).expect("a grant");
        Permissions::new(vec![grant], Some("u".into()))
    }

    #[test]
    fn a_condition_is_compiled_once_for_each_version_of_the_schema() {
        let of_caller = permissions(json!({ "updated_by": "$user.id" }));
        let (first, second) = (registry(1), registry(2));
        let known = condition(&of_caller, &first, 1);
        assert!(Arc::ptr_eq(&known, &condition(&of_caller, &first, 2)));
        assert!(!Arc::ptr_eq(&known, &condition(&of_caller, &second, 2)));
    }

    #[test]
    fn a_condition_on_the_present_moment_is_compiled_anew() {
        let registry = registry(1);
        for (field, variable) in [("#1:1", "$now"), ("#1:2", "$today")] {
            let of_moment = permissions(json!({ field: { "lt": variable } }));
            let [one, other] = [0, 86_400_000].map(|now| condition(&of_moment, &registry, now));
            assert_ne!(one, other, "{variable}");
        }
    }
}

//! The registry snapshot: every object at one version, never changed, swapped whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::object::Object;

/// All objects of one schema version. A request keeps the snapshot that it began with.
#[derive(Debug, Default)]
pub struct Registry {
    /// Goes up by one with each change.
    pub version: i64,
    objects: BTreeMap<String, Arc<Object>>,
}

impl Registry {
    pub fn new(version: i64, objects: impl IntoIterator<Item = Arc<Object>>) -> Registry {
        let objects = objects.into_iter().map(|object| (object.name().to_owned(), object)).collect();
        Registry { version, objects }
    }

    pub fn object(&self, name: &str) -> Option<&Arc<Object>> {
        self.objects.get(name)
    }

    /// In the order of their names.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.values()
    }
}

//! What the grants of callers are read with.

use std::sync::Arc;

use blockbase_query::GrantContext;
use blockbase_schema::{Error, Registry, Result};
use blockbase_store::Connection;

use crate::App;
use crate::caller::Caller;
use crate::state::refresh::Catalogue;

impl App {
    /// The context in which conditions of grants are read.
    pub(crate) fn grant_context<'r>(&'r self, registry: &'r Registry) -> GrantContext<'r> {
        GrantContext { registry, now: self.clock.now(), shapes: &self.shapes }
    }

    /// The registry of the schema that a transaction sees. If a field was added a moment ago, by this instance or another one,
    /// the registry in memory may not have the field yet. A grant that lists it would seem to list a field that is gone, and
    /// nobody would need its rights.
    pub(crate) async fn registry_in(&self, connection: &mut Connection) -> Result<Arc<Registry>> {
        let known = self.registry();
        if connection.version("schema").await? == known.version {
            return Ok(known);
        }
        Ok(Arc::new(Catalogue::load(connection).await?.registry().map_err(Error::internal)?))
    }

    /// The registry without the fields that a caller may not know.
    pub(crate) fn known_to(&self, caller: &Caller, registry: &Arc<Registry>) -> Arc<Registry> {
        self.shapes.registry(registry, &caller.known_objects(&self.grant_context(registry)))
    }
}

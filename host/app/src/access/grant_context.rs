//! What the grants of callers are read with.

use std::sync::Arc;

use blockbase_query::GrantContext;
use blockbase_schema::Registry;

use crate::App;
use crate::caller::Caller;

impl App {
    /// The context in which conditions of grants are read.
    pub(crate) fn grant_context<'r>(&'r self, registry: &'r Registry) -> GrantContext<'r> {
        GrantContext { registry, now: self.clock.now(), shapes: &self.shapes }
    }

    /// The registry without the fields that a caller may not know.
    pub(crate) fn known_to(&self, caller: &Caller, registry: &Arc<Registry>) -> Arc<Registry> {
        self.shapes.registry(registry, &caller.known_objects(&self.grant_context(registry)))
    }
}

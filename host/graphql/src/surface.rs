//! The surface, and the state that its requests share.

use std::sync::Arc;

use blockbase_app::App;
use tokio::sync::watch;

use crate::execute;
use crate::sse_connections::Connections;
use crate::view::views::Views;

/// The surface.
pub struct Graphql {
    pub(crate) app: Arc<App>,
    pub(crate) views: Arc<Views>,
    pub(crate) sse: Connections,
    /// Permits for introspections.
    pub(crate) introspecting: execute::introspection::IntrospectionPermits,
    /// Becomes true when the server drains. Open streams then end.
    pub(crate) draining: watch::Receiver<bool>,
}

impl Graphql {
    pub fn new(app: Arc<App>, draining: watch::Receiver<bool>) -> Arc<Graphql> {
        let (sse, introspecting) = (Connections::default(), execute::introspection::IntrospectionPermits::default());
        Arc::new(Graphql { views: Views::new(Arc::clone(&app)), app, sse, introspecting, draining })
    }
}

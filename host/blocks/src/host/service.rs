//! The part of the service that a call uses.

use std::sync::Arc;

use blockbase_app::schema::Result;
use blockbase_app::{App, Caller, InstalledBlock};

use crate::engine::executors::Executors;

/// The operations and rights of a call. There is no `Service` while an install only tests the block.
pub(crate) struct Service {
    pub(crate) app: Arc<App>,
    pub(crate) block: Arc<InstalledBlock>,
    pub(crate) caller: Caller,
}

impl Service {
    /// Makes sure that the caller still has its rights, because a call can take minutes.
    pub(crate) async fn recheck(self: &Arc<Self>, executors: &Arc<Executors>) -> Result<()> {
        let service = Arc::clone(self);
        executors.serve(async move { service.app.recheck(&service.caller).await }).await
    }
}

//! The settings of the server, for callers who may see them.

use std::sync::Arc;

use blockbase_query::Action;
use blockbase_schema::{Resource, Result};

use crate::App;
use crate::caller::Caller;
use crate::state::listed_settings::ListedSetting;

impl App {
    /// Every setting of the server.
    ///
    /// # Errors
    /// `unauthorized`, `forbidden`.
    pub fn listed_settings(&self, caller: &Caller) -> Result<Arc<[ListedSetting]>> {
        caller.require(Resource::Settings, Action::Read)?;
        Ok(Arc::clone(&self.settings.listed))
    }
}

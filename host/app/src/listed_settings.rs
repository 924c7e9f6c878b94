//! The settings of the server as they are shown: never a secret.

use std::sync::Arc;

use blockbase_query::Action;
use blockbase_schema::{Resource, Result};
use serde::Serialize;

use crate::App;
use crate::caller::Caller;

/// Where a setting has its value from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingSource {
    Default,
    Environment,
    /// A file that the server reads or made.
    File,
}

/// One setting. Whoever makes it leaves out what may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedSetting {
    /// As `SVC_LISTEN`.
    pub name: &'static str,
    /// What holds. `None` for a secret, and where nothing holds.
    pub value: Option<String>,
    pub secret: bool,
    pub is_set: bool,
    pub source: SettingSource,
    /// One line; a default that depends on something else stands in brackets behind it.
    pub description: String,
}

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

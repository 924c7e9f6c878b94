//! The list of actions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An action that a grant allows. `manage` includes all actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Action {
    Create,
    Read,
    Update,
    Delete,
    Manage,
}

impl Action {
    /// All actions, in the order of the documentation.
    pub const ALL: [Action; 5] = [Action::Create, Action::Read, Action::Update, Action::Delete, Action::Manage];

    pub const fn name(self) -> &'static str {
        match self {
            Action::Create => "create",
            Action::Read => "read",
            Action::Update => "update",
            Action::Delete => "delete",
            Action::Manage => "manage",
        }
    }
}

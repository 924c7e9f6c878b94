//! The context of one call.

use crate::bindings::blockbase::block::types;

/// The context of one call.
#[derive(Clone, Debug)]
pub struct Context {
    /// The id of the call, which is also in the log.
    pub call_id: String,
    /// The caller. `None` for events, for hooks and for callers without a credential.
    pub actor: Option<Actor>,
    /// The block's own name.
    pub block: String,
}

/// The user or key behind a call or a change.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Actor {
    /// The user. `None` for an API key of the service itself.
    pub user_id: Option<String>,
    /// The API key, if one was used.
    pub api_key_id: Option<String>,
    /// The kind of credential.
    pub via: String,
}

impl From<types::Context> for Context {
    fn from(context: types::Context) -> Self {
        let actor = context.actor.map(|actor| Actor { user_id: actor.user_id, api_key_id: actor.api_key_id, via: actor.via });
        Context { call_id: context.call_id, actor, block: context.block }
    }
}

//! The caller of a request, identified by the credential.

use serde::{Serialize, Serializer};

/// The kind of credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    Session,
    ApiKey,
}

impl Via {
    pub fn name(self) -> &'static str {
        match self {
            Via::Session => "session",
            Via::ApiKey => "api_key",
        }
    }
}

impl Serialize for Via {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// `{ userId, apiKeyId, via }`, as events contain it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Actor {
    pub user_id: Option<String>,
    pub api_key_id: Option<String>,
    pub via: Via,
}

impl Actor {
    /// The id for `created_by` and `updated_by`: the id of the user. If there is no user, the id of the key.
    pub fn id(&self) -> Option<&str> {
        self.user_id.as_deref().or(self.api_key_id.as_deref())
    }
}

/// The caller of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// The caller sent no valid credential.
    Anonymous,
    /// The caller sent a valid credential.
    Known(Actor),
}

impl Principal {
    pub fn actor(&self) -> Option<&Actor> {
        match self {
            Principal::Anonymous => None,
            Principal::Known(actor) => Some(actor),
        }
    }
}

//! Who makes a request.

use serde::{Serialize, Serializer};

/// How somebody showed who they are.
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

/// `{ userId, apiKeyId, via }` of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Actor {
    pub user_id: Option<String>,
    pub api_key_id: Option<String>,
    pub via: Via,
}

impl Actor {
    /// What is stamped into `created_by` and `updated_by`: the user's id, else the key's.
    pub fn id(&self) -> Option<&str> {
        self.user_id.as_deref().or(self.api_key_id.as_deref())
    }
}

/// The caller of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// No credential, or none that holds.
    Anonymous,
    /// Somebody known.
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

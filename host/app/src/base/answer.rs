//! Answers. Each resource has one struct, which serde writes and schemars describes.
//!
//! The struct is beside its operations, and it alone defines the answer's members, their order and their types. Its doc comments
//! are the descriptions in the OpenAPI document. The document is made from the struct, and the console's types from the document.
//! Records are written differently, because their columns are defined at run time.

use std::borrow::Cow;

use blockbase_schema::time;
use blockbase_store::{Maker, Suspension, SuspensionReason};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// An instant, in milliseconds since the epoch. In an answer it is RFC 3339 in UTC with milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(pub i64);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&time::format_datetime(self.0))
    }
}

impl JsonSchema for Timestamp {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// The texts that a member may have, and null for a member that may be null.
pub(crate) fn or_null(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).chain([None]).collect()
}

/// The reason for the suspension and its time; null if it is not suspended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct SuspensionAnswer {
    #[schemars(extend("enum" = SuspensionReason::ALL.map(SuspensionReason::as_str)))]
    reason: &'static str,
    since: Timestamp,
}

impl From<Suspension> for SuspensionAnswer {
    fn from(Suspension { reason, since }: Suspension) -> SuspensionAnswer {
        SuspensionAnswer { reason: reason.as_str(), since: Timestamp(since) }
    }
}

/// The user who made it, and the API key if the user used one. Both are null if the request had no credential. The whole object
/// is null if no maker is recorded. Then no maker limits its rights.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, deny_unknown_fields)]
pub struct MakerAnswer {
    #[schemars(extend("format" = "uuid"))]
    user_id: Option<String>,
    #[schemars(extend("format" = "uuid"))]
    api_key_id: Option<String>,
}

impl MakerAnswer {
    /// `None` if no maker is stored.
    pub(crate) fn of(maker: &Maker) -> Option<MakerAnswer> {
        let Maker { user_id, api_key_id } = maker;
        let user_id = user_id.clone().filter(|id| id != Maker::PUBLIC);
        (!maker.is_nobody()).then(|| MakerAnswer { user_id, api_key_id: api_key_id.clone() })
    }
}

// The schema of a member that is an object with any members. (A doc comment would become that member's description.)
#[derive(JsonSchema)]
#[schemars(inline)]
pub(crate) struct AnyObject {}

/// The JSON text of an answer.
pub(crate) fn text_of(answer: &(impl Serialize + ?Sized)) -> String {
    // This cannot fail for structs whose members are texts, numbers, lists and JSON.
    serde_json::to_string(answer).unwrap_or_default()
}

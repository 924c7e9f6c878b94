//! Events, as a subscription's handler gets them.

use serde::Deserialize;
use serde_json::Value;

use crate::Actor;

/// Something that happened. It comes at least once, so a handler has to bear a second delivery.
#[derive(Clone, Debug)]
pub struct Event<Payload = Value> {
    /// The same in every delivery of the event.
    pub id: String,
    /// Where it belongs: `data.task.created`.
    pub topic: String,
    /// What it says.
    pub payload: Payload,
    /// RFC 3339, in UTC.
    pub occurred_at: String,
    /// 1 for the first delivery.
    pub attempt: u32,
}

/// The payload of `data.<object>.created`, `.updated` and `.deleted`; of `.linked` and `.unlinked` it has the first three.
#[derive(Clone, Debug, Deserialize)]
pub struct RecordChange<Record = Value> {
    /// The object's name.
    pub object: String,
    /// The record's id.
    pub id: String,
    /// `created`, `updated` and so on.
    pub op: String,
    /// The record as it was; none where it is new.
    #[serde(default = "none")]
    pub before: Option<Record>,
    /// The record as it is now; none where it was deleted.
    #[serde(default = "none")]
    pub after: Option<Record>,
    /// Each field that an update changed, with `before` and `after`.
    #[serde(default)]
    pub diff: Value,
    /// Who did it; none for the service itself and for callers without a credential.
    #[serde(default)]
    pub actor: Option<Actor>,
}

/// Without asking that a record have a default.
fn none<T>() -> Option<T> {
    None
}

//! Events, as a subscription's handler gets them.

use serde::Deserialize;
use serde_json::Value;

use crate::Actor;

/// A change that happened. It is delivered at least once, so a handler has to accept a second delivery.
#[derive(Clone, Debug)]
pub struct Event<Payload = Value> {
    /// The id, which is the same in every delivery of the event.
    pub id: String,
    /// The topic, such as `data.task.created`.
    pub topic: String,
    /// The event's payload.
    pub payload: Payload,
    /// The time of the change, as RFC 3339 in UTC.
    pub occurred_at: String,
    /// The number of the attempt. It is 1 for the first delivery.
    pub attempt: u32,
}

/// The payload of `data.<object>.created`, `.updated` and `.deleted`. Of these members, the payloads of `.linked` and `.unlinked`
/// have only `object`, `id`, `op` and `actor`.
#[derive(Clone, Debug, Deserialize)]
pub struct RecordChange<Record = Value> {
    /// The object's name.
    pub object: String,
    /// The record's id.
    pub id: String,
    /// `created`, `updated` and so on.
    pub op: String,
    /// The record before the change. `None` if it is new.
    #[serde(default = "none")]
    pub before: Option<Record>,
    /// The record after the change. `None` if it was deleted.
    #[serde(default = "none")]
    pub after: Option<Record>,
    /// Each field that an update changed, with `before` and `after`.
    #[serde(default)]
    pub diff: Value,
    /// The caller who made the change. `None` for the service itself and for callers without a credential.
    #[serde(default)]
    pub actor: Option<Actor>,
}

/// The default of an `Option`. With it, the record type need not have a default.
fn none<T>() -> Option<T> {
    None
}

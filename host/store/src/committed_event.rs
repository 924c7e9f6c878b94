//! A committed event, and its JSON.

use std::ops::Range;

use blockbase_schema::{json, time};
use bytes::Bytes;
use schemars::JsonSchema;

use crate::error::DbError;
use crate::packing::payload_of;
use crate::row::Row;

/// A committed event for the feed's readers. Its JSON is made once for all of them.
#[derive(Debug)]
pub struct CommittedEvent {
    /// The number of the event in the outbox.
    pub seq: i64,
    pub id: String,
    pub topic: String,
    pub object: Option<String>,
    pub owner: Option<String>,
    /// The number of handlers in the chain of writes that led to the event.
    pub depth: i64,
    /// The time of the event, in milliseconds since the epoch.
    pub occurred_at: i64,
    /// The event was written on this version of the schema or on an earlier one. 0 if this process made all changes of the schema
    /// up to the event, and for an event that was made from another one.
    pub schema: i64,
    /// The version of the accounts when the event was read. It includes every change of rights that was committed before the
    /// event. 0 if only this process changes accounts, and for an event that was made from another one.
    pub accounts: i64,
    /// A frame of a stream: an `id:` line, a `data:` line with the envelope, and an empty line.
    frame: Bytes,
    envelope: Range<usize>,
    payload: Range<usize>,
}

impl CommittedEvent {
    pub fn new(seq: i64, event: &EventText<'_>, object: Option<String>, owner: Option<String>, depth: i64) -> Self {
        let mut frame = Vec::with_capacity(event.payload.len() + event.topic.len() + 200);
        frame.extend_from_slice(b"id: ");
        frame.extend_from_slice(event.id.as_bytes());
        frame.extend_from_slice(b"\ndata: ");
        let start = frame.len();
        let payload = event.write_envelope(&mut frame);
        let envelope = start..frame.len();
        frame.extend_from_slice(b"\n\n");
        CommittedEvent {
            seq,
            id: event.id.to_owned(),
            topic: event.topic.to_owned(),
            object,
            owner,
            depth,
            occurred_at: event.occurred_at,
            schema: 0,
            accounts: 0,
            frame: frame.into(),
            envelope,
            payload,
        }
    }

    pub(crate) fn of_row(row: &Row) -> Result<Self, DbError> {
        let (id, topic, payload) = (row.text(1)?, row.text(2)?, payload_of(row, 3)?);
        let event = EventText { id: &id, topic: &topic, payload: &payload, occurred_at: row.integer(8)? };
        let (object, owner, depth) = (row.optional_text(6)?, row.optional_text(7)?, row.integer(9)?);
        let (schema, accounts) = (row.integer(10)?, row.integer(11)?);
        Ok(CommittedEvent { schema, accounts, ..CommittedEvent::new(row.integer(0)?, &event, object, owner, depth) })
    }

    /// The event's approximate size in memory.
    pub fn bytes(&self) -> usize {
        self.frame.len() + self.topic.len()
    }

    /// The frame, shared by all readers.
    pub fn frame(&self) -> Bytes {
        self.frame.clone()
    }

    /// `{ id, topic, payload, occurredAt }`.
    pub fn envelope(&self) -> &str {
        self.text(&self.envelope)
    }

    /// The payload as JSON text.
    pub fn payload(&self) -> &str {
        self.text(&self.payload)
    }

    fn text(&self, range: &Range<usize>) -> &str {
        self.frame.get(range.clone()).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("null")
    }
}

// Schema of an event's payload. (A doc comment would be the member's description.)
#[derive(JsonSchema)]
#[schemars(inline)]
struct Payload {}

// This file alone defines the form of an event: `write_envelope` writes its members, and the OpenAPI document describes them.
/// An event, as answers, streams and webhooks show it.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(rename = "SvcEvent", rename_all = "camelCase", deny_unknown_fields)]
pub struct EventText<'a> {
    #[schemars(extend("format" = "uuid"))]
    pub id: &'a str,
    /// What happened, such as `data.task.created`.
    pub topic: &'a str,
    /// What the event says. Its members depend on the topic.
    // JSON text.
    #[schemars(with = "Payload")]
    pub payload: &'a str,
    // The time in milliseconds since the epoch. The envelope has it as RFC 3339.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub occurred_at: i64,
}

impl EventText<'_> {
    /// Appends `{ id, topic, payload, occurredAt }`, and returns the payload's range in it.
    // This does not use serde, which would read the payload again to make sure that it is JSON.
    pub fn write_envelope(&self, out: &mut Vec<u8>) -> Range<usize> {
        let EventText { id, topic, payload, occurred_at } = self;
        out.extend_from_slice(b"{\"id\":");
        json::write_string(out, id);
        out.extend_from_slice(b",\"topic\":");
        json::write_string(out, topic);
        out.extend_from_slice(b",\"payload\":");
        let start = out.len();
        out.extend_from_slice(payload.as_bytes());
        let payload = start..out.len();
        out.extend_from_slice(b",\"occurredAt\":\"");
        time::write_datetime(out, *occurred_at);
        out.extend_from_slice(b"\"}");
        payload
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;

    #[test]
    fn an_event_has_the_members_that_its_schema_has() {
        let text = EventText { id: "1", topic: "data.task.created", payload: "{}", occurred_at: 0 };
        let event = CommittedEvent::new(1, &text, None, None, 0);
        let written: Map<String, Value> = serde_json::from_str(event.envelope()).expect("JSON");
        let mut described = schemars::schema_for!(EventText<'_>);
        let members = described.remove("properties").expect("members");
        assert_eq!(written.keys().collect::<Vec<_>>(), members.as_object().expect("an object").keys().collect::<Vec<_>>());
        assert_eq!(described.remove("required").expect("all of them"), written.keys().cloned().collect::<Value>());
        for (name, value) in &written {
            let kind = if value.is_object() { "object" } else { "string" };
            assert_eq!(members[name]["type"], kind, "{name}");
        }
    }
}

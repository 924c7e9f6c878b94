//! The outcome of an operation, in one form for all surfaces.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// The outcome of an operation on a surface, with masked ids and instants.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    Done(Value),
    Refused(Refusal),
    /// The surface cannot express the operation: see [`super::exceptions`].
    Unsent,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) code: String,
    pub(super) field: Option<String>,
    pub(super) message: String,
    /// Whether GraphQL's validation refused the document, before the operation ran.
    pub(super) is_of_document: bool,
}

impl Refusal {
    /// Reads the envelope of REST: `{ error, message, field? }`.
    pub(super) fn of_envelope(envelope: &str) -> Refusal {
        let envelope: Value = serde_json::from_str(envelope).unwrap_or_else(|_| panic!("no envelope: {envelope}"));
        Refusal::new(&envelope["error"], &envelope["message"], &envelope["field"])
    }

    pub(super) fn new(code: &Value, message: &Value, field: &Value) -> Refusal {
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned();
        Refusal { code: text(code), field: field.as_str().map(str::to_owned), message: text(message), is_of_document: false }
    }

    /// The error for a missing record, in the words of REST.
    pub(super) fn missing() -> Refusal {
        Refusal { code: "not_found".to_owned(), field: None, message: "No such record.".to_owned(), is_of_document: false }
    }
}

/// JSON as a value in which numbers are texts. So every digit is compared.
pub(super) fn exact(json: &str) -> Value {
    let read = |error: serde_json::Error| -> Value { panic!("{error}: {json}") };
    match json.trim_start().as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<String, Box<RawValue>> = match serde_json::from_str(json) {
                Ok(members) => members,
                Err(error) => return read(error),
            };
            members.into_iter().map(|(name, value)| (name, exact(value.get()))).collect()
        }
        Some(b'[') => {
            let items: Vec<Box<RawValue>> = match serde_json::from_str(json) {
                Ok(items) => items,
                Err(error) => return read(error),
            };
            items.iter().map(|item| exact(item.get())).collect()
        }
        Some(b'-' | b'0'..=b'9') => Value::from(format!("the number {json}")),
        _ => serde_json::from_str(json).unwrap_or_else(read),
    }
}

/// The text of one member of a JSON object. `None` if it is absent.
pub(super) fn member(json: &str, name: &str) -> Option<String> {
    let mut members: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    members.remove(name).map(|value| value.get().to_owned())
}

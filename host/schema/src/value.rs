//! Values in their canonical form, and their JSON form.

use std::hash::{Hash, Hasher};

use uuid::Uuid;

use crate::{json, time};

/// A value of a column. Equal values have the same JSON text.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Text(String),
    TextList(Vec<String>),
    Integer(i64),
    /// `scaled / 10^scale`.
    Decimal {
        scaled: i64,
        scale: u8,
    },
    /// A number of a filter that has more digits than the column. It is greater than `below / 10^scale`, and less than the next
    /// value.
    DecimalBetween {
        below: i64,
        scale: u8,
    },
    Float(f64),
    Boolean(bool),
    /// The number of days since 1970-01-01.
    Date(i32),
    /// The number of milliseconds since the epoch.
    Datetime(i64),
    /// The number of milliseconds since midnight.
    Time(u32),
    /// Compact JSON text.
    Json(String),
    Uuid(Uuid),
}

impl Value {
    /// Appends the value as JSON.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let quoted = |out: &mut Vec<u8>, write: &dyn Fn(&mut Vec<u8>)| {
            out.push(b'"');
            write(out);
            out.push(b'"');
        };
        match self {
            Value::Null => out.extend_from_slice(b"null"),
            Value::Text(text) => json::write_string(out, text),
            Value::TextList(list) => {
                let _ = serde_json::to_writer(out, list);
            }
            Value::Integer(number) => json::write_integer(out, *number),
            Value::Decimal { scaled, scale } | Value::DecimalBetween { below: scaled, scale } => {
                json::write_decimal(out, *scaled, *scale);
            }
            Value::Float(number) => json::write_float(out, *number),
            Value::Boolean(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Value::Date(days) => quoted(out, &|out| time::write_date(out, *days)),
            Value::Datetime(millis) => quoted(out, &|out| time::write_datetime(out, *millis)),
            Value::Time(millis) => quoted(out, &|out| time::write_time(out, *millis)),
            Value::Json(text) => out.extend_from_slice(text.as_bytes()),
            Value::Uuid(id) => quoted(out, &|out| out.extend_from_slice(id.hyphenated().encode_lower(&mut [0; 36]).as_bytes())),
        }
    }
}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Value::Null => {}
            Value::Text(text) | Value::Json(text) => text.hash(state),
            Value::TextList(texts) => texts.hash(state),
            Value::Integer(number) | Value::Datetime(number) => number.hash(state),
            Value::Decimal { scaled, scale } | Value::DecimalBetween { below: scaled, scale } => (scaled, scale).hash(state),
            // Zero and negative zero are equal, so they need the same hash.
            Value::Float(number) => (number + 0.0).to_bits().hash(state),
            Value::Boolean(value) => value.hash(state),
            Value::Date(days) => days.hash(state),
            Value::Time(millis) => millis.hash(state),
            Value::Uuid(id) => id.hash(state),
        }
    }
}

/// The maximum length of texts, in bytes of UTF-8.
#[derive(Clone, Copy, Debug)]
pub struct TextBounds {
    /// The limit for a field without a `max` of its own.
    pub plain: usize,
    /// The greatest limit that a `max` can set.
    pub most: usize,
}

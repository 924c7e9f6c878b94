//! Reads and writes JSON text without a tree for each record.

mod compact;
mod strict;

use std::borrow::Cow;
use std::cell::Cell;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

pub use compact::compact;
pub use strict::{Misfit, from_str as strict_from_str, from_value as strict_from_value};

use crate::error::{Error, Result};
use crate::quote::excerpt_of;

/// The maximum number of keys in a record's body. No object has as many columns. The limit also limits the search for duplicate
/// keys.
const MEMBERS_MAX: usize = 1000;
/// The maximum number of values in a document that the server parses into a tree. In the tree, each value takes many times the
/// bytes of its text.
const VALUES_MAX: usize = 250_000;

/// The members of a JSON object in their order. Each value is still text.
///
/// Numbers keep all their digits until a column's type decides how they are read.
#[derive(Clone, Debug, Default)]
pub struct Members(pub Vec<(String, Box<RawValue>)>);

impl Members {
    /// The number of bytes of all values.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|(_, value)| value.get().len()).sum()
    }
}

impl JsonSchema for Members {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Members".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "maxProperties": MEMBERS_MAX, "additionalProperties": true })
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members: Vec<(String, Box<RawValue>)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if members.len() == MEMBERS_MAX {
                        return Err(serde::de::Error::custom(format!("an object here has {MEMBERS_MAX} keys at most")));
                    }
                    if members.iter().any(|(seen, _)| *seen == name) {
                        return Err(serde::de::Error::custom(format!("the key `{name}` appears twice")));
                    }
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

impl Members {
    /// The members as one JSON object again.
    pub fn text(&self) -> String {
        let mut out = vec![b'{'];
        for (index, (name, raw)) in self.0.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_string(&mut out, name);
            out.push(b':');
            out.extend_from_slice(raw.get().as_bytes());
        }
        out.push(b'}');
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Reads a request body that must be one JSON object.
pub fn parse_members(text: &str) -> Result<Members> {
    serde_json::from_str(text).map_err(|error| malformed(&error))
}

/// Reads a request body of a fixed form. Each struct, at every depth, must be a JSON object.
///
/// # Errors
/// `invalid_request`, which names the position.
pub fn parse_object<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T> {
    strict::from_str(text).map_err(|error| error.malformed())
}

/// Whether the text of a JSON document contains a NUL character. In JSON, it can only be written as an escape.
pub fn holds_nul(text: &str) -> bool {
    text.match_indices("\\u0000").any(|(place, _)| {
        // The backslash begins an escape only if an even number of backslashes precedes it.
        let before = text.as_bytes().get(..place).unwrap_or_default();
        before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0
    })
}

/// Reads a JSON document and refuses duplicate member names. Some readers take the first of two such members, and some the last.
/// So one could be checked and the other used.
///
/// # Errors
/// `invalid_request` if the text is not JSON or an object has a duplicate member.
pub fn parse_unique(text: &str) -> Result<Value> {
    /// Counts the values down from the limit.
    #[derive(Clone, Copy)]
    struct UniqueVisitor<'c>(&'c Cell<usize>);

    impl<'de> DeserializeSeed<'de> for UniqueVisitor<'_> {
        type Value = Value;

        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
            match self.0.get().checked_sub(1) {
                Some(left) => self.0.set(left),
                None => {
                    return Err(serde::de::Error::custom(format!("a document here has {VALUES_MAX} values at most")));
                }
            }
            deserializer.deserialize_any(self)
        }
    }

    impl<'de> Visitor<'de> for UniqueVisitor<'_> {
        type Value = Value;

        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("a JSON value")
        }

        fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
            Ok(Value::Bool(value))
        }

        fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
            Ok(value.into())
        }

        fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
            Ok(value.into())
        }

        fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
            Ok(value.into())
        }

        fn visit_str<E>(self, value: &str) -> Result<Value, E> {
            Ok(value.into())
        }

        fn visit_string<E>(self, value: String) -> Result<Value, E> {
            Ok(value.into())
        }

        fn visit_unit<E>(self) -> Result<Value, E> {
            Ok(Value::Null)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = sequence.next_element_seed(self)? {
                items.push(item);
            }
            Ok(Value::Array(items))
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
            let mut members = serde_json::Map::new();
            while let Some(name) = map.next_key::<String>()? {
                if members.contains_key(&name) {
                    return Err(serde::de::Error::custom(format!("the member {name:?} appears twice")));
                }
                let value = map.next_value_seed(self)?;
                members.insert(name, value);
            }
            Ok(Value::Object(members))
        }
    }
    let (mut deserializer, left) = (serde_json::Deserializer::from_str(text), Cell::new(VALUES_MAX));
    let value = UniqueVisitor(&left).deserialize(&mut deserializer).map_err(|error| malformed(&error))?;
    deserializer.end().map_err(|error| malformed(&error))?;
    Ok(value)
}

/// Reads a JSON array of at most `items_max` items.
pub fn parse_list<T: serde::de::DeserializeOwned>(text: &str, items_max: usize) -> Result<Vec<T>> {
    list_of(text, items_max).map_err(|error| error.malformed())
}

/// Does the same for an array that is a part of any document.
pub fn list_of<T: serde::de::DeserializeOwned>(text: &str, items_max: usize) -> Result<Vec<T>, Misfit> {
    struct Items<T> {
        items_max: usize,
        of: PhantomData<T>,
    }
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
        type Value = Vec<T>;

        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("a JSON array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = sequence.next_element()? {
                if items.len() == self.items_max {
                    return Err(serde::de::Error::custom(format!("a list here has {} items at most", self.items_max)));
                }
                items.push(item);
            }
            Ok(items)
        }
    }
    strict::list_from_str(text, Items { items_max, of: PhantomData })
}

/// The error for a body that does not have the JSON form that the operation needs.
pub fn malformed(error: &serde_json::Error) -> Error {
    Error::invalid_request(format!("The body is not a JSON object of the expected form: {}.", excerpt_of(error)))
}

/// Appends `text` as a JSON string.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    // Most texts have nothing to escape. This test takes many bytes at a time, and serde_json takes one after the other.
    let is_escaped = |byte: u8| (byte < b' ') | (byte == b'"') | (byte == b'\\');
    if text.bytes().fold(false, |found, byte| found | is_escaped(byte)) {
        // Writing to a `Vec` cannot fail.
        let _ = serde_json::to_writer(out, text);
        return;
    }
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Appends a double. A whole number gets no fraction. Other numbers get the fewest digits that give the same double.
pub fn write_float(out: &mut Vec<u8>, value: f64) {
    if value == 0.0 {
        out.push(b'0');
    } else if value.fract() == 0.0 && value.abs() < 1e15 {
        out.extend_from_slice(itoa::Buffer::new().format(value as i64).as_bytes());
    } else {
        let _ = serde_json::to_writer(out, &value);
    }
}

/// Appends an integer.
pub fn write_integer(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends `scaled / 10^scale` with exact digits and no trailing zeros.
pub fn write_decimal(out: &mut Vec<u8>, scaled: i64, scale: u8) {
    let mut digits = scaled.unsigned_abs();
    let mut scale = usize::from(scale);
    while scale > 0 && digits.is_multiple_of(10) {
        digits /= 10;
        scale -= 1;
    }
    if scaled < 0 {
        out.push(b'-');
    }
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(digits);
    if scale == 0 {
        out.extend_from_slice(text.as_bytes());
    } else if text.len() > scale {
        out.extend_from_slice(&text.as_bytes()[..text.len() - scale]);
        out.push(b'.');
        out.extend_from_slice(&text.as_bytes()[text.len() - scale..]);
    } else {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + scale - text.len(), b'0');
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("JSON is UTF-8")
    }

    #[test]
    fn a_string_is_written_as_serde_json_writes_it() {
        let characters = (0..=0x00ff).chain([0x2028, 0xfffd, 0x0001_f600]).filter_map(char::from_u32);
        for character in characters {
            for text in [format!("{character}"), format!("ab{character}cd"), format!("{}{character}", "long ".repeat(20))] {
                let expected = serde_json::to_string(&text).expect("a text");
                assert_eq!(written(|out| write_string(out, &text)), expected);
            }
        }
        assert_eq!(written(|out| write_string(out, "")), "\"\"");
    }

    #[test]
    fn decimals_show_exact_digits() {
        for (scaled, scale, text) in [
            (0, 2, "0"),
            (5, 2, "0.05"),
            (-5, 2, "-0.05"),
            (150, 2, "1.5"),
            (12300, 2, "123"),
            (i64::MAX, 6, "9223372036854.775807"),
        ] {
            assert_eq!(written(|out| write_decimal(out, scaled, scale)), text);
        }
    }

    #[test]
    fn floats_read_back_the_same() {
        for value in [0.1, 1.0, -2.5, 1e300, 1e15, 123456789.125, f64::MIN_POSITIVE] {
            let text = written(|out| write_float(out, value));
            assert_eq!(text.parse::<f64>(), Ok(value), "{text}");
        }
        assert_eq!(written(|out| write_float(out, -0.0)), "0");
    }

    #[test]
    fn a_nul_is_found_where_it_is_one() {
        for text in [r#""\u0000""#, r#"{"a\u0000":1}"#, r#"["\\\u0000"]"#] {
            assert!(holds_nul(text), "{text}");
        }
        for text in [r#""u0000""#, r#""\\u0000""#, r#""\\\\u0000""#, r#""\u0001""#] {
            assert!(!holds_nul(text), "{text}");
        }
    }

    #[test]
    fn a_document_has_so_many_values_and_no_more() {
        let list = |values: usize| format!("[{}1]", "1,".repeat(values - 2));
        assert!(parse_unique(&list(VALUES_MAX)).is_ok());
        assert!(parse_unique(&list(VALUES_MAX + 1)).is_err());
        assert!(parse_unique("[1] x").is_err());
    }

    #[test]
    fn a_key_that_stands_twice_is_refused() {
        assert!(parse_members(r#"{"a":1,"a":2}"#).is_err());
        assert!(parse_members("[]").is_err());
        let many: Vec<String> = (0..=MEMBERS_MAX).map(|number| format!("\"k{number}\":0")).collect();
        assert!(parse_members(&format!("{{{}}}", many.join(","))).is_err());
        assert_eq!(parse_list::<u8>("[1, 2]", 2).expect("a list"), [1, 2]);
        assert!(parse_list::<u8>("[1, 2, 3]", 2).is_err());
        assert!(parse_list::<u8>("[1] x", 2).is_err());
        assert_eq!(parse_members(r#"{"a": 1.50}"#).expect("an object").0[0].1.get(), "1.50");
    }

    #[test]
    fn members_are_read_as_a_json_parser_reads_them() {
        use std::collections::BTreeMap;

        use blockbase_tests::fuzz::{for_a_while, text_of};

        const WORDS: [&str; 22] = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\",
            "\\\"",
            "\\u0000",
            "\\u000",
            "\\ud83d\\ude00",
            "\\ud83d",
            "\"a\"",
            "\"b\"",
            "a",
            "1",
            "-0.50e+3",
            "null",
            "true",
            " ",
            "\"a\":1",
        ];
        fn has_nul(value: &Value) -> bool {
            match value {
                Value::String(text) => text.contains('\0'),
                Value::Array(items) => items.iter().any(has_nul),
                Value::Object(members) => members.iter().any(|(name, value)| name.contains('\0') || has_nul(value)),
                Value::Null | Value::Bool(_) | Value::Number(_) => false,
            }
        }
        for_a_while(|input| {
            let is_object = input.ratio(1, 2)?;
            let text = text_of(input, &WORDS)?;
            let text = if is_object { format!("{{{text}}}") } else { text };
            let reference: Result<BTreeMap<String, Box<RawValue>>, _> = serde_json::from_str(&text);
            let members = parse_members(&text);
            if let Ok(Members(members)) = &members {
                let reference = reference.expect("an object");
                assert_eq!(members.len(), reference.len());
                assert!(members.iter().all(|(name, value)| reference[name].get() == value.get()));
            }
            if let Ok(value) = parse_unique(&text) {
                assert_eq!(holds_nul(&text), has_nul(&value), "{text}");
            }
            Ok(members.is_ok())
        });
    }
}

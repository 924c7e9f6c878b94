//! JSON text, read and written without a tree per record.

use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{Error, Result};

/// Most keys of a record's body. No object has as many columns; it also bounds the search for keys that stand twice.
const MEMBERS_MAX: usize = 1000;

/// The members of a JSON object in their order, each value still text.
///
/// Numbers keep all their digits until a column's type says what they are.
#[derive(Debug, Default)]
pub struct Members(pub Vec<(String, Box<RawValue>)>);

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
                        return Err(serde::de::Error::custom(format!("the key `{name}` stands twice")));
                    }
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// A struct read from a JSON object alone. By itself serde takes an array of the members' values too.
#[derive(Debug)]
pub struct FromObject<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for FromObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = FromObject<T>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> std::result::Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members)).map(FromObject)
            }
        }

        deserializer.deserialize_map(Members(PhantomData))
    }
}

/// A list of structs, each read from a JSON object alone.
pub(crate) fn list_of_objects<'de, D, T>(deserializer: D) -> std::result::Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list: Vec<FromObject<T>> = Deserialize::deserialize(deserializer)?;
    Ok(list.into_iter().map(|FromObject(item)| item).collect())
}

/// Reads a request body that has to be one JSON object.
pub fn parse_members(text: &str) -> Result<Members> {
    serde_json::from_str(text).map_err(|error| malformed(&error))
}

/// Reads a JSON document in which no object names a member twice: readers differ in which of the two they take, so that one could
/// be checked and the other used.
///
/// # Errors
/// `invalid_request` for what is not JSON, or names a member twice.
pub fn parse_unique(text: &str) -> Result<Value> {
    struct Unique(Value);
    struct UniqueVisitor;

    impl<'de> Deserialize<'de> for Unique {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(UniqueVisitor).map(Unique)
        }
    }

    impl<'de> Visitor<'de> for UniqueVisitor {
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
            while let Some(Unique(item)) = sequence.next_element()? {
                items.push(item);
            }
            Ok(Value::Array(items))
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
            let mut members = serde_json::Map::new();
            while let Some(name) = map.next_key::<String>()? {
                if members.contains_key(&name) {
                    return Err(serde::de::Error::custom(format!("the member {name:?} stands twice")));
                }
                let Unique(value) = map.next_value()?;
                members.insert(name, value);
            }
            Ok(Value::Object(members))
        }
    }
    let Unique(value) = serde_json::from_str(text).map_err(|error| malformed(&error))?;
    Ok(value)
}

/// Reads a JSON array of at most `items_max` items.
pub fn parse_list<T: serde::de::DeserializeOwned>(text: &str, items_max: usize) -> Result<Vec<T>> {
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
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let visitor = Items { items_max, of: PhantomData };
    let items = Deserializer::deserialize_seq(&mut deserializer, visitor).map_err(|error| malformed(&error))?;
    deserializer.end().map_err(|error| malformed(&error))?;
    Ok(items)
}

/// The error for a body that is not the JSON that the operation needs.
pub fn malformed(error: &serde_json::Error) -> Error {
    Error::invalid_request(format!("The body is not a JSON object of the expected form: {error}."))
}

/// Appends `text` as a JSON string.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    // Writing to a `Vec` cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Appends a double: whole numbers without a fraction, the shortest digits that read back the same.
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
}

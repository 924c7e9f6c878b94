//! Documents of a fixed form. At every depth, a struct can only be read from an object, and an error names its position.
//!
//! Plain serde also reads a struct from an array of its members' values, so it would accept `[["a"]]`.

use std::cell::RefCell;
use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};

use crate::error::Error;
use crate::quote::{excerpt, excerpt_of};

/// The reason why a document does not have its form, and the position.
#[derive(Debug)]
pub struct Misfit {
    pub error: serde_json::Error,
    /// A path such as `fields[2].name`. It is empty for the document itself.
    pub place: String,
}

impl Misfit {
    /// The error of a request whose body does not have the expected form.
    pub fn malformed(&self) -> Error {
        Error::invalid_request(format!("The body is not a JSON object of the expected form: {self}."))
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.is_empty() {
            true => formatter.write_str(&excerpt_of(&self.error)),
            false => write!(formatter, "at `{}`: {}", excerpt(&self.place), excerpt_of(&self.error)),
        }
    }
}

/// Reads a document.
///
/// # Errors
/// If the text is not JSON, or does not have the form of `T`.
pub fn from_str<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Misfit> {
    let path = Path::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = T::deserialize(Strict { inner: &mut deserializer, path: &path, is_key: false });
    let read = read.and_then(|value| deserializer.end().map(|()| value));
    read.map_err(|error| Misfit { error, place: path.written() })
}

/// Reads a document that must be an array, with a visitor of the array.
pub(super) fn list_from_str<'de, V: Visitor<'de>>(text: &'de str, visitor: V) -> Result<V::Value, Misfit> {
    let path = Path::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = Strict { inner: &mut deserializer, path: &path, is_key: false }.deserialize_seq(visitor);
    let read = read.and_then(|value| deserializer.end().map(|()| value));
    read.map_err(|error| Misfit { error, place: path.written() })
}

/// Reads a document that is already a tree.
///
/// # Errors
/// If the document does not have the form of `T`.
pub fn from_value<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> Result<T, Misfit> {
    let path = Path::default();
    T::deserialize(Strict { inner: value, path: &path, is_key: false }).map_err(|error| Misfit { error, place: path.written() })
}

enum Step {
    Key(String),
    Index(usize),
}

/// The path to the value that is being read.
#[derive(Default)]
struct Path {
    steps: RefCell<Vec<Step>>,
    /// The key that was read last.
    key: RefCell<String>,
}

impl Path {
    fn note_key(&self, key: &str) {
        let mut kept = self.key.borrow_mut();
        kept.clear();
        kept.push_str(&excerpt(key));
    }

    /// Reads a value one step further on the path. If that fails, the step stays in the path.
    fn within<T, E>(&self, step: Step, read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        self.steps.borrow_mut().push(step);
        let read = read()?;
        self.steps.borrow_mut().pop();
        Ok(read)
    }

    fn written(&self) -> String {
        let mut out = String::new();
        for step in self.steps.borrow().iter() {
            match step {
                Step::Key(key) if out.is_empty() => out.push_str(key),
                Step::Key(key) => {
                    out.push('.');
                    out.push_str(key);
                }
                Step::Index(index) => out.push_str(&format!("[{index}]")),
            }
        }
        out
    }
}

/// Wraps a deserializer, seed or visitor, and keeps the path for it.
struct Strict<'p, D> {
    inner: D,
    path: &'p Path,
    is_key: bool,
}

macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*);)+) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            let visitor = Strict { inner: visitor, path: self.path, is_key: self.is_key };
            self.inner.$method($($argument,)* visitor)
        }
    )+};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<'_, D> {
    type Error = D::Error;

    forward! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_map();
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_struct(name, fields, OfStruct(Strict { inner: visitor, path: self.path, is_key: false }))
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Strict<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Strict { inner: deserializer, path: self.path, is_key: self.is_key })
    }
}

macro_rules! visit {
    ($($method:ident: $type:ty;)+) => {$(
        fn $method<E: serde::de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        }
    )+};
}

macro_rules! visit_text {
    ($($method:ident: $type:ty;)+) => {$(
        fn $method<E: serde::de::Error>(self, value: $type) -> Result<V::Value, E> {
            if self.is_key {
                self.path.note_key(&value);
            }
            self.inner.$method(value)
        }
    )+};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Strict<'_, V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(formatter)
    }

    visit! {
        visit_bool: bool;
        visit_i8: i8;
        visit_i16: i16;
        visit_i32: i32;
        visit_i64: i64;
        visit_i128: i128;
        visit_u8: u8;
        visit_u16: u16;
        visit_u32: u32;
        visit_u64: u64;
        visit_u128: u128;
        visit_f32: f32;
        visit_f64: f64;
        visit_char: char;
        visit_bytes: &[u8];
        visit_borrowed_bytes: &'de [u8];
        visit_byte_buf: Vec<u8>;
    }

    visit_text! {
        visit_str: &str;
        visit_borrowed_str: &'de str;
        visit_string: String;
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Strict { inner: deserializer, path: self.path, is_key: self.is_key })
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(Strict { inner: deserializer, path: self.path, is_key: self.is_key })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(StrictSequence { inner: sequence, path: self.path, index: 0 })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Strict { inner: map, path: self.path, is_key: false })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(Strict { inner: access, path: self.path, is_key: false })
    }
}

/// The visitor of a struct. It accepts only an object.
struct OfStruct<'p, V>(Strict<'p, V>);

impl<'de, V: Visitor<'de>> Visitor<'de> for OfStruct<'_, V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _sequence: A) -> Result<V::Value, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Seq, &"an object"))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(map)
    }
}

struct StrictSequence<'p, A> {
    inner: A,
    path: &'p Path,
    index: usize,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for StrictSequence<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let (path, index) = (self.path, self.index);
        self.index += 1;
        path.within(Step::Index(index), || self.inner.next_element_seed(Strict { inner: seed, path, is_key: false }))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Strict<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.inner.next_key_seed(Strict { inner: seed, path: self.path, is_key: true })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let path = self.path;
        let key = path.key.borrow().clone();
        path.within(Step::Key(key), || self.inner.next_value_seed(Strict { inner: seed, path, is_key: false }))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, 'p, A: EnumAccess<'de>> EnumAccess<'de> for Strict<'p, A> {
    type Error = A::Error;
    type Variant = Strict<'p, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let path = self.path;
        let (value, variant) = self.inner.variant_seed(Strict { inner: seed, path, is_key: false })?;
        Ok((value, Strict { inner: variant, path, is_key: false }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Strict<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.newtype_variant_seed(Strict { inner: seed, path: self.path, is_key: false })
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.inner.tuple_variant(len, Strict { inner: visitor, path: self.path, is_key: false })
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, A::Error> {
        self.inner.struct_variant(fields, OfStruct(Strict { inner: visitor, path: self.path, is_key: false }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;

    use super::*;

    #[derive(Debug, Deserialize, Default, PartialEq)]
    #[serde(default, deny_unknown_fields)]
    struct Inner {
        name: String,
        more: Option<Box<Inner>>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer<'a> {
        #[serde(default)]
        one: Inner,
        #[serde(default)]
        list: Vec<Inner>,
        #[serde(default)]
        maybe: Option<Inner>,
        #[serde(default)]
        named: BTreeMap<String, Inner>,
        #[serde(default)]
        pair: (u8, String),
        #[serde(borrow, default)]
        raw: Option<&'a RawValue>,
        #[serde(default)]
        value: serde_json::Value,
    }

    #[test]
    fn an_array_is_no_struct_at_any_depth_and_the_error_says_where() {
        for (text, place) in [
            ("[[]]", ""),
            (r#"{"one":["a"]}"#, "one"),
            (r#"{"one":{"more":[]}}"#, "one.more"),
            (r#"{"list":[{}, {"name":"x"}, ["a"]]}"#, "list[2]"),
            (r#"{"maybe":[]}"#, "maybe"),
            (r#"{"named":{"x":{"more":{"more":["a"]}}}}"#, "named.x.more.more"),
            (r#"{"list":[{"name":7}]}"#, "list[0].name"),
            (r#"{"list":[{"colour":7}]}"#, "list[0]"),
        ] {
            let misfit = from_str::<Outer<'_>>(text).expect_err(text);
            assert_eq!(misfit.place, place, "{text}: {misfit}");
        }
        let value = serde_json::json!({ "list": [[]] });
        assert_eq!(from_value::<BTreeMap<String, Vec<Inner>>>(value).expect_err("an array").place, "list[0]");
    }

    #[test]
    fn everything_else_is_read_as_ever() {
        let text = r#"{"one":{"name":"a"},"list":[{}],"maybe":null,"named":{"x":{}},"pair":[1,"b"],"raw":[1.50],"value":[[1],{"a":[]}]}"#;
        let read: Outer<'_> = from_str(text).expect("a document");
        assert_eq!((read.one.name.as_str(), read.list.len(), read.maybe.is_none(), read.named.len()), ("a", 1, true, 1));
        assert_eq!((read.pair.0, read.pair.1.as_str(), read.raw.map(RawValue::get)), (1, "b", Some("[1.50]")));
        assert_eq!(read.value.to_string(), r#"[[1],{"a":[]}]"#);
        assert!(from_str::<Outer<'_>>("{} x").is_err());
    }
}

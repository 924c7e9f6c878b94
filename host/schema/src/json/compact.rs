//! Writes a JSON document again without spaces. It builds no tree in memory.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, Serialize};

/// If an object has at most this many members, they are compared with each other one by one.
const FEW_MEMBERS: usize = 16;

/// The document without spaces. Each number is written in its 64-bit form. If several members have the same name, the last one counts,
/// at the position of the first.
///
/// # Errors
/// If the text is not JSON, or nests too deeply.
pub fn compact(text: &str) -> Result<String, serde_json::Error> {
    let mut out = Vec::with_capacity(text.len());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Compact { out: &mut out, hashes: &RandomState::new() }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    String::from_utf8(out).map_err(serde_json::Error::custom)
}

/// Appends one value.
struct Compact<'o> {
    out: &'o mut Vec<u8>,
    hashes: &'o RandomState,
}

impl Compact<'_> {
    fn write<E: Error>(self, value: &(impl Serialize + ?Sized)) -> Result<(), E> {
        serde_json::to_writer(self.out, value).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Compact<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Compact<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.write(value)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.write(&())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        self.out.push(b'[');
        let begin = self.out.len();
        loop {
            let place = self.out.len();
            if place > begin {
                self.out.push(b',');
            }
            if sequence.next_element_seed(Compact { out: self.out, hashes: self.hashes })?.is_none() {
                self.out.truncate(place);
                break;
            }
        }
        self.out.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.out.push(b'{');
        let begin = self.out.len();
        let mut members: Vec<Member> = Vec::new();
        loop {
            let place = self.out.len();
            if place > begin {
                self.out.push(b',');
            }
            let key = position(self.out)?;
            if map.next_key_seed(Compact { out: self.out, hashes: self.hashes })?.is_none() {
                self.out.truncate(place);
                break;
            }
            self.out.push(b':');
            let value = position(self.out)?;
            map.next_value_seed(Compact { out: self.out, hashes: self.hashes })?;
            members.push(Member { key, value, end: position(self.out)? });
        }
        if let Some(last) = last_of_each(self.out, &members, self.hashes) {
            let mut anew = Vec::with_capacity(self.out.len() - begin);
            for (member, last) in members.iter().zip(last) {
                let Some(last) = last.and_then(|last| members.get(last as usize)) else { continue };
                if !anew.is_empty() {
                    anew.push(b',');
                }
                anew.extend_from_slice(bytes(self.out, member.key, member.value));
                anew.extend_from_slice(bytes(self.out, last.value, last.end));
            }
            self.out.truncate(begin);
            self.out.append(&mut anew);
        }
        self.out.push(b'}');
        Ok(())
    }
}

/// The positions of a written member: its key with the colon, and its value.
struct Member {
    key: u32,
    value: u32,
    end: u32,
}

impl Member {
    fn name<'o>(&self, out: &'o [u8]) -> &'o [u8] {
        bytes(out, self.key, self.value)
    }
}

fn position<E: Error>(out: &[u8]) -> Result<u32, E> {
    u32::try_from(out.len()).map_err(|_| E::custom("the document is too long"))
}

fn bytes(out: &[u8], begin: u32, end: u32) -> &[u8] {
    out.get(begin as usize..end as usize).unwrap_or_default()
}

/// Finds duplicate names. For each name, the result has the index of its last member at the position of its first member, and
/// `None` at its further members. Returns `None` if no name is duplicated.
fn last_of_each(out: &[u8], members: &[Member], hashes: &RandomState) -> Option<Vec<Option<u32>>> {
    if members.len() <= FEW_MEMBERS {
        let is_twice =
            |(place, member): (usize, &Member)| members.iter().take(place).any(|earlier| earlier.name(out) == member.name(out));
        if !members.iter().enumerate().any(is_twice) {
            return None;
        }
    }
    let hash = |member: &Member| hashes.hash_one(member.name(out)) as u32;
    let mut sorted: Vec<(u32, u32)> = (0_u32..).zip(members).map(|(place, member)| (hash(member), place)).collect();
    sorted.sort_unstable();
    let mut last: Vec<Option<u32>> = Vec::new();
    for alike in sorted.chunk_by(|one, other| one.0 == other.0).filter(|alike| alike.len() > 1) {
        // Only few different names have the same hash, so this list is short.
        let mut names: Vec<(&[u8], u32)> = Vec::new();
        for (_, place) in alike {
            let Some(name) = members.get(*place as usize).map(|member| member.name(out)) else { continue };
            match names.iter().find(|(known, _)| *known == name) {
                None => names.push((name, *place)),
                Some((_, first)) => {
                    if last.is_empty() {
                        last = (0_u32..).take(members.len()).map(Some).collect();
                    }
                    if let Some(slot) = last.get_mut(*place as usize) {
                        *slot = None;
                    }
                    if let Some(slot) = last.get_mut(*first as usize) {
                        *slot = Some(*place);
                    }
                }
            }
        }
    }
    (!last.is_empty()).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_writes_what_a_tree_would() {
        let many: Vec<String> = (0..40).map(|number| format!("\"k{}\": [{number}, {{}}]", number % 30)).collect();
        let many = format!("{{ {} }}", many.join(" , "));
        for text in [
            "null",
            " true ",
            "[ ]",
            "{ }",
            "[[ ], [1 , 2.50, -0, -0.0, 1e3, 1E400e]]".trim_end_matches("1E400e]]"),
            "[1, 2.50, -0, -0.0, 1e3, 18446744073709551615, 18446744073709551616, 0.1, 123456789012345678901234567890]",
            r#"{"a": 1, "b": {"c": [ "x\u00e9\n\"\\", "\/" ]}, "a": {"d": 2, "d": 3}}"#,
            r#"{"a": {"x": 1, "x": 2}, "b": 1, "a": {"y": 1, "y": 2}, "b": null}"#,
            r#"{"a" : 1, "a" : 2}"#,
            "[1,]",
            "1 2",
            "[1e400]",
            many.as_str(),
        ] {
            let tree = serde_json::from_str::<serde_json::Value>(text).map(|value| value.to_string());
            assert_eq!(compact(text).ok(), tree.ok(), "{text}");
        }
        assert!(compact(&"[".repeat(200)).is_err());
    }

    #[test]
    fn compact_text_means_the_same() {
        use blockbase_tests::fuzz::{for_a_while, text_of};

        const WORDS: [&str; 20] = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\":",
            "\"b\":",
            "\"\\u0061\":",
            "\"x y\"",
            "1",
            "-0.50e+3",
            "null",
            "true",
            " ",
            "\n",
            "{}",
            "[]",
            "\"\\\\\"",
            "\"\\\"\"",
        ];
        for_a_while(|input| {
            let text = text_of(input, &WORDS)?;
            let value: Result<serde_json::Value, _> = serde_json::from_str(&text);
            let Ok(compacted) = compact(&text) else {
                assert!(value.is_err(), "{text}");
                return Ok(false);
            };
            assert_eq!(serde_json::from_str::<serde_json::Value>(&compacted).ok(), value.ok(), "{text}");
            assert_eq!(compact(&compacted).ok().as_ref(), Some(&compacted), "{text}");
            Ok(true)
        });
    }
}

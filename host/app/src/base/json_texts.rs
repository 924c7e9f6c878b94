//! Replaces text values in a JSON document, without a tree. So all other values keep their bytes, and numbers their digits.

use std::borrow::Cow;

/// A text value of a JSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JsonText<'d> {
    /// The number of objects and lists around the value.
    pub(crate) depth: usize,
    /// The name of the member whose value it is. For an item of a list, the member of the list. Escapes in it stay as they are.
    pub(crate) member: &'d str,
    /// The value with its quotes and escapes.
    literal: &'d str,
}

impl<'d> JsonText<'d> {
    /// The text itself.
    pub(crate) fn value(self) -> Cow<'d, str> {
        match self.literal.contains('\\') {
            true => serde_json::from_str::<String>(self.literal).map_or_else(|_| self.unquoted().into(), Cow::Owned),
            false => self.unquoted().into(),
        }
    }

    fn unquoted(self) -> &'d str {
        self.literal.trim_matches('"')
    }
}

/// The string that a text begins with, with its quotes. A string without an end is the whole text.
fn literal_of(text: &str) -> &str {
    let mut is_escaped = false;
    for (place, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return text.get(..=place).unwrap_or(text),
            _ => {}
        }
    }
    text
}

/// The document with other values where `replace` returns one. The document has to be valid JSON.
pub(crate) fn replace_texts(document: &str, mut replace: impl FnMut(JsonText<'_>) -> Option<String>) -> String {
    let mut out = String::with_capacity(document.len());
    let (mut rest, mut member, mut outer) = (document, "", Vec::new());
    while let Some(place) = rest.find(['"', '{', '[', '}', ']']) {
        let (before, from) = rest.split_at(place);
        out.push_str(before);
        let taken = match from.as_bytes().first() {
            Some(b'"') => {
                let literal = literal_of(from);
                let after = from.get(literal.len()..).unwrap_or_default();
                if after.trim_start().starts_with(':') {
                    member = literal.trim_matches('"');
                    out.push_str(literal);
                } else {
                    match replace(JsonText { depth: outer.len(), member, literal }) {
                        Some(value) => out.push_str(&serde_json::Value::String(value).to_string()),
                        None => out.push_str(literal),
                    }
                }
                literal.len()
            }
            Some(bracket) => {
                match bracket {
                    b'{' | b'[' => outer.push(member),
                    _ => member = outer.pop().unwrap_or_default(),
                }
                out.push(char::from(*bracket));
                1
            }
            None => break,
        };
        rest = from.get(taken..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_with_their_members_and_everything_else_stays() {
        let document = r#"{ "a":"x","n":1.50,"list":[{"b":"y","b2":[["z"]]},"w"],"c":{"d":"\"q\\"},"e":"" }"#;
        let mut found = Vec::new();
        let same = replace_texts(document, |text| {
            found.push((text.depth, text.member.to_owned(), text.value().into_owned()));
            None
        });
        assert_eq!(same, document);
        let wanted = [(1, "a", "x"), (3, "b", "y"), (5, "b2", "z"), (2, "list", "w"), (2, "d", "\"q\\"), (1, "e", "")];
        assert_eq!(found, wanted.map(|(depth, member, value)| (depth, member.to_owned(), value.to_owned())));
    }

    #[test]
    fn only_the_chosen_texts_change() {
        let document = r#"{"n":123456789012345678901234567890.10,"email":"ann@x","roles":[{"email":"kept"}]}"#;
        let changed = replace_texts(document, |text| (text.depth == 1 && text.member == "email").then(|| "a \"b\"\n".to_owned()));
        let wanted = r#"{"n":123456789012345678901234567890.10,"email":"a \"b\"\n","roles":[{"email":"kept"}]}"#;
        assert_eq!(changed, wanted);
    }
}

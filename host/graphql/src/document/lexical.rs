//! Checks the text of a document before it is parsed. The parser recurses into each bracket, so the nesting of brackets is
//! limited. The parser also reads numbers as doubles, although records keep 18 digits. So a number that would lose digits is
//! refused. If an object has a key twice, the parser keeps only the last one. So such an object is refused too.

use std::borrow::Cow;
use std::collections::HashSet;

use async_graphql::Pos;

use crate::error::GraphqlError;

/// The maximum number of levels of brackets. Selections have their own limit.
const BRACKETS_MAX: usize = 200;
/// The maximum length of a name, in bytes. The longest names of fields consist of two names of at most 48 bytes.
const NAME_BYTES_MAX: usize = 256;

/// # Errors
/// `invalid_request`, with the place in the document.
pub(crate) fn check(query: &str) -> Result<(), GraphqlError> {
    match look_through(query) {
        None => Ok(()),
        Some((Problem::Lossy(literal), position)) => {
            let message =
                format!("The literal {literal} has more digits than a number in a document can keep. Send it as a variable.");
            Err(GraphqlError::invalid(message, vec![position]))
        }
        Some((Problem::Open, position)) => Err(GraphqlError::invalid("Syntax error: a string has no end.", vec![position])),
        Some((Problem::Long, position)) => {
            let message = format!("A name can have at most {NAME_BYTES_MAX} bytes.");
            Err(GraphqlError::invalid(message, vec![position]))
        }
        Some((Problem::Repeated(key), position)) => {
            Err(GraphqlError::invalid(format!("The key `{key}` appears twice in one object."), vec![position]))
        }
        Some((Problem::Nested, position)) => {
            let message = format!("Brackets can nest at most {BRACKETS_MAX} levels deep.");
            Err(GraphqlError::invalid(message, vec![position]))
        }
    }
}

/// The text, with each escaped pair of surrogates replaced by its character, because the parser cannot read these pairs.
pub(crate) fn joined(query: &str) -> Cow<'_, str> {
    if !query.contains("\\uD") && !query.contains("\\ud") {
        return Cow::Borrowed(query);
    }
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let (mut out, mut rest) = (String::with_capacity(query.len()), query);
    while let Some(place) = rest.find('\\') {
        out.push_str(&rest[..place]);
        rest = &rest[place..];
        let pair = unit(rest).zip(rest.get(6..).and_then(unit));
        let character =
            pair.and_then(|(high, low)| char::decode_utf16([high, low]).next()?.ok()).filter(|found| *found > '\u{ffff}');
        let length = match character {
            Some(character) => {
                out.push(character);
                12
            }
            // Any other escape stays unchanged, with its backslash.
            None => {
                let length = rest.chars().take(2).map(char::len_utf8).sum();
                out.push_str(&rest[..length]);
                length
            }
        };
        rest = &rest[length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[derive(Debug, PartialEq)]
enum Problem<'q> {
    Lossy(&'q str),
    Nested,
    /// A string without an end. The parser could read the text after it as something else.
    Open,
    /// A name that is too long.
    Long,
    /// A key that an object has twice.
    Repeated(&'q str),
}

/// A bracket that is not closed yet.
struct Open<'q> {
    /// Whether it contains values. These are in parentheses, and selections are not.
    has_values: bool,
    /// The keys so far, if it is the bracket of an object.
    keys: Option<HashSet<&'q str>>,
}

fn look_through(query: &str) -> Option<(Problem<'_>, Pos)> {
    let bytes = query.as_bytes();
    let (mut at, mut open): (usize, Vec<Open<'_>>) = (0, Vec::new());
    // The last name and its place, until a colon follows it.
    let mut last_name: Option<(&str, usize)> = None;
    while at < bytes.len() {
        match bytes[at] {
            bracket @ (b'{' | b'[' | b'(') => {
                let is_value = open.last().is_some_and(|outer| outer.has_values);
                let keys = (is_value && bracket == b'{').then(HashSet::new);
                open.push(Open { has_values: is_value || bracket == b'(', keys });
                at += 1;
                if open.len() > BRACKETS_MAX {
                    return Some((Problem::Nested, position(query, at - 1)));
                }
            }
            b'}' | b']' | b')' => {
                open.pop();
                at += 1;
            }
            b':' => {
                if let Some((name, place)) = last_name.take()
                    && let Some(keys) = open.last_mut().and_then(|open| open.keys.as_mut())
                    && !keys.insert(name)
                {
                    return Some((Problem::Repeated(name), position(query, place)));
                }
                at += 1;
            }
            b'#' => at += line_end(&bytes[at..]),
            b'"' => match string_end(&bytes[at..]) {
                Some(length) => at += length,
                None => return Some((Problem::Open, position(query, at))),
            },
            byte if byte == b'_' || byte.is_ascii_alphabetic() => {
                let length = bytes[at..].iter().take_while(|byte| **byte == b'_' || byte.is_ascii_alphanumeric()).count();
                if length > NAME_BYTES_MAX {
                    return Some((Problem::Long, position(query, at)));
                }
                last_name = query.get(at..at + length).map(|name| (name, at));
                at += length;
            }
            byte if byte == b'-' || byte.is_ascii_digit() => {
                let is_part = |byte: &&u8| matches!(**byte, b'-' | b'+' | b'.') || byte.is_ascii_alphanumeric();
                let length = bytes[at..].iter().take_while(is_part).count();
                let literal = query.get(at..at + length)?;
                if loses_digits(literal) {
                    return Some((Problem::Lossy(literal), position(query, at)));
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    None
}

fn line_end(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(bytes.len())
}

/// The length of the string or block string at the beginning of `bytes`. `None` if it does not end.
fn string_end(bytes: &[u8]) -> Option<usize> {
    let is_block = bytes.starts_with(b"\"\"\"");
    let mut at = if is_block { 3 } else { 1 };
    while at < bytes.len() {
        match (is_block, bytes[at]) {
            (true, b'\\') if bytes[at..].starts_with(b"\\\"\"\"") => at += 4,
            (true, b'"') if bytes[at..].starts_with(b"\"\"\"") => return Some(at + 3),
            (false, b'\\') => at += 2,
            (false, b'"') => return Some(at + 1),
            (false, b'\n' | b'\r') => return None,
            _ => at += 1,
        }
    }
    None
}

fn position(query: &str, at: usize) -> Pos {
    let before = &query[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    Pos { line, column }
}

fn loses_digits(literal: &str) -> bool {
    if literal.parse::<i64>().is_ok() || literal.parse::<u64>().is_ok() {
        return false;
    }
    match literal.parse::<f64>() {
        Ok(value) if value.is_finite() => digits(literal) != digits(&format!("{value:e}")),
        // The parser refuses such a text.
        _ => false,
    }
}

/// The significant digits, and the power of ten of the first digit.
fn digits(text: &str) -> (String, i64) {
    let text = text.trim_start_matches('-');
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let leading = all.bytes().take_while(|byte| *byte == b'0').count();
    let significant = all[leading..].trim_end_matches('0').to_owned();
    match significant.is_empty() {
        true => (significant, 0),
        false => (significant, exponent.saturating_add(whole.len() as i64 - leading as i64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lossy_literal(query: &str) -> Option<(&str, Pos)> {
        look_through(query).map(|(problem, position)| match problem {
            Problem::Lossy(literal) => (literal, position),
            _ => ("another", position),
        })
    }

    #[test]
    fn brackets_are_counted_before_the_parser_recurses_into_them() {
        let nested = |levels: usize| format!("{{a(x:{}1{})}}", "[".repeat(levels), "]".repeat(levels));
        assert!(check(&nested(100)).is_ok());
        assert!(check(&nested(30_000)).is_err());
        assert!(check(&"{a".repeat(20_000)).is_err());
        assert!(check(&format!("{{a(x:\"{}\")}}", "[".repeat(1000))).is_ok());
    }

    #[test]
    fn exact_literals_pass_and_others_are_found() {
        for exact in ["1", "-1.5", "0.1", "9223372036854775807", "1e3", "123456789012.12", "0.000", "1.10", "1.5e-7", "-0.0"] {
            assert_eq!(lossy_literal(&format!("{{a(x:{exact})}}")), None, "{exact}");
        }
        for lossy in ["123456789012.123456", "0.1234567890123456789", "123456789012345678901234567890"] {
            assert_eq!(lossy_literal(&format!("{{a(x:{lossy})}}")).map(|(found, _)| found), Some(lossy));
        }
    }

    #[test]
    fn what_is_left_open_or_overflows_is_no_way_around() {
        assert!(check("{a(x:[\"\"\"x\" 123456789012.123456789])}").is_err());
        assert!(check("{a(x:\"x\n\")}").is_err());
        assert!(check("{svc_objects(x:0.01e-9223372036854775808)}").is_err());
        assert!(check(&format!("{{{}}}", "a".repeat(300))).is_err());
        let escaped = r#"{a(x:"\uD83D\uDE00 \u00e9 \\uD83D\\uDE00")}"#;
        assert_eq!(joined(escaped), "{a(x:\"\u{1F600} \\u00e9 \\\\uD83D\\\\uDE00\")}");
    }

    #[test]
    fn an_object_has_each_key_once() {
        let repeated = |query: &str| match look_through(query) {
            Some((Problem::Repeated(key), Pos { line, column })) => Some((key.to_owned(), line, column)),
            None => None,
            Some((problem, _)) => panic!("{query}: {problem:?}"),
        };
        for (query, key, line, column) in [
            ("{a(x: {b: 1, b: 2})}", "b", 1, 14),
            ("{a(x: {b: 1\n c: X b # b\n : $b})}", "b", 2, 7),
            ("{a(x: [{}, {b: {c: 1} c: [2] b: {}}])}", "b", 1, 30),
            ("{a(x: {b: {c: {}, c: {}}})}", "c", 1, 19),
            ("query($v: X = {b: 1, c: {}, c: 2}) {a(x: $v)}", "c", 1, 29),
            ("{a {b @include(if: {b: true, b: true})}}", "b", 1, 30),
        ] {
            assert_eq!(repeated(query), Some((key.to_owned(), line, column)), "{query}");
        }
        for query in [
            "{a(x: {b: 1, c: b, d: {b: 1}, e: [{b: 1}, {b: 2}]}) {b: c b: c} b: a(x: 1) b: a(x: 1)}",
            "query($b: X, $c: X) {a(x: {b: $b, c: $c, d: \"b: 1, b: 2\"})}",
            "{a(x: {b: 1}, y: {b: 1}) {b} c(x: {b: 1})}",
            "{a(x: {: 1, : 2})}",
        ] {
            assert_eq!(repeated(query), None, "{query}");
        }
    }

    #[test]
    fn numbers_in_text_names_and_comments_are_none() {
        let long = "123456789012.123456";
        for query in [
            format!("{{a(x:\"{long}\")}}"),
            format!("{{a(x:\"\\\"{long}\")}}"),
            format!("{{a(x:\"\"\" \" {long} \\\"\"\" {long} \"\"\")}}"),
            format!("{{a # {long}\n}}"),
            "{a_123456789012345678901234567890}".to_owned(),
        ] {
            assert_eq!(lossy_literal(&query), None, "{query}");
        }
        let (_, place) = lossy_literal(&format!("{{a\n  b(x: {long})}}")).expect("a literal");
        assert_eq!((place.line, place.column), (2, 8));
    }

    #[test]
    fn what_passes_can_be_parsed_and_counted() {
        use blockbase_tests::fuzz::{changed, for_a_while, text_of};

        use crate::document::limits;
        use crate::document::request::GraphqlRequest;

        const WORDS: [&str; 34] = [
            "{",
            "}",
            "(",
            ")",
            "[",
            "]",
            ":",
            ",",
            "!",
            "$a",
            "@include(if: $a)",
            "...",
            "...F",
            " on A",
            "fragment F on A {",
            "query",
            "mutation Q",
            "($a: Int = 1)",
            "a",
            "b: c",
            "\"",
            "\"\"\"",
            "\\\"",
            "\\u0041",
            "\\uD83D\\uDE00",
            "\\uD83D",
            "#",
            "\n",
            " ",
            "1.5e3",
            "123456789012345678901",
            "{a(b: {c: [1, \"x\"]})}",
            "null",
            "__schema",
        ];
        for_a_while(|input| {
            let text = match input.arbitrary()? {
                true => text_of(input, &WORDS)?,
                false => changed(
                    input,
                    "query Q($a: Int = 1) { b: a(c: [1.5, \"x\\u0041\"]) @include(if: $a) { ...F } } fragment F on A { d }",
                    &WORDS,
                )?,
            };
            let mut is_parsed = false;
            if check(&text).is_ok()
                && let Ok(document) = async_graphql::parser::parse_query(&*joined(&text))
            {
                is_parsed = true;
                // The count with expanded fragments must end, even if fragments spread each other.
                let _ = limits::check(&document);
            }
            let _ = GraphqlRequest::from_json(&text);
            let _ = GraphqlRequest::from_parameters(&text);
            Ok(is_parsed)
        });
    }
}

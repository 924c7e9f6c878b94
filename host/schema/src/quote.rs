//! Limits how much of a caller's text an error repeats. The excerpt is long enough to recognize the text.

use std::borrow::Cow;
use std::fmt::Display;

/// The maximum number of characters of a caller's text that an error repeats.
const EXCERPT_CHARS_MAX: usize = 100;
/// The number of characters that are kept at the end of another crate's message if its middle is left out. They usually name the
/// position.
const TAIL_CHARS_MAX: usize = 60;
/// The maximum number of characters of the part of such a message that names the expected form.
const EXPECTED_CHARS_MAX: usize = 1000;
/// The maximum number of characters of a complete message.
const MESSAGE_CHARS_MAX: usize = 2000;
/// Replaces the part that is left out.
const REST: &str = "…";

/// The beginning of the text, followed by `…` if the text is longer.
pub fn excerpt(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}{REST}", text.get(..end).unwrap_or_default())),
    }
}

/// The same excerpt in double quotes, with control characters escaped.
pub fn quoted(text: &str) -> String {
    format!("{:?}", excerpt(text))
}

/// The message of another crate, which may repeat the caller's text. Most of the repeated part is left out.
pub fn excerpt_of(message: &impl Display) -> String {
    let message = message.to_string();
    let (chars, kept) = (message.chars().count(), EXCERPT_CHARS_MAX + TAIL_CHARS_MAX);
    if chars <= kept {
        return message;
    }
    // The message quotes the value that was found. After this value, it names the expected form or the position.
    let begin = message.find(['`', '"']).map_or(0, |quote| quote + 1);
    let ends = ["`, expected", "\", expected", "`, there are no", "` at line ", "\" at line "];
    let end = ends.into_iter().find_map(|end| message.rfind(end)).filter(|end| *end >= begin);
    if let Some(end) = end
        && let (Some(before), Some(found), Some(after)) = (message.get(..begin), message.get(begin..end), message.get(end..))
    {
        return format!("{}{}{}", excerpt(before), excerpt(found), after.chars().take(EXPECTED_CHARS_MAX).collect::<String>());
    }
    let tail: String = message.chars().skip(chars - TAIL_CHARS_MAX).collect();
    format!("{}{tail}", excerpt(&message))
}

/// A message whose quoted parts are shortened to excerpts, and whose length is limited. The messages of this project put text
/// from a request in quotes.
pub(crate) fn shortened(message: String) -> String {
    if message.len() <= EXCERPT_CHARS_MAX {
        return message;
    }
    let mut out = String::with_capacity(message.len().min(MESSAGE_CHARS_MAX));
    let mut rest = message.as_str();
    while let Some(begin) = rest.find(['`', '"']) {
        let (before, quoted) = rest.split_at(begin + 1);
        out.push_str(before);
        let quote = if before.ends_with('`') { '`' } else { '"' };
        let end = closing(quoted, quote).unwrap_or(quoted.len());
        let (inside, after) = quoted.split_at(end);
        out.push_str(&excerpt(inside));
        rest = after.strip_prefix(quote).unwrap_or(after);
        if rest.len() < after.len() {
            out.push(quote);
        }
    }
    out.push_str(rest);
    match out.len() > MESSAGE_CHARS_MAX && out.chars().count() > MESSAGE_CHARS_MAX {
        true => excerpt_of(&out),
        false => out,
    }
}

/// The end of a quoted part. In double quotes, a backslash escapes the next character.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(place, character)| {
        let ends = character == quote && !is_escaped;
        is_escaped = quote == '"' && character == '\\' && !is_escaped;
        ends.then_some(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_parts_of_messages_are_cut() {
        let long = "ä\"`\\".repeat(1_000_000);
        let plain = "x".repeat(300);
        let cut =
            shortened(format!("`task` has no field `{plain}`, but {plain:?} and `title`. Choose one of them, and send it."));
        let x = excerpt(&plain);
        assert_eq!(cut, format!("`task` has no field `{x}`, but \"{x}\" and `title`. Choose one of them, and send it."));
        for hostile in [format!("It is {long:?}."), format!("It is `{long}`."), long.clone(), format!("{plain}`{plain}")] {
            assert!(shortened(hostile).chars().count() <= MESSAGE_CHARS_MAX);
        }
        let ours = format!("`a` is {:?}, and {}", "b", "long but nobody's text ".repeat(20));
        assert_eq!(shortened(ours.clone()), ours);
    }

    #[test]
    fn little_is_repeated_and_the_rest_of_a_message_stays() {
        let long = "ä".repeat(1_000_000);
        assert_eq!(excerpt("short"), "short");
        assert_eq!(excerpt(&long).chars().count(), EXCERPT_CHARS_MAX + 1);
        let unknown = format!("unknown field `{long}`, expected `a` or `b` at line 1 column 9");
        let cut = excerpt_of(&unknown);
        assert_eq!(cut, format!("unknown field `{}`, expected `a` or `b` at line 1 column 9", excerpt(&long)));
        let wrong = format!("invalid type: string \"{long}\", expected u8 at line 1 column 9");
        assert!(excerpt_of(&wrong).ends_with("\", expected u8 at line 1 column 9"));
        assert!(excerpt_of(&long).chars().count() < 200);
        let short = "unknown field `c`, expected `a` or `b` at line 1 column 9";
        assert_eq!(excerpt_of(&short), short);
        for hostile in [format!("`{long}"), format!("{long}`, expected `{long}"), format!("\"{long}`, expected ` at line ")] {
            assert!(excerpt_of(&hostile).chars().count() <= 2 * EXCERPT_CHARS_MAX + EXPECTED_CHARS_MAX + 2);
        }
    }
}

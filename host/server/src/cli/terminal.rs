//! Output and questions: data goes to standard output, text for people to standard error.

use std::borrow::Cow;
use std::io::{BufRead, IsTerminal, Read, Write};

use serde_json::Value;

use super::Problem;
pub(super) use crate::output::print_line;

/// The maximum number of bytes that are read from standard input.
const INPUT_BYTES_MAX: u64 = 16 << 20;

/// Prints a value as JSON, for other programs.
pub(super) fn print_json(value: &Value) -> Result<(), Problem> {
    let text = serde_json::to_string_pretty(value).map_err(|error| error.to_string())?;
    print_line(&inert_json(&text));
    Ok(())
}

/// Writes a line to standard error.
pub(super) fn note(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// The same if a person reads it at a terminal: what takes long now.
pub(super) fn progress(line: &str) {
    if std::io::stderr().is_terminal() {
        note(line);
    }
}

/// Whether a character affects a terminal or the order of text instead of being shown.
fn is_active(character: char) -> bool {
    character.is_control() || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Makes text of a server, a registry or a block's author safe for a terminal: one line, without active characters.
pub(super) fn inert(text: &str) -> Cow<'_, str> {
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_active(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

/// Does the same for JSON text. The result is still the same JSON value, because such characters occur only in strings. Line
/// breaks outside of strings stay.
pub(super) fn inert_json(text: &str) -> Cow<'_, str> {
    let is_active = |character: char| is_active(character) && !matches!(character, '\n' | '\r' | '\t');
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_active(character) {
            true => shown.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

/// Asks the user to confirm at the terminal. Without a terminal, the command fails.
pub(super) fn confirmed(question: &str, yes: bool, without_terminal: &str) -> Result<bool, Problem> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Problem::Usage(without_terminal.to_owned()));
    }
    let _ = write!(std::io::stderr().lock(), "{question} [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(|error| format!("The answer cannot be read: {error}."))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Reads a secret: hidden input at a terminal. Without a terminal, it reads all of standard input, without the last line break.
pub(super) fn read_secret(prompt: &str) -> Result<String, Problem> {
    let secret = if std::io::stdin().is_terminal() {
        rpassword::prompt_password(prompt).map_err(|error| format!("The terminal cannot be read: {error}."))?
    } else {
        let text = read_input()?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        line.strip_suffix('\r').unwrap_or(line).to_owned()
    };
    match secret.is_empty() {
        true => Err(Problem::Usage("There is nothing on standard input; the value is read from there.".to_owned())),
        false => Ok(secret),
    }
}

/// All of standard input, as text.
pub(super) fn read_input() -> Result<String, Problem> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_string(&mut text);
    let read = read.map_err(|error| format!("Standard input cannot be read: {error}."))?;
    if u64::try_from(read).is_ok_and(|read| read > INPUT_BYTES_MAX) {
        return Err(Problem::Usage(format!("Standard input holds more than {INPUT_BYTES_MAX} bytes.")));
    }
    Ok(text)
}

/// Rows under a heading. Each column is only as wide as necessary.
pub(super) fn table(heading: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(heading.get(column).map(|cell| cell.len())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let mut lines = vec![line(&mut heading.iter().copied())];
    lines.extend(rows.iter().map(|row| line(&mut row.iter().map(String::as_str))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_does_nothing_to_a_terminal() {
        assert_eq!(inert("Zoë \u{1b}[2J\r\n\u{9b}31m \u{202e}x"), "Zoë \\u{1b}[2J\\r\\n\\u{9b}31m \\u{202e}x");
        assert!(matches!(inert("plain"), Cow::Borrowed("plain")));
        let value = serde_json::json!({ "a": "\u{1b}\u{9b}\u{7f}\n", "b": [1] });
        let text = serde_json::to_string_pretty(&value).expect("JSON");
        let shown = inert_json(&text);
        assert!(!shown.contains(['\u{9b}', '\u{7f}', '\u{1b}']), "{shown}");
        assert_eq!(serde_json::from_str::<Value>(&shown).expect("JSON"), value);
    }

    #[test]
    fn columns_are_as_wide_as_what_stands_in_them() {
        let rows = [vec!["orders".to_owned(), "1".to_owned()], vec!["é".to_owned(), "22".to_owned()]];
        assert_eq!(table(&["NAME", "V"], &rows), ["NAME    V", "orders  1", "é       22"]);
    }
}

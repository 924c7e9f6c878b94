//! Cells that a spreadsheet would take for a formula.
//!
//! On the way out such a text gets an apostrophe in front, which spreadsheets do not show; on the way in it is taken away. A
//! text that already looks guarded gets another one, so that every text comes back as it was.

use std::borrow::Cow;

/// What begins a formula, in full width too, or a cell that is trimmed to one, as a tab, a return or a line feed does.
const FORMULA_BEGINS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

fn is_formula(text: &str) -> bool {
    text.starts_with(FORMULA_BEGINS)
}

/// A text that no spreadsheet calculates.
pub fn guarded(text: &str) -> Cow<'_, str> {
    match is_formula(text.trim_start_matches('\'')) {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

/// The text that was guarded.
pub fn unguarded(text: &str) -> &str {
    text.strip_prefix('\'').filter(|rest| is_formula(rest.trim_start_matches('\''))).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_as_it_was() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("+49", "'+49"),
            ("-", "'-"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("\rx", "'\rx"),
            ("\nx", "'\nx"),
            ("＝1", "'＝1"),
            ("＋1", "'＋1"),
            ("－1", "'－1"),
            ("＠a", "'＠a"),
            ("'=1", "''=1"),
            ("''-", "'''-"),
            ("'tis", "'tis"),
            ("a=b", "a=b"),
            ("", ""),
            ("'", "'"),
        ] {
            assert_eq!(guarded(text), expected);
            assert_eq!(unguarded(expected), text);
        }
    }
}

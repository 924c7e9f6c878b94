//! Cells that a spreadsheet would treat as formulas.
//!
//! An export puts an apostrophe in front of such a text, which spreadsheets do not show. An import removes it. A text that already looks
//! guarded gets another apostrophe, so that every text comes back unchanged.

use std::borrow::Cow;

/// Characters that begin a formula, also in full width. A tab, a return or a line feed counts too, because a spreadsheet may trim it.
const FORMULA_BEGINS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

fn is_formula(text: &str) -> bool {
    text.starts_with(FORMULA_BEGINS)
}

/// The text in a form that no spreadsheet calculates.
pub fn guarded(text: &str) -> Cow<'_, str> {
    match is_formula(text.trim_start_matches('\'')) {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

/// The text before it was guarded.
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

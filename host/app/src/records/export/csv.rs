//! Records as CSV by RFC 4180. The cells are made from the JSON that a list would show.
//!
//! Null is an empty cell, and an empty text is `""`. If a spreadsheet would take a text for a formula, the text gets an
//! apostrophe in front. The same applies if the text would be a formula after the apostrophes with which it begins. A reader who
//! removes one apostrophe from these texts gets the original texts.

use std::borrow::Cow;

use blockbase_schema::FieldType;
use blockbase_store::Record;

use super::Member;

/// The characters that begin a formula (also in full width), or a cell that a spreadsheet would trim to a formula.
const FORMULA_BEGINS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
const LINE_END: &[u8] = b"\r\n";

/// The names of the columns.
pub(super) fn header(members: &[Member<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for (place, member) in members.iter().enumerate() {
        separate(place, &mut out);
        write_cell(member.name, &mut out);
    }
    out.extend_from_slice(LINE_END);
    out
}

/// One record.
pub(super) fn row(members: &[Member<'_>], record: &Record, out: &mut Vec<u8>) {
    for (place, member) in members.iter().enumerate() {
        separate(place, out);
        let (column, json) = member.cell(record);
        // The JSON from the store is UTF-8.
        let json = std::str::from_utf8(json).unwrap_or_default();
        if let Some(text) = cell(column.kind, json) {
            write_cell(&text, out);
        }
    }
    out.extend_from_slice(LINE_END);
}

fn separate(place: usize, out: &mut Vec<u8>) {
    if place > 0 {
        out.push(b',');
    }
}

/// The text of a JSON value. `None` for null.
fn cell(kind: FieldType, json: &str) -> Option<Cow<'_, str>> {
    if json == "null" {
        return None;
    }
    let is_json = matches!(kind, FieldType::Json | FieldType::MultiEnum);
    let text = match json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        // A cell of a json field is JSON, so that it can be read again.
        Some(inner) if !is_json => match inner.contains('\\') {
            false => Cow::Borrowed(inner),
            true => Cow::Owned(serde_json::from_str(json).unwrap_or_else(|_| inner.to_owned())),
        },
        _ => Cow::Borrowed(json),
    };
    let may_be_formula = is_json || kind.is_textual() || kind.has_options();
    Some(if may_be_formula { guarded(text) } else { text })
}

fn guarded(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.trim_start_matches('\'').starts_with(FORMULA_BEGINS) {
        true => Cow::Owned(format!("'{text}")),
        false => text,
    }
}

fn write_cell(text: &str, out: &mut Vec<u8>) {
    if !text.is_empty() && !text.contains(['"', ',', '\r', '\n']) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for (place, part) in text.split('"').enumerate() {
        if place > 0 {
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(part.as_bytes());
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(kind: FieldType, json: &str) -> String {
        let mut out = Vec::new();
        if let Some(text) = cell(kind, json) {
            write_cell(&text, &mut out);
        }
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn values_become_cells() {
        for (kind, json, expected) in [
            (FieldType::Text, "null", ""),
            (FieldType::Text, r#""""#, r#""""#),
            (FieldType::Text, r#""a,b""#, r#""a,b""#),
            (FieldType::Text, r#""say \"hi\"\r\nü""#, "\"say \"\"hi\"\"\r\nü\""),
            (FieldType::Text, r#"" a ""#, " a "),
            (FieldType::Boolean, "true", "true"),
            (FieldType::Decimal, "-12345678901234567.89", "-12345678901234567.89"),
            (FieldType::Datetime, r#""-0001-01-01T00:00:00.000Z""#, "-0001-01-01T00:00:00.000Z"),
            (FieldType::MultiEnum, r#"["a","b"]"#, r#""[""a"",""b""]""#),
            (FieldType::Json, r#"{"a":1}"#, r#""{""a"":1}""#),
            (FieldType::Json, r#""text""#, r#""""text""""#),
            (FieldType::Json, "-5", "'-5"),
        ] {
            assert_eq!(written(kind, json), expected, "{kind:?} {json}");
        }
    }

    #[test]
    fn texts_are_no_formulas() {
        for (json, expected) in [
            (r#""=1+1""#, "'=1+1"),
            (r#""+49""#, "'+49"),
            (r#""-""#, "'-"),
            (r#""@a""#, "'@a"),
            (r#""\tx""#, "'\tx"),
            (r#""\rx""#, "\"'\rx\""),
            (r#""\nx""#, "\"'\nx\""),
            (r#""＝1""#, "'＝1"),
            (r#""＋1""#, "'＋1"),
            (r#""－1""#, "'－1"),
            (r#""＠a""#, "'＠a"),
            (r#""'=1""#, "''=1"),
            (r#""'tis""#, "'tis"),
            (r#""a=b""#, "a=b"),
            (r#""=a,b""#, "\"'=a,b\""),
        ] {
            for kind in [FieldType::Text, FieldType::Email, FieldType::Url, FieldType::Slug, FieldType::Enum] {
                assert_eq!(written(kind, json), expected, "{kind:?} {json}");
            }
        }
    }
}

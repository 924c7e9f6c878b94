//! SQLite: canonical text for dates and ids, scaled integers for exact numbers, JSON arrays for lists.

use blockbase_schema::{Column, ColumnType};

/// Calls a function that the store defines. Unlike `instr`, this function checks the read's budget while it searches through a
/// long text.
pub(super) fn contains(text: &str, placeholder: &str, fold_case: bool) -> String {
    format!("svc_contains({text}, {}, {placeholder})", u8::from(fold_case))
}

/// Calls the function once, with all terms.
pub(super) fn contains_all(text: &str, placeholders: &[String], fold_case: bool) -> String {
    contains(text, &placeholders.join(", "), fold_case)
}

/// The elements of a list column as one text.
pub(crate) fn list_text(name: &str) -> String {
    format!("(SELECT group_concat(value, char(31)) FROM json_each({name}))")
}

pub(crate) fn column_type(column: &Column) -> String {
    let plain = match column.ty {
        ColumnType::Text
        | ColumnType::TextList
        | ColumnType::Date
        | ColumnType::Datetime
        | ColumnType::Time
        | ColumnType::Json
        | ColumnType::Uuid => "TEXT",
        ColumnType::Integer | ColumnType::BigInteger | ColumnType::Decimal { .. } | ColumnType::Boolean => "INTEGER",
        ColumnType::Float => "REAL",
    };
    plain.to_owned()
}

/// The test that limits a numeric column to the range of its type. SQLite's own types have a larger range, and an integer that
/// overflows becomes a real.
pub(crate) fn range_test(column: &Column, name: &str) -> String {
    match column.ty {
        ColumnType::Integer => format!("typeof({name}) IN ('integer', 'null') AND {name} BETWEEN -2147483648 AND 2147483647"),
        ColumnType::Decimal { .. } => {
            format!("typeof({name}) IN ('integer', 'null') AND {name} BETWEEN -999999999999999999 AND 999999999999999999")
        }
        ColumnType::Float => format!("{name} BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308"),
        _ => format!("typeof({name}) IN ('integer', 'null')"),
    }
}

//! Postgres: its own types, and text that is compared by code point.

use blockbase_schema::{Column, ColumnType};

/// SQL for `blockbase_schema::fold`, with the Unicode root locale.
pub(crate) fn fold(text: &str) -> String {
    format!("upper(lower({text} COLLATE \"und-x-icu\"))")
}

pub(super) fn contains(text: &str, placeholder: &str, fold_case: bool) -> String {
    match fold_case {
        true => format!("strpos({}, {}) > 0", fold(text), fold(&format!("{placeholder}::text"))),
        false => format!("strpos({text}, {placeholder}) > 0"),
    }
}

/// `OFFSET 0` prevents the planner from merging the inner query into the outer one, which would fold the text once for each term.
/// If the text is not folded, appending the empty text makes one copy of the value. So a compressed value is decompressed only
/// once.
pub(super) fn contains_all(text: &str, placeholders: &[String], fold_case: bool) -> String {
    let whole = if fold_case { fold(text) } else { format!("{text} || ''") };
    let tests: Vec<String> = placeholders
        .iter()
        .map(|placeholder| match fold_case {
            true => format!("strpos(svc_text, {}) > 0", fold(&format!("{placeholder}::text"))),
            false => format!("strpos(svc_text, {placeholder}) > 0"),
        })
        .collect();
    format!("(SELECT {} FROM (SELECT {whole} AS svc_text OFFSET 0) AS svc_whole)", tests.join(" AND "))
}

/// The elements of a list column as one text.
pub(crate) fn list_text(name: &str) -> String {
    format!("svc_list_text({name})")
}

pub(crate) fn column_type(column: &Column) -> String {
    let plain = match column.ty {
        ColumnType::Text => "text COLLATE \"C\"",
        ColumnType::TextList => "text[] COLLATE \"C\"",
        ColumnType::Integer => "integer",
        ColumnType::BigInteger => "bigint",
        ColumnType::Decimal { scale } => return format!("numeric(18,{scale})"),
        ColumnType::Float => "double precision",
        ColumnType::Boolean => "boolean",
        ColumnType::Date => "date",
        ColumnType::Datetime => "timestamptz(3)",
        ColumnType::Time => "time(3)",
        // `json` keeps the text unchanged, as SQLite does. `jsonb` would sort its keys.
        ColumnType::Json => "json",
        ColumnType::Uuid => "uuid",
    };
    plain.to_owned()
}

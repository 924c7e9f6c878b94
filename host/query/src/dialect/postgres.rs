//! Postgres: native types, text compared by code point.

use blockbase_schema::{Column, ColumnType};

/// Upper case by the Unicode root locale is the fold: unlike lower case it depends on no neighbour.
pub(super) fn contains(text: &str, placeholder: &str, fold_case: bool) -> String {
    match fold_case {
        true => format!("strpos(upper({text} COLLATE \"und-x-icu\"), upper({placeholder}::text COLLATE \"und-x-icu\")) > 0"),
        false => format!("strpos({text}, {placeholder}) > 0"),
    }
}

/// The elements of a list column as one text.
pub(crate) fn list_text(name: &str) -> String {
    format!("coalesce(svc_list_text({name}), '')")
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
        // `json` keeps the text as it is, as SQLite does; `jsonb` would sort its keys.
        ColumnType::Json => "json",
        ColumnType::Uuid => "uuid",
    };
    plain.to_owned()
}

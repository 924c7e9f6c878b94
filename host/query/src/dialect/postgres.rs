//! Postgres: native types, text compared by code point.

use blockbase_schema::{Column, ColumnType};

/// Upper case by the Unicode root locale is the fold: unlike lower case it depends on no neighbour.
pub(super) fn contains(text: &str, placeholder: &str, fold_case: bool) -> String {
    match fold_case {
        true => format!("strpos(upper({text} COLLATE \"und-x-icu\"), upper({placeholder}::text COLLATE \"und-x-icu\")) > 0"),
        false => format!("strpos({text}, {placeholder}) > 0"),
    }
}

pub(super) fn column_type(column: &Column) -> &'static str {
    match column.ty {
        ColumnType::Text => "text COLLATE \"C\"",
        ColumnType::TextList => "text[] COLLATE \"C\"",
        ColumnType::Integer => "integer",
        ColumnType::BigInteger => "bigint",
        ColumnType::Decimal { .. } => "numeric",
        ColumnType::Float => "double precision",
        ColumnType::Boolean => "boolean",
        ColumnType::Date => "date",
        ColumnType::Datetime => "timestamptz(3)",
        ColumnType::Time => "time(3)",
        // `json` keeps the text as it is, as SQLite does; `jsonb` would sort its keys.
        ColumnType::Json => "json",
        ColumnType::Uuid => "uuid",
    }
}

pub(super) fn decimal_suffix(column: &Column) -> String {
    match column.ty {
        ColumnType::Decimal { scale } => format!("(18,{scale})"),
        _ => String::new(),
    }
}

//! Bound values, and the SQL text that they are bound to.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use blockbase_schema::{ColumnType, Value};

/// A bound value. Its variant says the type even if the value is null, because Postgres needs the type.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    Text(Option<String>),
    TextList(Option<Vec<String>>),
    OptionalTextList(Vec<Option<String>>),
    /// Used only on Postgres, because SQLite has no lists of bytes.
    OptionalBytesList(Vec<Option<Vec<u8>>>),
    Integer(Option<i32>),
    BigInteger(Option<i64>),
    /// The scaled value, and the scale.
    Decimal(Option<(i64, u8)>),
    Float(Option<f64>),
    Boolean(Option<bool>),
    /// The number of days since 1970-01-01.
    Date(Option<i32>),
    /// The number of milliseconds since the epoch.
    Datetime(Option<i64>),
    /// The number of milliseconds since midnight.
    Time(Option<u32>),
    Json(Option<String>),
    Uuid(Option<uuid::Uuid>),
    UuidList(Vec<uuid::Uuid>),
    /// Rowids of SQLite.
    IntegerList(Vec<i64>),
    Bytes(Option<Vec<u8>>),
}

impl From<&str> for Param {
    fn from(text: &str) -> Self {
        Param::Text(Some(text.to_owned()))
    }
}

impl From<String> for Param {
    fn from(text: String) -> Self {
        Param::Text(Some(text))
    }
}

impl From<Option<String>> for Param {
    fn from(text: Option<String>) -> Self {
        Param::Text(text)
    }
}

impl From<i64> for Param {
    fn from(number: i64) -> Self {
        Param::BigInteger(Some(number))
    }
}

impl From<Option<i64>> for Param {
    fn from(number: Option<i64>) -> Self {
        Param::BigInteger(number)
    }
}

impl From<bool> for Param {
    fn from(value: bool) -> Self {
        Param::Boolean(Some(value))
    }
}

impl From<Vec<u8>> for Param {
    fn from(bytes: Vec<u8>) -> Self {
        Param::Bytes(Some(bytes))
    }
}

impl Param {
    /// `value` as a parameter for a column of type `ty`.
    pub fn of(ty: ColumnType, value: Value) -> Param {
        match (ty, value) {
            (ColumnType::Text, Value::Text(text)) => Param::Text(Some(text)),
            // A filter compares the elements of a list column.
            (ColumnType::TextList, Value::Text(text)) => Param::Text(Some(text)),
            (ColumnType::TextList, Value::TextList(list)) => Param::TextList(Some(list)),
            (ColumnType::Integer, Value::Integer(number)) => Param::Integer(i32::try_from(number).ok()),
            (ColumnType::BigInteger, Value::Integer(number)) => Param::BigInteger(Some(number)),
            (ColumnType::Decimal { .. }, Value::Decimal { scaled, scale }) => Param::Decimal(Some((scaled, scale))),
            (ColumnType::Float, Value::Float(number)) => Param::Float(Some(number)),
            (ColumnType::Boolean, Value::Boolean(value)) => Param::Boolean(Some(value)),
            (ColumnType::Date, Value::Date(days)) => Param::Date(Some(days)),
            (ColumnType::Datetime, Value::Datetime(millis)) => Param::Datetime(Some(millis)),
            (ColumnType::Time, Value::Time(millis)) => Param::Time(Some(millis)),
            (ColumnType::Json, Value::Json(text)) => Param::Json(Some(text)),
            (ColumnType::Uuid, Value::Uuid(id)) => Param::Uuid(Some(id)),
            (ty, _) => Param::null(ty),
        }
    }

    fn null(ty: ColumnType) -> Param {
        match ty {
            ColumnType::Text => Param::Text(None),
            ColumnType::TextList => Param::TextList(None),
            ColumnType::Integer => Param::Integer(None),
            ColumnType::BigInteger => Param::BigInteger(None),
            ColumnType::Decimal { .. } => Param::Decimal(None),
            ColumnType::Float => Param::Float(None),
            ColumnType::Boolean => Param::Boolean(None),
            ColumnType::Date => Param::Date(None),
            ColumnType::Datetime => Param::Datetime(None),
            ColumnType::Time => Param::Time(None),
            ColumnType::Json => Param::Json(None),
            ColumnType::Uuid => Param::Uuid(None),
        }
    }
}

/// SQL text and the values that are bound to it.
#[derive(Clone, Debug)]
pub struct Statement {
    pub sql: SqlText,
    pub params: Vec<Param>,
}

/// The text of a statement.
#[derive(Clone, Debug)]
pub enum SqlText {
    /// It was written for this statement.
    Written(String),
    /// An object keeps it, and all requests share it.
    Kept(Arc<str>),
}

impl Deref for SqlText {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            SqlText::Written(text) => text,
            SqlText::Kept(text) => text,
        }
    }
}

impl fmt::Display for SqlText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self)
    }
}

impl From<String> for SqlText {
    fn from(text: String) -> SqlText {
        SqlText::Written(text)
    }
}

/// Copies a kept text.
impl From<SqlText> for String {
    fn from(text: SqlText) -> String {
        match text {
            SqlText::Written(text) => text,
            SqlText::Kept(text) => String::from(&*text),
        }
    }
}

//! The JSON Schemas of one column: in records, and in bodies.
//!
//! The schema for records is exact. The schema for bodies allows every value that the server accepts, and as few others as JSON
//! Schema can express.

use blockbase_app::schema::{Column, ColumnType, Field, FieldType, is_double};
use serde_json::{Map, Number, Value, json};

use crate::openapi::components::schema;
use crate::openapi::pattern::is_plain;

/// A column, with the descriptions that people have written for it.
pub(crate) struct Described<'a> {
    pub(crate) column: &'a Column,
    /// The definition of the column if it is a field.
    pub(crate) field: Option<&'a Field>,
    /// The object that the column refers to, if the caller may know of that object.
    pub(crate) target: Option<&'a str>,
}

/// Returns the text as a number for the document. Readers store numbers as doubles, so a number with more digits is put into the
/// description instead.
fn exact_number(text: &str) -> Option<Value> {
    let number: Number = text.parse().ok()?;
    let is_exact = number.is_i64() || number.is_u64() || is_double(text);
    is_exact.then_some(Value::Number(number))
}

/// A bound of a rule as a JSON number.
fn number(bound: &Option<impl ToString>) -> Option<Value> {
    exact_number(&bound.as_ref()?.to_string())
}

/// The keywords of the column's type, for a value that is not null.
fn base(column: &Column) -> Map<String, Value> {
    let mut keywords = Map::new();
    let mut set = |key: &str, value: Value| {
        keywords.insert(key.to_owned(), value);
    };
    let (min, max) = (number(&column.rules.min), number(&column.rules.max));
    match column.ty {
        ColumnType::Text | ColumnType::Date | ColumnType::Datetime | ColumnType::Time | ColumnType::Uuid => {
            set("type", json!("string"));
        }
        ColumnType::TextList => {
            set("type", json!("array"));
            set("items", json!({ "type": "string", "enum": column.rules.options }));
            set("uniqueItems", json!(true));
        }
        ColumnType::Integer => {
            set("type", json!("integer"));
            set("format", json!("int32"));
            set("minimum", min.clone().unwrap_or_else(|| json!(i32::MIN)));
            set("maximum", max.clone().unwrap_or_else(|| json!(i32::MAX)));
        }
        ColumnType::BigInteger => {
            set("type", json!("integer"));
            set("format", json!("int64"));
        }
        ColumnType::Decimal { .. } => set("type", json!("number")),
        ColumnType::Float => {
            set("type", json!("number"));
            set("format", json!("double"));
        }
        ColumnType::Boolean => set("type", json!("boolean")),
        ColumnType::Json => {}
    }
    match column.kind {
        FieldType::Email => set("format", json!("email")),
        FieldType::Url => set("format", json!("uri")),
        FieldType::Slug => set("pattern", json!("^[a-z0-9]+(-[a-z0-9]+)*$")),
        FieldType::Enum => set("enum", json!(column.rules.options)),
        FieldType::Date => set("format", json!("date")),
        FieldType::Datetime => set("format", json!("date-time")),
        FieldType::Uuid => set("format", json!("uuid")),
        _ => {}
    }
    let is_textual = column.kind.is_textual();
    if is_textual || matches!(column.ty, ColumnType::BigInteger | ColumnType::Decimal { .. } | ColumnType::Float) {
        let (least, most) = if is_textual { ("minLength", "maxLength") } else { ("minimum", "maximum") };
        [(least, min), (most, max)].into_iter().for_each(|(key, bound)| {
            if let Some(bound) = bound {
                set(key, bound);
            }
        });
    }
    if let Some(pattern) = column.rules.pattern.as_ref().filter(|pattern| is_plain(pattern.as_str())) {
        match keywords.contains_key("pattern") {
            true => keywords.insert("allOf".to_owned(), json!([{ "pattern": pattern.as_str() }])),
            false => keywords.insert("pattern".to_owned(), json!(pattern.as_str())),
        };
    }
    keywords
}

fn or_null(mut keywords: Map<String, Value>) -> Value {
    if let Some(kind) = keywords.get_mut("type") {
        *kind = json!([kind.clone(), "null"]);
    }
    if let Some(Value::Array(options)) = keywords.get_mut("enum") {
        options.push(Value::Null);
    }
    Value::Object(keywords)
}

/// The description of the column for people.
fn description(described: &Described<'_>, notes: &[String]) -> String {
    let Described { column, field, target } = described;
    let mut parts: Vec<String> = field.and_then(|field| field.description.clone()).into_iter().collect();
    match target {
        Some(target) => parts.push(format!("The id of a record of `{target}`.")),
        None if column.reference.is_some() => parts.push("The id of a record of another object.".to_owned()),
        None => {}
    }
    if column.unique {
        parts.push("No two records have the same value.".to_owned());
    }
    if let Some(pattern) = &column.rules.pattern {
        parts.push(format!("Matches the pattern `{}` of Rust's `regex` crate.", pattern.as_str()));
    }
    parts.extend_from_slice(notes);
    parts.join(" ")
}

fn annotated(mut schema: Value, described: &Described<'_>, notes: &[String]) -> Value {
    if let Some(label) = described.field.and_then(|field| field.label.as_ref()) {
        schema["title"] = json!(label);
    }
    let text = description(described, notes);
    if !text.is_empty() {
        schema["description"] = json!(text);
    }
    schema
}

/// The column as records show it.
pub(crate) fn shown(described: &Described<'_>) -> Value {
    let column = described.column;
    let mut keywords = base(column);
    if column.ty == ColumnType::Time {
        keywords.insert("pattern".to_owned(), json!("^[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{3})?$"));
    }
    let schema = if column.required || column.ty == ColumnType::Json { Value::Object(keywords) } else { or_null(keywords) };
    // JSON Schema cannot express that a number is an amount of money, which clients show with all decimal places.
    let notes = match (column.kind, column.ty) {
        (FieldType::Currency, ColumnType::Decimal { scale }) => vec![format!("An amount to {scale} decimal places.")],
        _ => Vec::new(),
    };
    annotated(schema, described, &notes)
}

/// The column in the body of a create.
pub(crate) fn created(described: &Described<'_>) -> Value {
    let column = described.column;
    let mut schema = annotated(taken(column, &[]), described, &notes(column));
    if let Some(default) = described.field.and_then(|field| field.default.as_ref()) {
        // A body may also give a number as text, which keeps all digits.
        let is_number = column.kind.is_numeric() && !default.is_string();
        let shown = match is_number {
            true => exact_number(default.text()).unwrap_or_else(|| json!(default.text())),
            false => serde_json::from_str(default.text()).unwrap_or_default(),
        };
        schema["default"] = shown;
    }
    schema
}

/// The column in the body of an update. A number can also be given as an amount to change it by.
pub(crate) fn updated(described: &Described<'_>) -> Value {
    let column = described.column;
    let more: &[Value] = match column.kind.is_numeric() {
        true if matches!(column.ty, ColumnType::Integer | ColumnType::BigInteger) => &[schema("SvcIntegerChange")],
        true => &[schema("SvcNumberChange")],
        false => &[],
    };
    annotated(taken(column, more), described, &notes(column))
}

fn notes(column: &Column) -> Vec<String> {
    let mut notes = Vec::new();
    for (side, bound) in [("least", &column.rules.min), ("most", &column.rules.max)] {
        if let Some(bound) = bound.as_ref().filter(|bound| exact_number(&bound.to_string()).is_none()) {
            notes.push(format!("The {side} is {bound}."));
        }
    }
    if let Some(most) = column.index_bytes_max.filter(|_| column.ty == ColumnType::Text) {
        notes.push(format!("The value is part of an index, so it has at most {most} bytes."));
    }
    match column.ty {
        ColumnType::Decimal { scale } => {
            notes.push(format!(
                "Exact, with 18 digits in all and {scale} of them after the point. Further digits are rounded \
                    half away from zero."
            ));
        }
        ColumnType::Datetime => notes.push("RFC 3339 with any offset. Without an offset it is UTC.".to_owned()),
        ColumnType::Json => notes.push("Any JSON value. A string is read as encoded JSON.".to_owned()),
        _ => {}
    }
    notes
}

/// The values that a body may have for the column: its values, the texts that represent them, `more`, and null if the column
/// allows it.
fn taken(column: &Column, more: &[Value]) -> Value {
    let mut keywords = base(column);
    match column.ty {
        ColumnType::Json if column.required => {
            return json!({ "type": ["object", "array", "string", "number", "boolean"] });
        }
        ColumnType::Json => return json!({}),
        ColumnType::Boolean => {
            let mut values = vec![json!(true), json!(false), json!("true"), json!("false")];
            let mut types = vec!["boolean", "string"];
            if !column.required {
                values.push(Value::Null);
                types.push("null");
            }
            return json!({ "type": types, "enum": values });
        }
        ColumnType::Time => {
            let pattern = "^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\\.[0-9]+)?)?$";
            keywords.insert("pattern".to_owned(), json!(pattern));
        }
        _ => {}
    }
    if !column.kind.is_numeric() {
        return if column.required { Value::Object(keywords) } else { or_null(keywords) };
    }
    let value = if column.required { Value::Object(keywords) } else { or_null(keywords) };
    let any: Vec<Value> = [value, schema("SvcNumericText")].into_iter().chain(more.iter().cloned()).collect();
    json!({ "anyOf": any })
}

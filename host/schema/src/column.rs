//! A column in the form that operations use: a field, or one of the five columns that every object has.

use regex::Regex;
use rust_decimal::Decimal;

use crate::code::Code;
use crate::error::{Error, Result};
use crate::field::{Field, FieldType};
use crate::number::ExactNumber;
use crate::relationship::Reference;
use crate::system;
use crate::value::Value;

/// The type of a column's values. It decides storage, coercion and the JSON form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnType {
    Text,
    TextList,
    /// A whole number of 32 bits.
    Integer,
    /// A whole number of 64 bits.
    BigInteger,
    /// A whole number of `10^-scale`, with at most 18 digits.
    Decimal {
        scale: u8,
    },
    Float,
    Boolean,
    Date,
    Datetime,
    Time,
    Json,
    Uuid,
}

impl ColumnType {
    /// The column type of a field type. `scale` replaces the type's own scale.
    pub fn of(kind: FieldType, scale: Option<u8>) -> ColumnType {
        match kind {
            FieldType::Text | FieldType::Email | FieldType::Url | FieldType::Slug | FieldType::Enum => ColumnType::Text,
            FieldType::MultiEnum => ColumnType::TextList,
            FieldType::Integer | FieldType::Rating => ColumnType::Integer,
            FieldType::BigInteger => ColumnType::BigInteger,
            FieldType::Decimal | FieldType::Percentage | FieldType::Currency => {
                ColumnType::Decimal { scale: scale.or(kind.default_scale()).unwrap_or(0) }
            }
            FieldType::Float => ColumnType::Float,
            FieldType::Boolean => ColumnType::Boolean,
            FieldType::Date => ColumnType::Date,
            FieldType::Datetime => ColumnType::Datetime,
            FieldType::Time => ColumnType::Time,
            FieldType::Json => ColumnType::Json,
            FieldType::Uuid => ColumnType::Uuid,
        }
    }
}

/// Field-level rules, prepared for checks.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub min: Option<Decimal>,
    pub max: Option<Decimal>,
    pub pattern: Option<Regex>,
    pub options: Option<Vec<String>>,
}

/// The indexes of an object that begin with one column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnIndexes {
    /// Whether there is one with all rows.
    pub exist: bool,
    /// Whether one leads to the rows that have one value in the column. The index of a unique group does not count, because its
    /// first column usually has few values, each in many rows. That of `created_at` does not either, because an import gives many
    /// rows the same moment.
    pub lead_to_rows: bool,
    /// Whether one was made for lists in the order of the column and then of `id`: a declared one of the column alone, or that of
    /// `id` or `created_at`.
    pub order_rows: bool,
}

/// One column of an object.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    /// The field's type. A system column has the type of a field that behaves in the same way.
    pub kind: FieldType,
    pub ty: ColumnType,
    pub required: bool,
    pub unique: bool,
    pub rules: Rules,
    pub default: Option<Value>,
    /// The number of the field within its object, which is never reused. Names of constraints contain it, so that they do not
    /// change with a rename.
    pub key: u32,
    pub is_system: bool,
    /// The record that the column refers to, if it is a foreign key.
    pub reference: Option<Reference>,
    /// Whether a declared index is ordered by the column.
    pub is_sorted: bool,
    /// The indexes that begin with the column.
    pub indexes: ColumnIndexes,
    /// The number of the last event before the column got its name. 0 if it is as old as its object, or older than these numbers.
    pub named_since: i64,
    /// The maximum number of bytes of a text value in an index. The engines limit the size of an index entry.
    pub index_bytes_max: Option<usize>,
}

/// The maximum number of bytes of text in one index entry. Postgres' own limit is 2,704, including other columns and the header.
pub(crate) const INDEX_BYTES_MAX: usize = 2000;
/// The greatest value of a rating whose definition has no `max`.
const RATING_MAX: i64 = 5;

/// The key of a relationship in the catalogue. Its foreign key and its links have it too.
pub(crate) fn key_of_relationship(id: i64) -> String {
    format!("r{id}")
}

impl Column {
    pub(crate) fn system(name: &str) -> Column {
        let (kind, ty) = match name {
            system::ID => (FieldType::Uuid, ColumnType::Uuid),
            system::CREATED_AT | system::UPDATED_AT => (FieldType::Datetime, ColumnType::Datetime),
            _ => (FieldType::Text, ColumnType::Text),
        };
        Column {
            name: name.to_owned(),
            kind,
            ty,
            required: !name.ends_with("_by"),
            unique: name == system::ID,
            rules: Rules::default(),
            default: None,
            key: 0,
            is_system: true,
            reference: None,
            is_sorted: false,
            indexes: ColumnIndexes::default(),
            named_since: 0,
            index_bytes_max: None,
        }
    }

    /// The column `<name>_id` of a relationship.
    pub(crate) fn foreign_key(name: String, required: bool, unique: bool, reference: Reference) -> Column {
        Column {
            name,
            kind: FieldType::Uuid,
            ty: ColumnType::Uuid,
            required,
            unique,
            rules: Rules::default(),
            default: None,
            key: 0,
            is_system: false,
            reference: Some(reference),
            is_sorted: false,
            indexes: ColumnIndexes::default(),
            named_since: 0,
            index_bytes_max: None,
        }
    }

    /// A column of a result that is no table. Every value may be null.
    pub fn of_result(name: String, kind: FieldType, ty: ColumnType) -> Column {
        Column {
            name,
            kind,
            ty,
            required: false,
            unique: false,
            rules: Rules::default(),
            default: None,
            key: 0,
            is_system: false,
            reference: None,
            is_sorted: false,
            indexes: ColumnIndexes::default(),
            named_since: 0,
            index_bytes_max: None,
        }
    }

    /// The part of names of constraints and indexes that identifies the column and does not change with a rename. It is the
    /// field's number, `r` and the relationship's number, or `s` and the position among the system columns.
    pub fn catalogue_key(&self) -> String {
        match (&self.reference, system::NAMES.iter().position(|name| self.is_system && *name == self.name)) {
            (Some(reference), _) => key_of_relationship(reference.relationship_id),
            (None, Some(place)) => format!("s{place}"),
            (None, None) => self.key.to_string(),
        }
    }

    pub(crate) fn of_field(field: &Field, key: u32) -> Result<Column> {
        field.check()?;
        let ty = ColumnType::of(field.kind, field.scale);
        let invalid = |message: String| Error::new(Code::InvalidSchema, message).with_field(field.name.clone());
        let bound = |name: &str, number: &Option<ExactNumber>| -> Result<Option<Decimal>> {
            let Some(number) = number else { return Ok(None) };
            let bound = number.to_decimal();
            let bound =
                bound.ok_or_else(|| invalid(format!("`{name}` of `{}` has more than the 28 digits of a bound.", field.name)))?;
            Ok(Some(bound))
        };
        let mut rules = Rules {
            min: bound("min", &field.min)?,
            max: bound("max", &field.max)?,
            pattern: None,
            options: field.options.clone(),
        };
        if field.kind == FieldType::Rating {
            rules.min = rules.min.or(Some(Decimal::ZERO));
            rules.max = rules.max.or(Some(Decimal::from(RATING_MAX)));
        }
        if let Some(pattern) = &field.pattern {
            // The crate's own size limit also limits the memory of a compiled pattern.
            rules.pattern = Some(
                Regex::new(pattern)
                    .map_err(|error| invalid(format!("`pattern` of `{}` is not a regular expression: {error}", field.name)))?,
            );
        }
        let mut column = Column {
            name: field.name.clone(),
            kind: field.kind,
            ty,
            required: field.required,
            unique: field.is_unique,
            rules,
            default: None,
            key,
            is_system: false,
            reference: None,
            is_sorted: field.indexed,
            indexes: ColumnIndexes::default(),
            named_since: 0,
            index_bytes_max: (field.is_unique || field.indexed).then_some(INDEX_BYTES_MAX),
        };
        if let Some(default) = &field.default {
            let value = column.value_of(default.text()).map_err(|error| {
                invalid(format!("The default of `{}` is not a valid value of the field: {}", field.name, error.message))
            })?;
            column.default = (value != Value::Null).then_some(value);
        }
        Ok(column)
    }

    /// Whether the column's value can name a record instead of its id.
    pub fn names_record(&self) -> bool {
        self.unique && !self.is_system && self.reference.is_none()
    }

    /// Whether `search` searches in the column.
    pub fn is_searchable(&self) -> bool {
        !self.is_system && (self.kind.is_textual() || self.kind.has_options())
    }
}

impl Field {
    /// The default as JSON text, in the form in which records show it.
    ///
    /// # Errors
    /// `invalid_schema` if the default does not fit the definition.
    pub fn default_shown(&self) -> Result<Option<String>> {
        let mut out = Vec::new();
        Ok(Column::of_field(self, 0)?.default.map(|value| {
            value.write_json(&mut out);
            String::from_utf8_lossy(&out).into_owned()
        }))
    }
}

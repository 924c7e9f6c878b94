//! The definition of one field, as the schema API reads and returns it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::error::{Error, Result};
use crate::name::NAME_PATTERN;
use crate::number::{ExactJson, ExactNumber};
use crate::optional::optional;

/// One of the nineteen field types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum FieldType {
    Text,
    Email,
    Url,
    Slug,
    Enum,
    MultiEnum,
    Integer,
    BigInteger,
    Decimal,
    Float,
    Percentage,
    Currency,
    Rating,
    Boolean,
    Date,
    Datetime,
    Time,
    Json,
    Uuid,
}

impl FieldType {
    /// All types, in the order of the documentation.
    pub const ALL: [FieldType; 19] = [
        FieldType::Text,
        FieldType::Email,
        FieldType::Url,
        FieldType::Slug,
        FieldType::Enum,
        FieldType::MultiEnum,
        FieldType::Integer,
        FieldType::BigInteger,
        FieldType::Decimal,
        FieldType::Float,
        FieldType::Percentage,
        FieldType::Currency,
        FieldType::Rating,
        FieldType::Boolean,
        FieldType::Date,
        FieldType::Datetime,
        FieldType::Time,
        FieldType::Json,
        FieldType::Uuid,
    ];

    /// Whether `min` and `max` limit the value itself, and atomic operators apply.
    pub fn is_numeric(self) -> bool {
        use FieldType::*;
        matches!(self, Integer | BigInteger | Decimal | Float | Percentage | Currency | Rating)
    }

    /// Whether `min` and `max` limit the length in characters.
    pub fn is_textual(self) -> bool {
        matches!(self, FieldType::Text | FieldType::Email | FieldType::Url | FieldType::Slug)
    }

    /// Whether the type has `options`.
    pub fn has_options(self) -> bool {
        matches!(self, FieldType::Enum | FieldType::MultiEnum)
    }

    /// Whether records can be grouped by the values of such a field.
    pub fn makes_groups(self) -> bool {
        use FieldType::*;
        match self {
            Text | Email | Url | Slug | Enum | Integer | BigInteger | Decimal | Float | Percentage | Currency | Rating
            | Boolean | Date | Datetime | Time | Uuid => true,
            MultiEnum | Json => false,
        }
    }

    /// The number of digits after the point if the definition names no scale. `None` for types without a scale.
    pub fn default_scale(self) -> Option<u8> {
        match self {
            FieldType::Decimal => Some(6),
            FieldType::Currency => Some(2),
            FieldType::Percentage => Some(4),
            _ => None,
        }
    }

    /// The type's name in the API.
    pub fn name(self) -> &'static str {
        use FieldType::*;
        match self {
            Text => "text",
            Email => "email",
            Url => "url",
            Slug => "slug",
            Enum => "enum",
            MultiEnum => "multi_enum",
            Integer => "integer",
            BigInteger => "big_integer",
            Decimal => "decimal",
            Float => "float",
            Percentage => "percentage",
            Currency => "currency",
            Rating => "rating",
            Boolean => "boolean",
            Date => "date",
            Datetime => "datetime",
            Time => "time",
            Json => "json",
            Uuid => "uuid",
        }
    }
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// The definition of a field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "SvcField")]
pub struct Field {
    #[schemars(extend("pattern" = NAME_PATTERN))]
    pub name: String,
    #[serde(rename = "type")]
    pub kind: FieldType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "optional::<String>")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "optional::<String>")]
    pub description: Option<String>,
    /// Whether each record needs a value.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// Whether no two records may have the same value.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_unique: bool,
    /// Whether an index helps filters and sorting.
    #[serde(default, skip_serializing_if = "is_false")]
    pub indexed: bool,
    /// The value of records that are created without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Value")]
    pub default: Option<ExactJson>,
    /// The smallest value of a number, or the shortest length of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "optional::<ExactNumber>")]
    pub min: Option<ExactNumber>,
    /// The greatest value of a number, or the longest length of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "optional::<ExactNumber>")]
    pub max: Option<ExactNumber>,
    /// A regular expression of Rust's `regex` crate that matches somewhere in the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "optional::<String>")]
    pub pattern: Option<String>,
    /// The values of enum and multi_enum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "optional::<Vec<String>>")]
    pub options: Option<Vec<String>>,
    /// Digits after the decimal point, for decimal, currency and percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "optional::<u8>", extend("maximum" = SCALE_MAX))]
    pub scale: Option<u8>,
}

/// The maximum number of digits after the point.
const SCALE_MAX: u8 = 12;
/// The maximum number of options of one field.
const OPTIONS_MAX: usize = 500;
/// The maximum length of an option, in characters.
const OPTION_CHARS_MAX: usize = 200;
/// The maximum length of a pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1000;
/// The maximum length of a label and of a description, in characters.
const DESCRIPTION_CHARS_MAX: usize = 2000;

impl Field {
    /// Checks that the definition's keys fit its type. Code that knows the object checks the name.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |message: String| Err(Error::new(Code::InvalidSchema, message).with_field(self.name.clone()));
        let kind = self.kind.name();
        if (self.min.is_some() || self.max.is_some()) && !self.kind.is_numeric() && !self.kind.is_textual() {
            return refuse(format!("`min` and `max` are for numeric and textual fields; `{}` is {kind}.", self.name));
        }
        for (key, bound) in [("min", &self.min), ("max", &self.max)] {
            if self.kind.is_textual() && bound.as_ref().is_some_and(|bound| bound.text().parse::<u64>().is_err()) {
                return refuse(format!("`{key}` of `{}` is a length in characters: a whole number, not negative.", self.name));
            }
        }
        if let (Some(min), Some(max)) = (&self.min, &self.max)
            && min.to_decimal().zip(max.to_decimal()).is_some_and(|(min, max)| min > max)
        {
            return refuse(format!("`min` of `{}` is greater than its `max`.", self.name));
        }
        if self.pattern.is_some() && !self.kind.is_textual() {
            return refuse(format!("`pattern` is for textual fields; `{}` is {kind}.", self.name));
        }
        if self.pattern.as_ref().is_some_and(|pattern| pattern.len() > PATTERN_BYTES_MAX) {
            return refuse(format!("`pattern` of `{}` is longer than {PATTERN_BYTES_MAX} bytes.", self.name));
        }
        match (&self.options, self.kind.has_options()) {
            (Some(options), true) => {
                let mut seen = std::collections::HashSet::new();
                if options.is_empty() || options.len() > OPTIONS_MAX {
                    return refuse(format!("`options` of `{}` needs 1 to {OPTIONS_MAX} values.", self.name));
                }
                for option in options {
                    if option.is_empty() || option.chars().count() > OPTION_CHARS_MAX || option.contains('\0') {
                        return refuse(format!(
                            "Each option of `{}` needs 1 to {OPTION_CHARS_MAX} characters, NUL not among them.",
                            self.name
                        ));
                    }
                    if !seen.insert(option) {
                        return refuse(format!("The option {option:?} of `{}` is listed twice.", self.name));
                    }
                }
            }
            (None, true) => return refuse(format!("`{}` is {kind}, which needs `options`.", self.name)),
            (Some(_), false) => return refuse(format!("`options` is for enum and multi_enum; `{}` is {kind}.", self.name)),
            (None, false) => {}
        }
        match (self.scale, self.kind.default_scale()) {
            (Some(_), None) => {
                return refuse(format!("`scale` is for decimal, currency and percentage; `{}` is {kind}.", self.name));
            }
            (Some(scale), Some(_)) if scale > SCALE_MAX => {
                return refuse(format!("`scale` of `{}` is {scale}; the most is {SCALE_MAX}.", self.name));
            }
            _ => {}
        }
        if self.is_unique && matches!(self.kind, FieldType::Json | FieldType::MultiEnum) {
            return refuse(format!("`isUnique` needs values that can be compared; `{}` is {kind}.", self.name));
        }
        if self.indexed && matches!(self.kind, FieldType::Json | FieldType::MultiEnum) {
            return refuse(format!("`indexed` needs values that have an order; `{}` is {kind}.", self.name));
        }
        for text in [&self.label, &self.description].into_iter().flatten() {
            if text.chars().count() > DESCRIPTION_CHARS_MAX {
                return refuse(format!(
                    "Label and description of `{}` hold {DESCRIPTION_CHARS_MAX} characters at most.",
                    self.name
                ));
            }
        }
        Ok(())
    }
}

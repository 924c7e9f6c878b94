//! A filter of a request, before it is checked against the schema.

use serde_json::value::RawValue;

use crate::operator::Operator;

/// The parameter that holds all filters in other products.
pub(crate) const FOREIGN_FILTER: &str = "filter";

/// A filter's value as it was sent.
#[derive(Clone, Debug)]
pub enum FilterValue {
    /// The text of a query parameter. The type of the column decides how it is read, and `null` is null.
    Text(String),
    /// A JSON value, as text. Null is null here, and a string is never null.
    Json(Box<RawValue>),
}

impl FilterValue {
    /// The value of a filter in a JSON document. A value that is left out is null.
    pub fn of_json(value: Option<Box<RawValue>>) -> FilterValue {
        FilterValue::Json(value.unwrap_or_else(|| RawValue::NULL.to_owned()))
    }
}

/// `field operator value`.
#[derive(Clone, Debug)]
pub struct Filter {
    pub field: String,
    pub operator: Operator,
    pub value: FilterValue,
}

//! A filter of a request, before it is checked against the schema.

use serde_json::value::RawValue;

use crate::operator::Operator;

/// The parameter that holds all filters in other products.
pub(crate) const FOREIGN_FILTER: &str = "filter";

/// A filter's value as it was sent.
#[derive(Clone, Debug)]
pub enum FilterValue {
    /// The text of a query parameter. The type of the column decides how it is read.
    Text(String),
    /// A JSON value, as text.
    Json(Box<RawValue>),
}

/// `field operator value`.
#[derive(Clone, Debug)]
pub struct Filter {
    pub field: String,
    pub operator: Operator,
    pub value: FilterValue,
}

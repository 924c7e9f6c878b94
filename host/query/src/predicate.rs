//! Tests of one column, and the filters that become tests.
//!
//! Everything that differs from test to test is decided here, except the SQL, which `sql/writer.rs` writes.

use std::borrow::Cow;
use std::cmp::Ordering;

use blockbase_schema::{Code, Column, ColumnType, Error, Hint, Object, Result, Value, excerpt, fold, listed, parse_filter_text};

use crate::filter::{FOREIGN_FILTER, Filter, FilterValue};
use crate::limits::LIST_ITEMS_MAX;
use crate::operator::{Operand, Operator};

/// One test of one column. `column` is an index into `Object::columns`.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Predicate {
    pub column: usize,
    pub test: Test,
}

listed! {
    /// How a column is compared with one value.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Comparison {
        Equal,
        /// Not equal, or null.
        NotEqual,
        Greater,
        GreaterOrEqual,
        Less,
        LessOrEqual,
    }
}

impl Comparison {
    pub(crate) const fn operator(self) -> Operator {
        match self {
            Comparison::Equal => Operator::Eq,
            Comparison::NotEqual => Operator::Neq,
            Comparison::Greater => Operator::Gt,
            Comparison::GreaterOrEqual => Operator::Gte,
            Comparison::Less => Operator::Lt,
            Comparison::LessOrEqual => Operator::Lte,
        }
    }

    /// The comparison that an operator makes. `None` if it does not compare with one value.
    pub(crate) fn of(operator: Operator) -> Option<Comparison> {
        Comparison::ALL.iter().copied().find(|comparison| comparison.operator() == operator)
    }
}

/// The test of a predicate on its column.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Test {
    /// A comparison with a value that is not null.
    Compare(Comparison, Value),
    /// `in`, or `nin` if negated. `nin` is also true for nulls, unless null is among the values.
    In {
        values: Vec<Value>,
        negated: bool,
    },
    IsNull,
    IsNotNull,
    /// `like`, or `ilike` if case is folded: the column contains each of the texts.
    Contains {
        texts: Vec<String>,
        fold_case: bool,
    },
}

impl Test {
    /// The operator of the filter that becomes this test.
    pub(crate) fn operator(&self) -> Operator {
        match self {
            Test::Compare(comparison, _) => comparison.operator(),
            Test::In { negated: false, .. } => Operator::In,
            Test::In { negated: true, .. } => Operator::Nin,
            Test::IsNull => Operator::IsNull,
            Test::IsNotNull => Operator::IsNotNull,
            Test::Contains { fold_case: false, .. } => Operator::Like,
            Test::Contains { fold_case: true, .. } => Operator::Ilike,
        }
    }

    /// Whether the test is true for null.
    pub(crate) fn holds_on_null(&self) -> bool {
        match self {
            Test::IsNull | Test::Compare(Comparison::NotEqual, _) => true,
            Test::In { values, negated } => values.contains(&Value::Null) != *negated,
            Test::IsNotNull | Test::Compare(..) | Test::Contains { .. } => false,
        }
    }

    /// Whether the test is true for a value, with the same meaning as in SQL. The test has no [`Value::DecimalBetween`]: reading a
    /// condition replaces it.
    pub(crate) fn holds_for(&self, value: &Value) -> bool {
        match (self, value) {
            (test, Value::Null) => test.holds_on_null(),
            (Test::IsNull, _) => false,
            (Test::IsNotNull, _) => true,
            (Test::Compare(comparison, wanted), value) => compares(*comparison, value, wanted),
            (Test::In { values, negated }, value) => values.iter().any(|wanted| equals(value, wanted)) != *negated,
            (Test::Contains { texts, fold_case }, Value::TextList(items)) => {
                texts.iter().all(|text| items.iter().any(|item| contains(item, text, *fold_case)))
            }
            (Test::Contains { texts, fold_case }, Value::Text(value)) => {
                texts.iter().all(|text| contains(value, text, *fold_case))
            }
            (Test::Contains { .. }, _) => false,
        }
    }

    /// The test that is true exactly where this one is false, if there is one.
    pub(crate) fn opposite(&self) -> Option<Test> {
        Some(match self {
            Test::IsNull => Test::IsNotNull,
            Test::IsNotNull => Test::IsNull,
            Test::In { values, negated } => Test::In { values: values.clone(), negated: !negated },
            Test::Compare(Comparison::Equal, value) => Test::Compare(Comparison::NotEqual, value.clone()),
            Test::Compare(Comparison::NotEqual, value) => Test::Compare(Comparison::Equal, value.clone()),
            // The opposite of an order test is "the other order, or null", which is not a single test.
            Test::Compare(Comparison::Greater | Comparison::GreaterOrEqual | Comparison::Less | Comparison::LessOrEqual, _)
            | Test::Contains { .. } => return None,
        })
    }

    /// The number of values that the test binds.
    pub(crate) fn values(&self) -> usize {
        match self {
            Test::In { values, .. } => values.len(),
            Test::IsNull | Test::IsNotNull => 0,
            Test::Contains { texts, .. } => texts.len(),
            Test::Compare(..) => 1,
        }
    }

    /// The values that the test binds.
    pub(crate) fn operands(&self) -> Vec<Cow<'_, Value>> {
        match self {
            Test::In { values, .. } => values.iter().map(Cow::Borrowed).collect(),
            Test::IsNull | Test::IsNotNull => Vec::new(),
            Test::Contains { texts, .. } => texts.iter().map(|text| Cow::Owned(Value::Text(text.clone()))).collect(),
            Test::Compare(_, value) => vec![Cow::Borrowed(value)],
        }
    }

    /// The texts that the column has to contain. If there are any, the test searches through complete texts.
    pub(crate) fn contained_texts(&self) -> &[String] {
        match self {
            Test::Contains { texts, .. } => texts,
            Test::Compare(..) | Test::In { .. } | Test::IsNull | Test::IsNotNull => &[],
        }
    }
}

fn contains(text: &str, term: &str, fold_case: bool) -> bool {
    match fold_case {
        true => fold(text).contains(&*fold(term)),
        false => text.contains(term),
    }
}

/// A list is equal to each of its elements.
fn equals(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::TextList(items), Value::Text(wanted)) => items.contains(wanted),
        (value, wanted) => order_of_values(value, wanted) == Some(Ordering::Equal),
    }
}

fn compares(comparison: Comparison, value: &Value, wanted: &Value) -> bool {
    let order = || order_of_values(value, wanted);
    match comparison {
        Comparison::Equal => equals(value, wanted),
        Comparison::NotEqual => !equals(value, wanted),
        Comparison::Greater => order() == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => matches!(order(), Some(Ordering::Greater | Ordering::Equal)),
        Comparison::Less => order() == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(order(), Some(Ordering::Less | Ordering::Equal)),
    }
}

/// The order of two values of one column. `None` if they cannot be compared. Texts are ordered by code point, as in both engines.
pub(crate) fn order_of_values(value: &Value, wanted: &Value) -> Option<Ordering> {
    match (value, wanted) {
        (Value::Text(one), Value::Text(two)) => Some(one.cmp(two)),
        (Value::Integer(one), Value::Integer(two)) => Some(one.cmp(two)),
        (Value::Decimal { scaled: one, scale }, Value::Decimal { scaled: two, scale: other }) if scale == other => {
            Some(one.cmp(two))
        }
        (Value::Float(one), Value::Float(two)) => one.partial_cmp(two),
        (Value::Boolean(one), Value::Boolean(two)) => Some(one.cmp(two)),
        (Value::Date(one), Value::Date(two)) => Some(one.cmp(two)),
        (Value::Datetime(one), Value::Datetime(two)) => Some(one.cmp(two)),
        (Value::Time(one), Value::Time(two)) => Some(one.cmp(two)),
        (Value::Uuid(one), Value::Uuid(two)) => Some(one.cmp(two)),
        _ => None,
    }
}

pub(crate) fn column_index(object: &Object, name: &str) -> Result<usize> {
    object.column_index(name).ok_or_else(|| Error::unknown_field(object.name(), name))
}

/// A filter as a test of a column.
pub(crate) fn predicate(object: &Object, filter: &Filter) -> Result<Predicate> {
    let index = column_index(object, &filter.field).map_err(|error| match (filter.field.as_str(), &filter.value) {
        (FOREIGN_FILTER, FilterValue::Text(_)) => error.with_hint(Hint::FilterByField),
        _ => error,
    })?;
    let column = &object.columns[index];
    if !filter.operator.applies_to(column.ty) {
        let message = format!("`{}` is {}, which this operator cannot compare.", column.name, column.kind.name());
        return Err(Error::invalid_request(message).with_field(column.name.clone()));
    }
    let test = match filter.operator {
        Operator::IsNull => Test::IsNull,
        Operator::IsNotNull => Test::IsNotNull,
        Operator::In => Test::In { values: list_values(column, &filter.value)?, negated: false },
        Operator::Nin => Test::In { values: list_values(column, &filter.value)?, negated: true },
        Operator::Like => Test::Contains { texts: vec![search_text(column, &filter.value)?], fold_case: false },
        Operator::Ilike => Test::Contains { texts: vec![search_text(column, &filter.value)?], fold_case: true },
        Operator::Eq => match one_value(column, &filter.value).map_err(|error| spelled(error, column, &filter.value))? {
            Value::Null => Test::IsNull,
            value => Test::Compare(Comparison::Equal, value),
        },
        Operator::Neq => match one_value(column, &filter.value)? {
            Value::Null => Test::IsNotNull,
            value => Test::Compare(Comparison::NotEqual, value),
        },
        Operator::Gt => Test::Compare(Comparison::Greater, ordered_value(column, &filter.value)?),
        Operator::Gte => Test::Compare(Comparison::GreaterOrEqual, ordered_value(column, &filter.value)?),
        Operator::Lt => Test::Compare(Comparison::Less, ordered_value(column, &filter.value)?),
        Operator::Lte => Test::Compare(Comparison::LessOrEqual, ordered_value(column, &filter.value)?),
    };
    Ok(Predicate { column: index, test })
}

fn filter_value(column: &Column, value: &FilterValue) -> Result<Value> {
    match value {
        FilterValue::Text(text) if text == "null" => Ok(Value::Null),
        FilterValue::Text(text) => parse_filter_text(column, text),
        FilterValue::Json(raw) => column.filter_value_of(raw.get()),
    }
}

fn invalid(column: &Column, message: impl Into<String>) -> Error {
    Error::new(Code::InvalidValue, message).with_field(column.name.clone())
}

/// A value, or null. A list is compared with one of its elements.
fn one_value(column: &Column, value: &FilterValue) -> Result<Value> {
    element(column, filter_value(column, value)?)
}

fn element(column: &Column, value: Value) -> Result<Value> {
    match value {
        Value::TextList(_) => Err(invalid(column, format!("`{}` is a list. Compare it with one element.", column.name))),
        value => Ok(value),
    }
}

fn ordered_value(column: &Column, value: &FilterValue) -> Result<Value> {
    match one_value(column, value)? {
        Value::Null => Err(invalid(column, format!("`{}`: null has no order.", column.name))),
        value => Ok(value),
    }
}

/// The text to search for in a column.
fn search_text(column: &Column, value: &FilterValue) -> Result<String> {
    let text = match value {
        FilterValue::Text(text) => text.clone(),
        FilterValue::Json(raw) => serde_json::from_str(raw.get())
            .map_err(|_| invalid(column, format!("`{}`: like and ilike need a string.", column.name)))?,
    };
    match text.contains('\0') {
        true => Err(invalid(column, "Text cannot hold the NUL character.")),
        false => Ok(text),
    }
}

fn list_values(column: &Column, value: &FilterValue) -> Result<Vec<Value>> {
    let raw_items: Vec<FilterValue> = match value {
        FilterValue::Text(text) => split_list(text).into_iter().map(FilterValue::Text).collect(),
        FilterValue::Json(raw) => match raw.get().trim_start().as_bytes().first() {
            Some(b'[') => serde_json::from_str::<Vec<Box<serde_json::value::RawValue>>>(raw.get())
                .map_err(|error| Error::invalid_request(format!("The list of `{}` is not JSON: {error}.", column.name)))?
                .into_iter()
                .map(FilterValue::Json)
                .collect(),
            Some(b'"') => {
                let text: String = serde_json::from_str(raw.get())
                    .map_err(|error| Error::invalid_request(format!("The list of `{}` is not JSON: {error}.", column.name)))?;
                // The items of a JSON string are strings too, so none of them is null.
                let item = |item: &String| serde_json::value::to_raw_value(item).map(FilterValue::Json);
                split_list(&text).iter().map(item).collect::<Result<_, _>>().map_err(Error::internal)?
            }
            _ => vec![value.clone()],
        },
    };
    if raw_items.len() > LIST_ITEMS_MAX {
        let message = format!("{} take {LIST_ITEMS_MAX} items at most.", Operand::List.operators());
        return Err(Error::invalid_request(message).with_field(column.name.clone()));
    }
    let values: Vec<Value> = raw_items.iter().map(|item| filter_value(column, item)).collect::<Result<_>>()?;
    values.into_iter().map(|value| element(column, value)).collect()
}

/// Splits a comma-separated list. An item in double quotes keeps its commas, and `""` in it means one quote.
fn split_list(text: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut item = String::new();
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                item.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if item.is_empty() => quoted = true,
            ',' if !quoted => items.push(std::mem::take(&mut item)),
            _ => item.push(character),
        }
    }
    items.push(item);
    items
}

/// The error of a value. `priority=gte.2`, a form of other products, gets the right spelling.
fn spelled(error: Error, column: &Column, value: &FilterValue) -> Error {
    let FilterValue::Text(text) = value else { return error };
    // A text may begin like this.
    let Some((name, operand)) = text.split_once('.').filter(|_| column.ty != ColumnType::Text) else { return error };
    if operand.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return error;
    }
    let Ok(operator) = Operator::parse(name) else { return error };
    let operand = match operator.operand() {
        Operand::List => operand.strip_prefix('(').and_then(|items| items.strip_suffix(')')).unwrap_or(operand),
        Operand::Ordered | Operand::Value => operand,
        Operand::Text | Operand::Nothing => return error,
    };
    match operator.applies_to(column.ty) {
        true => {
            let (field, value) = (column.name.clone(), excerpt(operand).into_owned());
            error.with_hint(Hint::Filter { field, operator: operator.name(), value })
        }
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_items_may_be_quoted() {
        assert_eq!(split_list("a,b"), ["a", "b"]);
        assert_eq!(split_list(r#""a,b",c"#), ["a,b", "c"]);
        assert_eq!(split_list(r#""say ""hi""",x"#), [r#"say "hi""#, "x"]);
        assert_eq!(split_list(""), [""]);
    }
}

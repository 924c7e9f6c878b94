//! Evaluates conditions on rows in memory, with the same meaning as in SQL.

use std::cmp::Ordering;

use blockbase_schema::json::Members;
use blockbase_schema::{Object, Result, Value, fold};

use super::{Condition, Quantifier, Related};
use crate::predicate::{Comparison, Test};

/// A row's values, in the order of `Object::columns`.
pub type Image = Vec<Value>;

/// The source of related rows for conditions in memory.
pub trait RelatedRows {
    /// The rows that a relation leads to from `row`, within [`Related::scope`].
    ///
    /// # Errors
    /// If they cannot be found.
    fn rows(&mut self, related: &Related, row: &[Value]) -> Result<Vec<Image>>;
}

/// Reads a record's JSON. A column that it does not name is null.
///
/// # Errors
/// `invalid_value` for a value that is not of the column's type.
pub fn image(object: &Object, members: &Members) -> Result<Image> {
    let cell = |name: &str| members.0.iter().find(|(known, _)| known == name).map(|(_, raw)| raw.get());
    object.columns.iter().map(|column| cell(&column.name).map_or(Ok(Value::Null), |raw| column.stored_value_of(raw))).collect()
}

impl Condition {
    /// Whether the condition is true for a row.
    ///
    /// On a null value, these tests are true: `neq`, `nin` unless null is among its values, `is_null`, and `in` if null is among
    /// its values. All other tests of a null value are false.
    ///
    /// # Errors
    /// The errors of [`RelatedRows::rows`].
    pub fn holds<R: RelatedRows>(&self, row: &[Value], related: &mut R) -> Result<bool> {
        Ok(match self {
            Condition::Test(predicate) => meets(&predicate.test, row.get(predicate.column).unwrap_or(&Value::Null)),
            Condition::Not(predicate) => !meets(&predicate.test, row.get(predicate.column).unwrap_or(&Value::Null)),
            Condition::All(parts) => {
                for part in parts {
                    if !part.holds(row, related)? {
                        return Ok(false);
                    }
                }
                true
            }
            Condition::Any(parts) => {
                for part in parts {
                    if part.holds(row, related)? {
                        return Ok(true);
                    }
                }
                false
            }
            Condition::Related(one) => {
                let rows = related.rows(one, row)?;
                match one.quantifier {
                    Quantifier::One => match rows.first() {
                        Some(row) => one.condition.holds(row, related)?,
                        None => one.condition.holds_on_nothing(),
                    },
                    Quantifier::Some => one.holds_for_any(&rows, related)?,
                    Quantifier::None => !one.holds_for_any(&rows, related)?,
                }
            }
        })
    }
}

impl Related {
    fn holds_for_any<R: RelatedRows>(&self, rows: &[Image], related: &mut R) -> Result<bool> {
        for row in rows {
            if self.condition.holds(row, related)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn meets(test: &Test, value: &Value) -> bool {
    match (test, value) {
        (test, Value::Null) => test.holds_on_null(),
        (Test::IsNull, _) => false,
        (Test::IsNotNull, _) => true,
        (Test::Compare(comparison, wanted), value) => compares(*comparison, value, wanted),
        (Test::In { values, negated }, value) => values.iter().any(|wanted| equals(value, wanted)) != *negated,
        (Test::Contains { texts, fold_case }, Value::TextList(items)) => {
            texts.iter().all(|text| items.iter().any(|item| contains(item, text, *fold_case)))
        }
        (Test::Contains { texts, fold_case }, Value::Text(value)) => texts.iter().all(|text| contains(value, text, *fold_case)),
        (Test::Contains { .. }, _) => false,
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
        (value, wanted) => order(value, wanted) == Some(Ordering::Equal),
    }
}

fn compares(comparison: Comparison, value: &Value, wanted: &Value) -> bool {
    let order = || order(value, wanted);
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
pub(crate) fn order(value: &Value, wanted: &Value) -> Option<Ordering> {
    match (value, wanted) {
        (Value::Text(one), Value::Text(two)) => Some(one.cmp(two)),
        (Value::Integer(one), Value::Integer(two)) => Some(one.cmp(two)),
        (Value::Decimal { scaled: one, scale }, Value::Decimal { scaled: two, scale: other }) if scale == other => {
            Some(one.cmp(two))
        }
        // The wanted number lies between `below` and the next value.
        (Value::Decimal { scaled, scale }, Value::DecimalBetween { below, scale: other }) if scale == other => {
            Some(if scaled <= below { Ordering::Less } else { Ordering::Greater })
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

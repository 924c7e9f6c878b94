//! Tests a row's own values in memory, with the same meaning as in SQL.

use std::cmp::Ordering;

use blockbase_schema::json::Members;
use blockbase_schema::{Object, Result, Value, fold};

use super::Condition;
use crate::predicate::{Comparison, Test};

/// A row's values, in the order of `Object::columns`.
pub type Image = Vec<Value>;

/// Reads a record's JSON. A column that it does not name is null.
///
/// # Errors
/// `invalid_value` for a value that is not of the column's type.
pub fn image(object: &Object, members: &Members) -> Result<Image> {
    let cell = |name: &str| members.0.iter().find(|(known, _)| known == name).map(|(_, raw)| raw.get());
    object.columns.iter().map(|column| cell(&column.name).map_or(Ok(Value::Null), |raw| column.stored_value_of(raw))).collect()
}

impl Condition {
    /// Decides the tests of the row's own columns by its values, which are in the order of `Object::columns`. Returns the
    /// conditions on related rows, which the caller still has to test. If none of them matters, the result is
    /// [`Condition::TRUE`] or [`Condition::FALSE`].
    ///
    /// On a null value, these tests are true: `neq`, `nin` unless null is among its values, `is_null`, and `in` if null is among
    /// its values. All other tests of a null value are false.
    pub fn left_for(self, row: &[Value]) -> Condition {
        let decided = |is_met: bool| if is_met { Condition::TRUE } else { Condition::FALSE };
        let value = |column: usize| row.get(column).unwrap_or(&Value::Null);
        match self {
            Condition::Test(predicate) => decided(meets(&predicate.test, value(predicate.column))),
            Condition::Not(predicate) => decided(!meets(&predicate.test, value(predicate.column))),
            Condition::All(parts) => Condition::all(parts.into_iter().map(|part| part.left_for(row)).collect()),
            Condition::Any(parts) => Condition::any(parts.into_iter().map(|part| part.left_for(row)).collect()),
            related @ Condition::Related(_) => related,
        }
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

//! Tests a row's own values in memory, with the same meaning as in SQL.

use blockbase_schema::json::Members;
use blockbase_schema::{Object, Value};

use super::Condition;

/// A row's values, in the order of `Object::columns`.
pub type Image = Vec<Value>;

/// Reads a record's JSON, in the order of `Object::columns`. A value is `None` if the JSON does not name its column, or if it is
/// not of the column's type. The column may have had another type when the JSON was written.
pub fn image(object: &Object, members: &Members) -> Vec<Option<Value>> {
    let cell = |name: &str| members.0.iter().find(|(known, _)| known == name).map(|(_, raw)| raw.get());
    object.columns.iter().map(|column| cell(&column.name).and_then(|raw| column.stored_value_of(raw).ok())).collect()
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
            Condition::Test(predicate) => decided(predicate.test.holds_for(value(predicate.column))),
            Condition::Not(predicate) => decided(!predicate.test.holds_for(value(predicate.column))),
            Condition::All(parts) => Condition::all(parts.into_iter().map(|part| part.left_for(row)).collect()),
            Condition::Any(parts) => Condition::any(parts.into_iter().map(|part| part.left_for(row)).collect()),
            related @ Condition::Related(_) => related,
        }
    }
}

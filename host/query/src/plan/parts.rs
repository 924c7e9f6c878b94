//! The parts of a list before and after a position, for pages by cursors.

use std::cmp::Ordering;

use blockbase_schema::{Value, system};
use serde_json::json;
use serde_json::value::RawValue;

use super::list::ListPlan;
use crate::access::Scope;
use crate::condition::order_of_values;
use crate::cursor::{End, Key, Part, Position, Range, ranges};
use crate::dialect::Dialect;

impl ListPlan {
    /// Reads a position from a JSON array of values, in the form in which records show them. `None` if they do not fit the keys of the
    /// order.
    pub fn position(&self, text: &str) -> Option<Position> {
        let values: Vec<&RawValue> = serde_json::from_str(text).ok()?;
        if values.len() != self.order.len() {
            return None;
        }
        let values = self.order.iter().zip(values).map(|((index, _), raw)| {
            let column = &self.object.columns[*index];
            let value = column.stored_value_of(raw.get()).ok()?;
            (value != Value::Null || column.name != system::ID).then_some(value)
        });
        values.collect::<Option<Vec<Value>>>().map(Position)
    }

    /// The order of two positions in the list. Null is greater than all values.
    pub fn compare(&self, one: &Position, two: &Position) -> Ordering {
        let keys = one.0.iter().zip(&two.0).zip(&self.order);
        let orders = keys.map(|((one, two), (_, descends))| {
            let order = match (one, two) {
                (Value::Null, Value::Null) => Ordering::Equal,
                (Value::Null, _) => Ordering::Greater,
                (_, Value::Null) => Ordering::Less,
                (one, two) => order_of_values(one, two).unwrap_or(Ordering::Equal),
            };
            if *descends { order.reverse() } else { order }
        });
        orders.fold(Ordering::Equal, Ordering::then)
    }

    /// The parts of the list beyond a position, or the whole list, read from `end`. Rows of a part come before those of the next one.
    pub fn parts(&self, dialect: Dialect, end: End, from: Option<&Position>) -> Vec<Part> {
        self.parts_beyond(dialect, end == End::Last, from, false)
    }

    /// The parts of the list on the other side of a position, together with the row at the position.
    pub fn parts_behind(&self, dialect: Dialect, end: End, from: &Position) -> Vec<Part> {
        self.parts_beyond(dialect, end == End::First, Some(from), true)
    }

    fn parts_beyond(&self, dialect: Dialect, is_reversed: bool, from: Option<&Position>, or_equal: bool) -> Vec<Part> {
        let Some(position) = from else { return vec![Part { is_reversed, beyond: None }] };
        let keys = self.order.iter().map(|(index, descends)| {
            let column = &self.object.columns[*index];
            Key { descends: *descends != is_reversed, is_nullable: !column.required && column.name != system::ID }
        });
        let ranges = ranges(&keys.collect::<Vec<_>>(), &position.0, or_equal);
        let part = |ranges: Vec<Range>| Part { is_reversed, beyond: Some((position.clone(), ranges)) };
        match self.is_led_by_index(dialect) {
            true => ranges.into_iter().map(|range| part(vec![range])).collect(),
            // Without an index, each statement reads all rows.
            false => vec![part(ranges)],
        }
    }

    /// Whether an index leads to the values of the first key.
    fn is_led_by_index(&self, dialect: Dialect) -> bool {
        let Some((index, _)) = self.order.first() else { return false };
        let column = &self.object.columns[*index];
        let is_masked = match &self.selection.scope {
            Scope::Seen(seen) => seen.readable(*index).is_some(),
            Scope::All | Scope::Own(_) | Scope::Where(_) | Scope::Nothing => false,
        };
        // On SQLite, only declared indexes have an order in which nulls come last.
        let has_plain_order = dialect == Dialect::Postgres || column.required;
        let is_plain = column.unique || column.reference.is_some() || column.name == system::CREATED_BY;
        let is_of_system = column.name == system::ID || column.name == system::CREATED_AT;
        !is_masked && (is_of_system || column.is_sorted || (is_plain && has_plain_order))
    }

    /// The properties of the order on which the meaning of a position depends: for each key its column, type and direction.
    pub fn order_keys(&self) -> serde_json::Value {
        let keys = self.order.iter().map(|(index, descends)| {
            let column = &self.object.columns[*index];
            json!([column.name, column.catalogue_key(), format!("{:?}", column.ty), column.required, descends])
        });
        keys.collect()
    }
}

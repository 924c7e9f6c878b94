//! The parts of a list before and after a position, for pages by cursors.

use std::cmp::Ordering;
use std::sync::Arc;

use blockbase_schema::{Column, ColumnType, Value, system};
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
        let Some(position) = from else { return vec![Part { is_reversed, ..Part::default() }] };
        let keys = self.order.iter().map(|(index, descends)| {
            let column = &self.object.columns[*index];
            Key { descends: *descends != is_reversed, is_nullable: !column.required && column.name != system::ID }
        });
        let keys: Vec<Key> = keys.collect();
        let led = self.keys_led_by_index(dialect);
        // The nearest ranges have the most equal keys. An index leads to all of these together, but not to each of them, so one
        // statement reads them.
        let (merged, split): (Vec<Range>, Vec<Range>) =
            ranges(&keys, &position.0, or_equal).into_iter().partition(|range| range.equal >= led);
        // A position may have long values, and there may be many parts.
        let shared = Arc::new(position.clone());
        let part = |ranges, led_keys| Part { is_reversed, beyond: Some((Arc::clone(&shared), ranges)), led_keys };
        let split = split.into_iter().map(|range| {
            let same = keys[range.equal..led].iter().take_while(|key| key.descends == keys[range.equal].descends);
            part(vec![range], range.equal + same.count())
        });
        let merged = (!merged.is_empty()).then(|| part(merged, 0));
        merged.into_iter().chain(split).collect()
    }

    /// The number of keys whose order an index has, from the first key.
    fn keys_led_by_index(&self, dialect: Dialect) -> usize {
        let names: Vec<&str> = self.order.iter().map(|(index, _)| self.object.columns[*index].name.as_str()).collect();
        let in_common = |index: &[&str]| index.iter().zip(&names).take_while(|(one, two)| one == two).count();
        let definition = &self.object.definition;
        let mut led = in_common(&[system::ID]).max(in_common(&[system::CREATED_AT, system::ID]));
        for field in definition.fields.iter().filter(|field| field.indexed) {
            led = led.max(in_common(&[field.name.as_str(), system::ID]));
        }
        for group in &definition.indexes {
            let index: Vec<&str> = group.iter().map(String::as_str).chain([system::ID]).collect();
            led = led.max(in_common(&index));
        }
        let first = self.order.first().map(|(index, _)| &self.object.columns[*index]);
        // On SQLite, only declared indexes have an order in which nulls come last.
        let is_plain = |column: &Column| column.unique && (dialect == Dialect::Postgres || column.required);
        led = led.max(usize::from(first.is_some_and(is_plain)));
        let Scope::Seen(seen) = &self.selection.scope else { return led };
        // An index does not have the order of cells that are hidden in some rows.
        self.order.iter().take(led).take_while(|(index, _)| seen.readable(*index).is_none()).count()
    }

    /// The properties of the order on which the meaning of a position depends: for each key its column, type and direction.
    pub fn order_keys(&self) -> serde_json::Value {
        let keys = self.order.iter().map(|(index, descends)| {
            let column = &self.object.columns[*index];
            let scale = match column.ty {
                ColumnType::Decimal { scale } => Some(scale),
                _ => None,
            };
            json!([column.catalogue_key(), column.kind.name(), scale, descends])
        });
        keys.collect()
    }
}

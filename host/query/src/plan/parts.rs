//! The parts of a list before and after a position, for pages by cursors.

use std::cmp::Ordering;
use std::sync::Arc;

use blockbase_schema::{Column, ColumnType, Value, system};
use serde_json::json;
use serde_json::value::RawValue;

use super::list::ListPlan;
use crate::access::Scope;
use crate::cursor::{End, Key, Part, Position, Span, spans_before, spans_between, spans_beyond};
use crate::dialect::Dialect;
use crate::predicate::order_of_values;

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

    /// The first key of which two positions have different values, and their order in the list. `None` if they are equal. Null is
    /// greater than all values.
    pub(crate) fn difference(&self, one: &Position, two: &Position) -> Option<(usize, Ordering)> {
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
        orders.enumerate().find(|(_, order)| order.is_ne())
    }

    /// The first key of which two positions have different values. `None` if the second one is not beyond the first one for a
    /// reader who reads the list from `end`.
    fn beyond_by(&self, end: End, from: &Position, until: &Position) -> Option<usize> {
        let beyond = if end == End::First { Ordering::Less } else { Ordering::Greater };
        self.difference(from, until).filter(|(_, order)| *order == beyond).map(|(key, _)| key)
    }

    /// The parts of the list between two positions, read from `end`. Reading begins beyond `from`, or at the end, and stops in
    /// front of `until`, or at the other end. Rows of a part come before those of the next one. There are no parts if `until`
    /// is not beyond `from`.
    pub fn parts(&self, dialect: Dialect, end: End, from: Option<&Position>, until: Option<&Position>) -> Vec<Part> {
        let keys = self.keys_from(end);
        let spans = match (from, until) {
            (None, None) => return vec![Part { is_reversed: end == End::Last, ..Part::default() }],
            (Some(from), None) => spans_beyond(&keys, &from.0, false),
            (None, Some(until)) => spans_before(&keys, &until.0),
            (Some(from), Some(until)) => match self.beyond_by(end, from, until) {
                Some(differs) => spans_between(&keys, &from.0, &until.0, differs),
                None => return Vec::new(),
            },
        };
        self.parts_of(dialect, end, &spans, from, until)
    }

    /// The parts of the list on the other side of a position, together with the row at the position.
    pub fn parts_behind(&self, dialect: Dialect, end: End, from: &Position) -> Vec<Part> {
        let end = end.other();
        let spans = spans_beyond(&self.keys_from(end), &from.0, true);
        self.parts_of(dialect, end, &spans, Some(from), None)
    }

    /// The parts of the list that follow after the rows between two positions, read in the same direction. If there can be no
    /// rows between them, these are the rows beyond `from`.
    pub fn parts_ahead(&self, dialect: Dialect, end: End, from: Option<&Position>, until: &Position) -> Vec<Part> {
        match from {
            Some(from) if self.beyond_by(end, from, until).is_none() => self.parts(dialect, end, Some(from), None),
            _ => self.parts_behind(dialect, end.other(), until),
        }
    }

    /// The keys of the order, for a reader who reads the list from `end`.
    fn keys_from(&self, end: End) -> Vec<Key> {
        let keys = self.order.iter().map(|(index, descends)| {
            let column = &self.object.columns[*index];
            let is_nullable = !column.required && column.name != system::ID;
            Key { descends: *descends != (end == End::Last), is_nullable }
        });
        keys.collect()
    }

    fn parts_of(
        &self,
        dialect: Dialect,
        end: End,
        spans: &[Span],
        from: Option<&Position>,
        until: Option<&Position>,
    ) -> Vec<Part> {
        let led = self.keys_led_by_index(dialect);
        // A position may have long values, and there may be many parts.
        let [from, until] = [from, until].map(|position| position.cloned().map(Arc::new));
        // The spans next to a position have the most equal keys. An index leads to all of these together, but not to each of
        // them, so one statement reads them.
        let groups = spans.chunk_by(|one, two| one.equal_keys() >= led && two.equal_keys() >= led);
        let parts = groups.map(|group| {
            let equal = group.iter().map(|span| span.equal_keys()).min().unwrap_or(0);
            let rest = self.order.get(equal..led).unwrap_or_default();
            let same = rest.iter().take_while(|(_, descends)| *descends == rest[0].1).count();
            let (of_from, of_until): (Vec<_>, Vec<_>) = group.iter().map(|span| span.sides()).unzip();
            Part {
                is_reversed: end == End::Last,
                spans: group.to_vec(),
                from: from.clone().filter(|_| of_from.iter().any(Option::is_some)),
                until: until.clone().filter(|_| of_until.iter().any(Option::is_some)),
                led_keys: if equal < led { equal + same } else { 0 },
            }
        });
        parts.collect()
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

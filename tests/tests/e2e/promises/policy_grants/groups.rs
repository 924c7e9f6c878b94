//! The reference for aggregates of groups. A cell that a caller may not read counts as null.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use super::State;
use super::grants::{Caller, View};
use crate::promises::conditions::cells::Cell;
use crate::promises::conditions::model::{Column, Everything, Object, Place, Row, World};

/// Functions for groups of records.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Groups {
    /// The fields, with the periods of moments: `kind`, or `created_at:month`.
    pub(super) by: Vec<String>,
    /// The functions, with their fields: `count`, or `sum:amount`.
    pub(super) functions: Vec<String>,
    /// A condition on the keys.
    pub(super) having: Option<Value>,
}

/// The field that a function computes over. `count` may have none.
fn field_of_function(function: &str) -> Option<&str> {
    function.split_once(':').map(|(_, field)| field)
}

/// The field of a key, without its period.
fn field_of_key(key: &str) -> &str {
    key.split_once(':').map_or(key, |(field, _)| field)
}

impl Groups {
    /// The fields that the functions and the groups name.
    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        let of_groups = self.by.iter().map(|key| field_of_key(key));
        of_groups.chain(self.functions.iter().filter_map(|function| field_of_function(function)))
    }

    /// The keys of the results: those of the groups, then those of the functions.
    pub(super) fn keys(&self) -> Vec<String> {
        self.by.iter().cloned().chain(self.functions.iter().map(|function| function.replace(':', "_"))).collect()
    }

    /// The types of the keys.
    fn kinds(&self, object: &Object) -> Vec<&'static str> {
        let of_group = |key: &String| {
            let column = object.columns.iter().find(|column| column.name == field_of_key(key));
            column.expect("a column").kind
        };
        let of_function = |function: &String| match function.split_once(':') {
            None | Some(("count", _)) => "big_integer",
            Some(("avg", _)) => "float",
            Some(_) => "integer",
        };
        self.by.iter().map(of_group).chain(self.functions.iter().map(of_function)).collect()
    }

    /// The groups of the found rows, in their order, as the response shows them.
    pub(super) fn of(
        &self,
        (state, caller, view): (&State, &Caller, &View<'_>),
        object: usize,
        found: &[&Row],
        sort: &[String],
    ) -> Vec<Value> {
        let names = self.keys();
        let kinds = self.kinds(&state.world.objects[object]);
        let columns = names.iter().zip(&kinds).map(|(name, &kind)| Column { name: name.clone(), kind });
        let objects = vec![Object { name: "groups".to_owned(), columns: columns.collect() }];
        let world = World { objects, rows: vec![self.rows(view, object, found)], ..World::default() };
        let mut rows: Vec<&Row> = world.rows[0].iter().collect();
        if let Some(having) = &self.having {
            let condition = world.read(&caller.reader, 0, having).expect("a valid condition").0;
            rows.retain(|row| world.holds(&Everything, &condition, 0, Place::Row(row)) == Some(true));
        }
        let compared = |name: &str, one: &Row, other: &Row| {
            let place = names.iter().position(|known| known == name).expect("a key");
            compared(kinds[place], &one.values[name], &other.values[name])
        };
        rows.sort_by(|one, other| {
            let asked = sort.iter().map(|key| match key.strip_prefix('-') {
                Some(name) => compared(name, one, other).reverse(),
                None => compared(key, one, other),
            });
            let by_keys = self.by.iter().map(|key| compared(key, one, other));
            asked.chain(by_keys).fold(Ordering::Equal, Ordering::then)
        });
        let shown = |row: &Row| {
            let group: Map<String, Value> = self.by.iter().map(|key| (key.clone(), row.values[key].clone())).collect();
            let mut shown = row.values.clone();
            shown.retain(|name, _| !group.contains_key(name));
            shown.insert("group".to_owned(), Value::Object(group));
            Value::Object(shown)
        };
        rows.into_iter().map(shown).collect()
    }

    /// The groups as rows of an object whose columns are the keys.
    fn rows(&self, view: &View<'_>, object: usize, found: &[&Row]) -> Vec<Row> {
        let mut groups: Vec<(Vec<Value>, Vec<&Row>)> = Vec::new();
        // Without fields there is one group, also of no rows.
        if self.by.is_empty() {
            groups.push((Vec::new(), Vec::new()));
        }
        for &row in found {
            let keys: Vec<Value> = self.by.iter().map(|key| value_of_key(view, object, row, key)).collect();
            match groups.iter_mut().find(|(known, _)| *known == keys) {
                Some((_, members)) => members.push(row),
                None => groups.push((keys, vec![row])),
            }
        }
        let row = |(number, (keys, members)): (usize, (Vec<Value>, Vec<&Row>))| {
            let results = self.functions.iter().map(|function| result(view, object, &members, function));
            let values = self.keys().into_iter().zip(keys.into_iter().chain(results)).collect();
            Row { id: number.to_string(), maker: 0, values }
        };
        groups.into_iter().enumerate().map(row).collect()
    }

    /// Groups that lack one part of these.
    pub(super) fn smaller(&self) -> Vec<Groups> {
        let mut all = vec![Groups { having: None, ..self.clone() }];
        let mut without = |change: &dyn Fn(&mut Groups)| {
            let mut groups = Groups { having: None, ..self.clone() };
            change(&mut groups);
            // One function without groups has another form.
            if !groups.functions.is_empty() && (!groups.by.is_empty() || groups.functions.len() > 1) {
                all.push(groups);
            }
        };
        for place in 0..self.by.len() {
            without(&|groups| drop(groups.by.remove(place)));
        }
        for place in 0..self.functions.len() {
            without(&|groups| drop(groups.functions.remove(place)));
        }
        all
    }
}

/// The value of a row for a key of a group. That of a period is its first instant, in UTC.
fn value_of_key(view: &View<'_>, object: usize, row: &Row, key: &str) -> Value {
    let value = view.value(object, row, field_of_key(key));
    let (Some((_, period)), Some(moment)) = (key.split_once(':'), value.as_str()) else { return value.clone() };
    json!(match period {
        "year" => format!("{}-01-01T00:00:00.000Z", &moment[..4]),
        "month" => format!("{}-01T00:00:00.000Z", &moment[..7]),
        "day" => format!("{}T00:00:00.000Z", &moment[..10]),
        "hour" => format!("{}:00:00.000Z", &moment[..13]),
        other => panic!("no period {other}"),
    })
}

/// The result of a function over the rows of a group.
fn result(view: &View<'_>, object: usize, members: &[&Row], function: &str) -> Value {
    let Some((name, field)) = function.split_once(':') else { return json!(members.len()) };
    let values: Vec<&Value> = members.iter().map(|row| view.value(object, row, field)).filter(|value| !value.is_null()).collect();
    if name == "count" {
        return json!(values.len());
    }
    let numbers: Vec<i64> = values.into_iter().filter_map(Value::as_i64).collect();
    let sum: i64 = numbers.iter().sum();
    match name {
        _ if numbers.is_empty() => Value::Null,
        "sum" => json!(sum),
        "avg" => json!(sum as f64 / numbers.len() as f64),
        "min" => json!(numbers.iter().min()),
        "max" => json!(numbers.iter().max()),
        other => panic!("no function {other}"),
    }
}

/// The ascending order of two values of a key. Nulls come last.
fn compared(kind: &str, one: &Value, other: &Value) -> Ordering {
    let cell = |value: &Value| Cell::read(kind, value).expect("a value of the key's type");
    match (cell(one), cell(other)) {
        (Cell::Null, Cell::Null) => Ordering::Equal,
        (Cell::Null, _) => Ordering::Greater,
        (_, Cell::Null) => Ordering::Less,
        (one, other) => one.order(&other).expect("values that have an order"),
    }
}

/// The same document with all numbers as doubles. One text of a mean is `3`, and another is `3.0`.
pub(super) fn plain(json: &Value) -> Value {
    match json {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), plain(value))).collect(),
        other => other.clone(),
    }
}

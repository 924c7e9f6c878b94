//! Conditions in the form of GraphQL: every test names its operator, and every relation is nested.

use serde_json::{Map, Value, json};

use super::model::{LEVELS_MAX, OPERATORS, Operator, World};

/// The same condition for GraphQL's typed argument. `None` if the argument cannot express it: for example if it would have too
/// many levels, if a variable were the value of a type that is not text, or if an object would need the same key twice.
pub(in crate::promises) fn typed(world: &World, object: usize, condition: &Value) -> Option<Value> {
    condition_at(world, object, condition, 1)
}

fn condition_at(world: &World, object: usize, condition: &Value, level: usize) -> Option<Value> {
    if level > LEVELS_MAX {
        return None;
    }
    let mut typed = Map::new();
    for (key, value) in condition.as_object()? {
        let (key, value) = match key.as_str() {
            "_and" | "_or" => {
                let parts = value.as_array()?.iter().map(|part| condition_at(world, object, part, level + 1));
                (key.clone(), Value::Array(parts.collect::<Option<_>>()?))
            }
            "_not" => (key.clone(), condition_at(world, object, value, level + 1)?),
            _ => member(world, object, key, value, level + 1)?,
        };
        if typed.insert(key, value).is_some() {
            return None;
        }
    }
    Some(Value::Object(typed))
}

fn member(world: &World, object: usize, name: &str, value: &Value, level: usize) -> Option<(String, Value)> {
    let (first, rest) = match name.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (name, None),
    };
    if let Some(column) = world.objects[object].columns.iter().find(|column| column.name == first) {
        return Some((first.to_owned(), tests(column.kind, value)?)).filter(|_| level <= LEVELS_MAX);
    }
    let end = world.ends(object).into_iter().find(|end| end.key == first)?;
    let below = match rest {
        Some(rest) => {
            let (key, value) = member(world, end.object, rest, value, level + 1)?;
            json!({ key: value })
        }
        None if end.is_single => condition_at(world, end.object, value, level)?,
        None => {
            let mut parts = Map::new();
            for (quantifier, part) in value.as_object()? {
                parts.insert(quantifier.clone(), condition_at(world, end.object, part, level + 1)?);
            }
            Value::Object(parts)
        }
    };
    Some((first.to_owned(), below)).filter(|_| level <= LEVELS_MAX)
}

/// The tests of one column, each by the main name of its operator.
fn tests(kind: &str, value: &Value) -> Option<Value> {
    let is_text =
        !matches!(kind, "integer" | "big_integer" | "decimal" | "float" | "boolean" | "currency" | "percentage" | "rating");
    let mut tests = Map::new();
    let Some(operators) = value.as_object() else { return operand(is_text, value).then(|| json!({ "eq": value })) };
    for (name, value) in operators {
        let known = OPERATORS.iter().find(|(_, names)| names.contains(&name.to_ascii_lowercase().as_str()))?;
        let fits = match known.0 {
            Operator::IsNull | Operator::IsNotNull => true,
            _ => operand(is_text, value),
        };
        if !fits || tests.insert(known.1[0].to_owned(), value.clone()).is_some() {
            return None;
        }
    }
    Some(Value::Object(tests))
}

/// Whether GraphQL's type accepts a value. REST also accepts numbers as texts, and variables are texts.
fn operand(is_text: bool, value: &Value) -> bool {
    let fits = |value: &Value| value.is_null() || value.is_string() == is_text;
    match value {
        Value::Array(items) => items.iter().all(fits),
        value => fits(value),
    }
}

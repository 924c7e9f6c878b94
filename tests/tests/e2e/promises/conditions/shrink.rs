//! Makes a condition smaller as long as it still shows the fault.

use serde_json::{Map, Value};

/// The maximum number of smaller conditions that are tried.
const TRIES_MAX: usize = 400;

/// Conditions that are a part of this condition, or lack a part of it. The smallest ones come first. Some are malformed.
fn smaller(value: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                match (key.as_str(), inner) {
                    ("_not", inner) => all.push(inner.clone()),
                    ("_and" | "_or", Value::Array(items)) => all.extend(items.iter().cloned()),
                    _ => {}
                }
            }
            for key in map.keys() {
                all.push(
                    map.iter().filter(|(other, _)| *other != key).map(|(key, value)| (key.clone(), value.clone())).collect(),
                );
            }
            for (key, inner) in map {
                let replaced = |with: Value| -> Map<String, Value> {
                    let pairs =
                        map.iter().map(|(other, value)| (other.clone(), if other == key { with.clone() } else { value.clone() }));
                    pairs.collect()
                };
                all.extend(smaller(inner).into_iter().map(|inner| Value::Object(replaced(inner))));
            }
        }
        Value::Array(items) => {
            for place in 0..items.len() {
                let mut fewer = items.clone();
                fewer.remove(place);
                all.push(Value::Array(fewer));
            }
            for (place, inner) in items.iter().enumerate() {
                for inner in smaller(inner) {
                    let mut changed = items.clone();
                    changed[place] = inner;
                    all.push(Value::Array(changed));
                }
            }
        }
        _ => {}
    }
    all
}

/// The smallest condition that was found and for which `is_wrong` is still true.
pub(in crate::promises) async fn shrunk(condition: &Value, mut is_wrong: impl AsyncFnMut(&Value) -> bool) -> Value {
    let mut smallest = condition.clone();
    let mut tries = 0;
    'again: while tries < TRIES_MAX {
        for candidate in smaller(&smallest) {
            tries += 1;
            if is_wrong(&candidate).await {
                smallest = candidate;
                continue 'again;
            }
        }
        break;
    }
    smallest
}

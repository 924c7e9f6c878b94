//! Writes a condition as JSON, in the grammar in which conditions are read.

use blockbase_schema::{Object, Value, json};

use super::{Condition, NamedQuantifier, Quantifier, Related};
use crate::operator::Operand;
use crate::predicate::Predicate;

impl Condition {
    /// The condition on rows of `object` as JSON. Reading it again gives the same condition.
    pub fn to_json(&self, object: &Object) -> String {
        let mut out = Vec::new();
        write(&mut out, self, object);
        String::from_utf8(out).unwrap_or_default()
    }
}

fn write(out: &mut Vec<u8>, condition: &Condition, object: &Object) {
    match condition {
        Condition::Test(predicate) => write_test(out, predicate, object),
        Condition::Not(predicate) => {
            out.extend_from_slice(b"{\"_not\":");
            write_test(out, predicate, object);
            out.push(b'}');
        }
        Condition::All(parts) if parts.is_empty() => out.extend_from_slice(b"{}"),
        Condition::All(parts) => write_parts(out, "_and", parts, object),
        Condition::Any(parts) => write_parts(out, "_or", parts, object),
        Condition::Related(related) => write_related(out, related),
    }
}

fn write_parts(out: &mut Vec<u8>, key: &str, parts: &[Condition], object: &Object) {
    out.extend_from_slice(format!("{{\"{key}\":[").as_bytes());
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, part, object);
    }
    out.extend_from_slice(b"]}");
}

fn write_related(out: &mut Vec<u8>, related: &Related) {
    out.push(b'{');
    json::write_string(out, &related.key);
    out.push(b':');
    let quantifier = match related.quantifier {
        Quantifier::One => None,
        Quantifier::Some => Some(NamedQuantifier::Some.name()),
        Quantifier::None => Some(NamedQuantifier::None.name()),
    };
    if let Some(name) = quantifier {
        out.extend_from_slice(format!("{{\"{name}\":").as_bytes());
    }
    write(out, &related.condition, &related.object);
    out.extend_from_slice(if quantifier.is_some() { b"}}" } else { b"}" });
}

fn write_test(out: &mut Vec<u8>, predicate: &Predicate, object: &Object) {
    let column = &object.columns[predicate.column];
    let operator = predicate.test.operator();
    let values: Vec<Vec<u8>> = predicate.test.operands().iter().map(|value| written(value)).collect();
    let operands = match operator.operand() {
        Operand::Nothing => vec![b"true".to_vec()],
        Operand::List => vec![[b"[", values.join(&b',').as_slice(), b"]"].concat()],
        Operand::Ordered | Operand::Value | Operand::Text => values,
    };
    // A JSON object can have each operator only once, so several texts become several tests.
    let is_list = operands.len() > 1;
    out.extend_from_slice(if is_list { b"{\"_and\":[" } else { b"" });
    for (index, operand) in operands.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.push(b'{');
        json::write_string(out, &column.name);
        out.extend_from_slice(format!(":{{\"{}\":", operator.name()).as_bytes());
        out.extend_from_slice(operand);
        out.extend_from_slice(b"}}");
    }
    out.extend_from_slice(if is_list { b"]}" } else { b"" });
}

/// A value as an operand. A text that begins with `$` gets a second `$`, because it would be read as a variable.
fn written(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::Text(text) if text.starts_with('$') => json::write_string(&mut out, &format!("${text}")),
        value => value.write_json(&mut out),
    }
    out
}

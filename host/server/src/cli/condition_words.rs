//! Conditions and lists of fields in words, for the person who is asked to consent to them.

use blockbase_app::condition::{NamedQuantifier, Variable};
use blockbase_app::{Operand, Operator};
use serde_json::{Map, Value};

use super::terminal::inert;

/// A condition as a sentence without a full stop: "`status` is "open" and `owner`'s `team` is …". If the condition cannot be put
/// into words, the result is its JSON.
pub(super) fn said(condition: &Value) -> String {
    members(condition, "").map_or_else(|| inert(&condition.to_string()).into_owned(), |parts| parts.join(AND))
}

/// The fields that a permission with these actions lets a block read and write. `None` for all of them.
pub(super) fn said_fields(fields: &Value, actions: &Value) -> Option<String> {
    let allows = |names: &[&str]| actions.as_array().into_iter().flatten().any(|action| names.iter().any(|name| action == name));
    let side = |name: &str, verb: &str, needed: &[&str]| {
        let is_all = |list: &Value| list.get("except").and_then(Value::as_array).is_some_and(Vec::is_empty);
        let list = fields.get(name).filter(|list| allows(needed) && !is_all(list))?;
        let named = |list: &Value| -> String {
            let names: Vec<String> = list.as_array().into_iter().flatten().map(quoted).collect();
            names.join(", ")
        };
        Some(match list.get("except") {
            Some(except) => format!("{verb} all fields except {}", named(except)),
            // The id can always be read.
            None if list.as_array().is_some_and(Vec::is_empty) && name == "read" => format!("{verb} only `id`"),
            None if list.as_array().is_some_and(Vec::is_empty) => format!("{verb} no field"),
            None => format!("{verb} only {}", named(list)),
        })
    };
    let sides = [side("read", "reads", &["read", "manage"]), side("write", "writes", &["create", "update", "manage"])];
    let said: Vec<String> = sides.into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join(" and "))
}

fn quoted(name: &Value) -> String {
    format!("`{}`", inert(name.as_str().unwrap_or_default()))
}

const AND: &str = " and ";
const OR: &str = " or ";
const ANYTHING: &str = "anything holds";
const NOTHING: &str = "nothing holds";

/// The words of a condition's parts, all of which have to be true. There is at least one.
type Parts = Vec<String>;

/// The members of an object. `path` names the relations that lead to the object.
fn members(condition: &Value, path: &str) -> Option<Parts> {
    let parts = condition.as_object()?.iter().map(|(key, value)| member(key, value, path)).collect::<Option<Vec<Parts>>>()?;
    Some(all(parts))
}

fn all(parts: Vec<Parts>) -> Parts {
    let parts = parts.concat();
    if parts.is_empty() { vec![ANYTHING.to_owned()] } else { parts }
}

fn member(key: &str, value: &Value, path: &str) -> Option<Parts> {
    let list = || value.as_array()?.iter().map(|part| members(part, path)).collect::<Option<Vec<Parts>>>();
    match key {
        "_and" => list().map(all),
        "_or" => {
            let mut choices = list()?;
            if choices.len() == 1 {
                return choices.pop();
            }
            // Parentheses make clear that "and" within one of the conditions does not connect it with the others.
            let one = |parts: Parts| {
                let words = parts.join(AND);
                if parts.len() > 1 { format!("({words})") } else { words }
            };
            let any: Vec<String> = choices.into_iter().map(one).collect();
            Some(vec![if any.is_empty() { NOTHING.to_owned() } else { format!("({})", any.join(OR)) }])
        }
        "_not" => Some(vec![format!("not ({})", members(value, path)?.join(AND))]),
        _ => {
            let (relations, last) = key.rsplit_once('.').map_or((None, key), |(relations, last)| (Some(relations), last));
            let leading = relations.into_iter().flat_map(|relations| relations.split('.'));
            let path: String = path.to_owned() + &leading.map(|name| format!("`{}`'s ", inert(name))).collect::<String>();
            tested(last, value, &path)
        }
    }
}

/// A field with its tests, or a relation with the condition on the rows that it leads to.
fn tested(name: &str, value: &Value, path: &str) -> Option<Parts> {
    let field = format!("{path}`{}`", inert(name));
    let Some(asked) = value.as_object() else { return Some(vec![test(&field, Operator::DEFAULT, value)]) };
    if let Some(related) = of_rows(&field, asked) {
        return Some(related);
    }
    let tests: Option<Parts> =
        asked.iter().map(|(operator, value)| Some(test(&field, Operator::parse(operator).ok()?, value))).collect();
    match tests {
        Some(tests) if !tests.is_empty() => Some(tests),
        // In all other cases, it is the row of a to-one relation.
        _ => members(value, &format!("{field}'s ")),
    }
}

fn of_rows(field: &str, asked: &Map<String, Value>) -> Option<Parts> {
    let words = |(quantifier, condition): (&String, &Value)| {
        let quantifier = NamedQuantifier::named(quantifier)?;
        Some(format!("{} {field} match ({})", quantifier.words(), members(condition, "")?.join(AND)))
    };
    let all: Parts = asked.iter().map(words).collect::<Option<_>>()?;
    (!all.is_empty()).then_some(all)
}

fn test(field: &str, operator: Operator, value: &Value) -> String {
    let operator = match operator {
        Operator::Eq if value.is_null() => Operator::IsNull,
        Operator::Neq if value.is_null() => Operator::IsNotNull,
        Operator::In if value.as_array().is_some_and(Vec::is_empty) => return NOTHING.to_owned(),
        Operator::Nin if value.as_array().is_some_and(Vec::is_empty) => return ANYTHING.to_owned(),
        other => other,
    };
    let words = operator.words();
    match operator.operand() {
        Operand::Nothing => format!("{field} {words}"),
        Operand::Ordered | Operand::Value | Operand::Text | Operand::List => format!("{field} {words} {}", said_value(value)),
    }
}

fn said_value(value: &Value) -> String {
    match value {
        Value::String(text) => match Variable::named(text) {
            Some(variable) => variable.words().to_owned(),
            // `$$` means a text that begins with `$`.
            None => {
                let text = text.strip_prefix('$').filter(|rest| rest.starts_with('$')).unwrap_or(text);
                inert(&Value::from(text).to_string()).into_owned()
            }
        },
        Value::Array(items) => items.iter().map(said_value).collect::<Vec<String>>().join(", "),
        other => inert(&other.to_string()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_are_said_in_words() {
        for (condition, words) in [
            (json!({ "status": "open" }), "`status` is \"open\""),
            (json!({ "amount": { "gte": 10, "lt": 20 } }), "`amount` is at least 10 and `amount` is less than 20"),
            (
                json!({ "_or": [{ "owner_id": "$user.id" }, { "_not": { "state": { "in": ["a", null] } } }] }),
                "(`owner_id` is the caller's id or not (`state` is one of \"a\", null))",
            ),
            (
                json!({ "project.owner": { "name": { "ilike": "an" } } }),
                "`project`'s `owner`'s `name` contains, in any case, \"an\"",
            ),
            (
                json!({ "tasks": { "some": { "done": false }, "none": {} } }),
                "some of `tasks` match (`done` is false) and none of `tasks` match (anything holds)",
            ),
            (json!({ "label": "$$5" }), "`label` is \"$5\""),
            (json!({ "closed_at": null, "due": { "lt": "$today" } }), "`closed_at` is empty and `due` is less than today"),
            (json!({ "_or": [] }), "nothing holds"),
            (json!({ "_or": [{ "a": 1, "b": 2 }, { "c": 3 }] }), "((`a` is 1 and `b` is 2) or `c` is 3)"),
            // So does every other part with several tests.
            (
                json!({ "_or": [{ "a": { "gte": 1, "lt": 5 } }, { "c": 3 }] }),
                "((`a` is at least 1 and `a` is less than 5) or `c` is 3)",
            ),
            (
                json!({ "_or": [{ "project": { "name": "x", "_and": [{ "size": 1 }] } }, { "tags": { "some": {}, "none": { "b": 1 } } }] }),
                "((`project`'s `name` is \"x\" and `project`'s `size` is 1) or (some of `tags` match (anything holds) and none of \
                 `tags` match (`b` is 1)))",
            ),
            (json!({ "_or": [{ "_and": [{ "a": 1 }, { "b": 2 }] }, { "c": 3 }] }), "((`a` is 1 and `b` is 2) or `c` is 3)"),
            (json!({ "_and": [] }), "anything holds"),
            (json!({ "_or": [{ "a": 1 }] }), "`a` is 1"),
            (json!({ "a": { "in": [] } }), "nothing holds"),
            (json!({ "name": "\u{1b}[2J" }), "`name` is \"\\u001b[2J\""),
            (json!({ "a": [1] }), "`a` is 1"),
        ] {
            assert_eq!(said(&condition), words, "{condition}");
        }
    }

    #[test]
    fn lists_of_fields_are_said_in_words() {
        let all = json!(["manage"]);
        assert_eq!(said_fields(&json!(null), &all), None);
        assert_eq!(said_fields(&json!({}), &all), None);
        assert_eq!(said_fields(&json!({ "read": ["a", "b"] }), &all).as_deref(), Some("reads only `a`, `b`"));
        // If none of the actions needs a list, the list is not mentioned.
        assert_eq!(said_fields(&json!({ "read": ["a", "b"] }), &json!(["update", "delete"])), None);
        let both = json!({ "read": { "except": ["c"] }, "write": [] });
        assert_eq!(said_fields(&both, &all).as_deref(), Some("reads all fields except `c` and writes no field"));
        assert_eq!(said_fields(&json!({ "read": [] }), &all).as_deref(), Some("reads only `id`"));
        // An exception of nothing is every field.
        assert_eq!(said_fields(&json!({ "read": { "except": [] }, "write": ["a"] }), &all).as_deref(), Some("writes only `a`"));
    }
}

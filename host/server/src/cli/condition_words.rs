//! Conditions and lists of fields in words, for the person who is asked to consent to them.

use blockbase_app::condition::{NamedQuantifier, Variable};
use blockbase_app::{Operand, Operator};
use serde_json::{Map, Value};

use super::terminal::inert;

/// A condition as a sentence without a full stop: "`status` is "open" and `owner`'s `team` is …". If the condition cannot be put
/// into words, the result is its JSON.
pub(super) fn said(condition: &Value) -> String {
    members(condition, "").unwrap_or_else(|| inert(&condition.to_string()).into_owned())
}

/// The fields that a permission with these actions lets a block read and write. `None` for all of them.
pub(super) fn said_fields(fields: &Value, actions: &Value) -> Option<String> {
    let allows = |names: &[&str]| actions.as_array().into_iter().flatten().any(|action| names.iter().any(|name| action == name));
    let side = |name: &str, verb: &str, needed: &[&str]| {
        let list = fields.get(name).filter(|_| allows(needed))?;
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

const OR: &str = " or ";

/// All members of the object have to be true. `path` names the relations that lead to the object.
fn members(condition: &Value, path: &str) -> Option<String> {
    let parts = condition.as_object()?.iter().map(|(key, value)| member(key, value, path)).collect::<Option<Vec<String>>>()?;
    Some(match parts.is_empty() {
        true => "anything holds".to_owned(),
        false => parts.join(" and "),
    })
}

fn member(key: &str, value: &Value, path: &str) -> Option<String> {
    let list = |word: &str, none: &str| {
        let part = |part: &Value| {
            let words = members(part, path)?;
            // Parentheses make clear that "and" within the part does not connect it with the other parts.
            let has_several = part.as_object().is_some_and(|part| part.len() > 1);
            Some(if has_several && word == OR { format!("({words})") } else { words })
        };
        let parts = value.as_array()?.iter().map(part).collect::<Option<Vec<String>>>()?;
        Some(match parts.as_slice() {
            [] => none.to_owned(),
            [one] => one.clone(),
            several => format!("({})", several.join(word)),
        })
    };
    match key {
        "_and" => list(" and ", "anything holds"),
        "_or" => list(OR, "nothing holds"),
        "_not" => Some(format!("not ({})", members(value, path)?)),
        _ => {
            let (relations, last) = key.rsplit_once('.').map_or((None, key), |(relations, last)| (Some(relations), last));
            let leading = relations.into_iter().flat_map(|relations| relations.split('.'));
            let path: String = path.to_owned() + &leading.map(|name| format!("`{}`'s ", inert(name))).collect::<String>();
            tested(last, value, &path)
        }
    }
}

/// A field with its tests, or a relation with the condition on the rows that it leads to.
fn tested(name: &str, value: &Value, path: &str) -> Option<String> {
    let field = format!("{path}`{}`", inert(name));
    let Some(asked) = value.as_object() else { return Some(test(&field, Operator::DEFAULT, value)) };
    if let Some(related) = of_rows(&field, asked) {
        return Some(related);
    }
    let tests: Option<Vec<String>> =
        asked.iter().map(|(operator, value)| Some(test(&field, Operator::parse(operator).ok()?, value))).collect();
    match tests {
        Some(tests) if !tests.is_empty() => Some(tests.join(" and ")),
        // In all other cases, it is the row of a to-one relation.
        _ => members(value, &format!("{field}'s ")),
    }
}

fn of_rows(field: &str, asked: &Map<String, Value>) -> Option<String> {
    let words = |(quantifier, condition): (&String, &Value)| {
        let quantifier = NamedQuantifier::named(quantifier)?;
        Some(format!("{} {field} match ({})", quantifier.words(), members(condition, "")?))
    };
    let all: Vec<String> = asked.iter().map(words).collect::<Option<_>>()?;
    (!all.is_empty()).then(|| all.join(" and "))
}

fn test(field: &str, operator: Operator, value: &Value) -> String {
    let operator = match operator {
        Operator::Eq if value.is_null() => Operator::IsNull,
        Operator::Neq if value.is_null() => Operator::IsNotNull,
        Operator::In if value.as_array().is_some_and(Vec::is_empty) => return "nothing holds".to_owned(),
        Operator::Nin if value.as_array().is_some_and(Vec::is_empty) => return "anything holds".to_owned(),
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
    }
}

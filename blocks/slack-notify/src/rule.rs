//! The rules: which events are posted.

use serde::Deserialize;
use serde_json::Value;

use crate::template::at;

#[derive(Debug, Deserialize)]
pub struct Rule {
    topic: String,
    when: Option<Condition>,
    pub text: String,
}

#[derive(Debug, Deserialize)]
struct Condition {
    field: String,
    equals: Value,
}

impl Rule {
    pub fn matches(&self, topic: &str, facts: &Value) -> bool {
        let pattern: Vec<&str> = self.topic.split('.').collect();
        let topic: Vec<&str> = topic.split('.').collect();
        is_match(&pattern, &topic) && self.when.as_ref().is_none_or(|when| is_same(at(facts, &when.field), &when.equals))
    }
}

/// `*` matches exactly one segment, `#` any number of them.
fn is_match(pattern: &[&str], topic: &[&str]) -> bool {
    match (pattern.split_first(), topic.split_first()) {
        (None, None) => true,
        (Some((&"#", rest)), _) => (0..=topic.len()).any(|skipped| is_match(rest, &topic[skipped..])),
        (Some((&"*", pattern)), Some((_, topic))) => is_match(pattern, topic),
        (Some((one, pattern)), Some((other, topic))) if one == other => is_match(pattern, topic),
        _ => false,
    }
}

/// Numbers are equal regardless of their form: a record has 5.00 where a rule has 5.
fn is_same(value: &Value, other: &Value) -> bool {
    match (value.as_f64(), other.as_f64()) {
        (Some(value), Some(other)) => value == other,
        _ => value == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        serde_json::from_str(text).expect("a rule")
    }

    #[test]
    fn patterns_match_by_segments() {
        for (pattern, topic, expected) in [
            ("data.order.created", "data.order.created", true),
            ("data.order.created", "data.order.updated", false),
            ("data.*.created", "data.order.created", true),
            ("data.*", "data.order.created", false),
            ("data.order.*", "data.order", false),
            ("data.order.#", "data.order", true),
            ("data.#", "data.order.created", true),
            ("#", "data.order.created", true),
            ("#.created", "data.order.created", true),
            ("#.created.#.x", "data.order.created", false),
            ("", "data", false),
        ] {
            let rule = Rule { topic: pattern.to_owned(), when: None, text: String::new() };
            assert_eq!(rule.matches(topic, &Value::Null), expected, "{pattern} {topic}");
        }
    }

    #[test]
    fn a_condition_compares_a_value() {
        let facts: Value =
            serde_json::from_str(r#"{ "payload": { "after": { "status": "paid", "total": 5.00, "late": null } } }"#)
                .expect("JSON");
        for (when, expected) in [
            (r#"{ "field": "payload.after.status", "equals": "paid" }"#, true),
            (r#"{ "field": "payload.after.status", "equals": "open" }"#, false),
            (r#"{ "field": "payload.after.total", "equals": 5 }"#, true),
            (r#"{ "field": "payload.after.total", "equals": "5" }"#, false),
            (r#"{ "field": "payload.after.late", "equals": null }"#, true),
            (r#"{ "field": "payload.before", "equals": null }"#, true),
            (r#"{ "field": "payload.after.status", "equals": null }"#, false),
        ] {
            let rule = rule(&format!(r##"{{ "topic": "#", "text": "x", "when": {when} }}"##));
            assert_eq!(rule.matches("data.order.created", &facts), expected, "{when}");
        }
    }
}

//! Texts with `{{dotted.path}}` placeholders.

use serde_json::Value;

/// The text with each `{{path}}` replaced by the value at that path, escaped as Slack demands. A missing value becomes nothing.
pub fn render(template: &str, facts: &Value) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((path, behind)) = after.split_once("}}") else { break };
        text.push_str(before);
        text.push_str(&escaped(&shown(at(facts, path.trim()))));
        rest = behind;
    }
    text.push_str(rest);
    text
}

/// The value at a path of keys and indexes. Null if there is none.
pub fn at<'a>(facts: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(facts, |value, segment| match value {
        Value::Array(items) => segment.parse::<usize>().ok().and_then(|place| items.get(place)).unwrap_or(&Value::Null),
        _ => value.get(segment).unwrap_or(&Value::Null),
    })
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Escapes the three characters of Slack's markup, such as in `<!channel>`, so that a record's text mentions nobody.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_replaced_and_all_else_stays() {
        let facts: Value = serde_json::from_str(
            r#"{ "topic": "data.order.created", "payload": { "after": {
                "total": 19.90, "number": 12345678901234567890, "paid": false, "note": "{{topic}} <!channel> & more",
                "tags": ["a", { "b": 1 }], "nothing": null } } }"#,
        )
        .expect("JSON");
        for (template, expected) in [
            ("New order {{payload.after.number}} over {{payload.after.total}}", "New order 12345678901234567890 over 19.90"),
            ("{{ topic }}: {{payload.after.paid}}", "data.order.created: false"),
            ("{{payload.after.note}}", "{{topic}} &lt;!channel&gt; &amp; more"),
            ("{{payload.after.tags.0}} {{payload.after.tags.1.b}} {{payload.after.tags.7}}", "a 1 "),
            ("{{payload.after.tags}}", r#"["a",{"b":1}]"#),
            ("[{{payload.after.nothing}}{{payload.before.title}}{{}}{{topic.x}}]", "[]"),
            ("<https://example.com|an order> & {{", "<https://example.com|an order> & {{"),
            ("{{topic} {{topic}}", ""),
            ("}}{{topic}}", "}}data.order.created"),
        ] {
            assert_eq!(render(template, &facts), expected, "{template}");
        }
    }
}

//! What one version of a block has that another has not, part by part, for whoever has to consent to it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::manifest::Manifest;

/// What the entries of one part are known by: their names, each with what it is.
type Part = BTreeMap<String, Value>;

/// `[{ part, name, change, before, after, needsConsent }]`, in the order of parts and names. `added` is what the new version asks for
/// beyond the old one; without `shows_before`, nothing of the old version itself is shown.
pub(super) fn differences(old: &Manifest, new: &Manifest, added: &Map<String, Value>, shows_before: bool) -> Vec<Value> {
    let mut all = Vec::new();
    for ((part, before), (_, after)) in parts(old).into_iter().zip(parts(new)) {
        let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let (was, is) = (before.get(name), after.get(name));
            if was == is {
                continue;
            }
            let change = match (was, is) {
                (None, _) => "added",
                (_, None) => "removed",
                _ => "changed",
            };
            all.push(json!({
                "part": part,
                "name": name,
                "change": change,
                "before": was.filter(|_| shows_before),
                "after": is,
                "needsConsent": added.get(part).is_some_and(|added| asks_for(added, name)),
            }));
        }
    }
    all
}

/// Whether what is asked for names an entry. Each part has a key of its own for that.
fn asks_for(added: &Value, name: &str) -> bool {
    let keys = ["resource", "consumer", "name"];
    added.as_array().into_iter().flatten().any(|entry| match entry {
        Value::String(text) => text == name,
        entry => keys.iter().find_map(|key| entry.get(key)).and_then(Value::as_str) == Some(name),
    })
}

/// The parts of a manifest, always all and in one order.
fn parts(manifest: &Manifest) -> Vec<(&'static str, Part)> {
    let shown = manifest.without_header_values();
    let words = |names: &[String]| -> Part { names.iter().map(|name| (name.clone(), json!(name))).collect() };
    let mut data: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for permission in &shown.permissions.data {
        data.entry(permission.resource.clone()).or_default().push(json!(permission));
    }
    let required: Vec<String> = shown.requires.plugins.iter().chain(&shown.requires.handlers).cloned().collect();
    vec![
        ("version", Part::from([("version".to_owned(), json!(shown.version))])),
        ("data", data.into_iter().map(|(resource, permissions)| (resource, Value::Array(permissions))).collect()),
        ("secrets", words(&shown.permissions.secrets)),
        ("http", words(&shown.permissions.http)),
        ("actions", shown.actions.iter().map(|action| (action.name.clone(), json!(action))).collect()),
        ("hooks", shown.hooks.iter().map(|hook| (hook.name.clone(), json!(hook))).collect()),
        ("subscriptions", shown.subscriptions.iter().map(|group| (group.consumer.clone(), json!(group))).collect()),
        ("webhooks", shown.webhooks.iter().map(|webhook| (webhook.name.clone(), json!(webhook))).collect()),
        ("resources", shown.resources.iter().map(|resource| (resource.name.clone(), json!(resource))).collect()),
        ("requires", words(&required)),
        ("config", config(shown.config.as_ref())),
    ]
}

/// The properties of the configuration's schema, and under an empty name what else it says.
fn config(schema: Option<&Value>) -> Part {
    let Some(schema) = schema else { return Part::new() };
    let mut rest = schema.clone();
    let mut part = Part::new();
    if let Some(Value::Object(properties)) = rest.as_object_mut().and_then(|rest| rest.remove("properties")) {
        part.extend(properties);
    }
    part.insert(String::new(), rest);
    part
}

#[cfg(test)]
mod tests {
    use super::super::consent::additions;
    use super::*;

    fn manifest(keys: Value) -> Manifest {
        let mut whole = json!({ "name": "a", "version": "1.0.0" });
        for (key, value) in keys.as_object().expect("an object") {
            whole[key] = value.clone();
        }
        serde_json::from_value(whole).expect("a manifest")
    }

    fn between(old: &Value, new: &Value) -> Vec<(String, String, String, bool)> {
        let (old, new) = (manifest(old.clone()), manifest(new.clone()));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        differences(&old, &new, &additions(&old, &new), true)
            .iter()
            .map(|one| (text(&one["part"]), text(&one["name"]), text(&one["change"]), one["needsConsent"] == true))
            .collect()
    }

    #[test]
    fn each_part_tells_what_is_new_gone_and_other() {
        let old = json!({
            "permissions": { "data": [{ "resource": "task", "actions": ["read"] }], "secrets": ["A"], "http": ["https://a.example"] },
            "hooks": [{ "name": "h" }],
            "config": { "type": "object", "properties": { "x": { "default": 1 } } },
        });
        let new = json!({
            "version": "1.1.0",
            "permissions": { "data": [{ "resource": "task", "actions": ["read", "update"] }, { "resource": "note", "actions": ["read"] }], "secrets": ["A", "B"] },
            "subscriptions": [{ "event": "data.#", "consumer": "a:x", "handler": "on" }],
            "actions": [{ "name": "plain" }],
            "config": { "type": "object", "properties": { "x": { "default": 2 } } },
        });
        let expected = [
            ("version", "version", "changed", false),
            ("data", "note", "added", true),
            ("data", "task", "changed", true),
            ("secrets", "B", "added", true),
            ("http", "https://a.example", "removed", false),
            ("actions", "plain", "added", false),
            ("hooks", "h", "removed", false),
            ("subscriptions", "a:x", "added", true),
            ("config", "x", "changed", false),
        ];
        let expected: Vec<_> = expected.map(|(part, name, change, asks)| (part.into(), name.into(), change.into(), asks)).into();
        assert_eq!(between(&old, &new), expected);
        assert!(between(&old, &old).is_empty());
    }

    #[test]
    fn what_was_before_is_for_readers_alone() {
        let (old, new) = (manifest(json!({ "hooks": [{ "name": "h" }] })), manifest(json!({})));
        let all = differences(&old, &new, &Map::new(), false);
        assert_eq!(
            all,
            [json!({ "part": "hooks", "name": "h", "change": "removed", "before": null, "after": null, "needsConsent": false })]
        );
    }
}

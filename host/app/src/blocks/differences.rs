//! The differences between two versions of a block, part by part, for the person who has to consent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::consent::NewPermissions;
use crate::state::manifest::Manifest;

/// The entries of one part by their names.
type Part = BTreeMap<String, Value>;

/// An entry of the manifest that differs between two versions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct Difference {
    #[schemars(extend("enum" = PARTS))]
    part: &'static str,
    name: String,
    #[schemars(extend("enum" = ["added", "removed", "changed"]))]
    change: &'static str,
    /// The entry of the installed version. Null if it has none, or if the caller may not read `blocks`.
    #[schemars(with = "Value")]
    before: Option<Value>,
    /// The entry of the new version; null if it has none.
    #[schemars(with = "Value")]
    after: Option<Value>,
    /// Whether an upgrade needs `allowNewPermissions` for it.
    needs_consent: bool,
}

/// The parts of a manifest, in the order of the list of differences.
const PARTS: [&str; 12] = [
    "version",
    "data",
    "secrets",
    "http",
    "actions",
    "hooks",
    "subscriptions",
    "webhooks",
    "resources",
    "requires",
    "config",
    "instances",
];

/// The differences, in the order of parts and names. `added` is what the new version asks for in addition to the old one. Without
/// `shows_before`, the entries of the old version are not shown.
pub(super) fn differences(old: &Manifest, new: &Manifest, added: &NewPermissions, shows_before: bool) -> Vec<Difference> {
    let mut all = Vec::new();
    for ((part, before), after) in PARTS.into_iter().zip(parts(old)).zip(parts(new)) {
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
            all.push(Difference {
                part,
                name: name.clone(),
                change,
                before: was.filter(|_| shows_before).cloned(),
                after: is.cloned(),
                needs_consent: added.asks_for(part, name),
            });
        }
    }
    all
}

/// The entries of each of [`PARTS`].
fn parts(manifest: &Manifest) -> [Part; PARTS.len()] {
    let shown = manifest.without_header_values();
    let words = |names: &[String]| -> Part { names.iter().map(|name| (name.clone(), json!(name))).collect() };
    let mut data: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for permission in &shown.permissions.data {
        data.entry(permission.resource.clone()).or_default().push(json!(permission));
    }
    let required: Vec<String> = shown.requires.plugins.iter().chain(&shown.requires.handlers).cloned().collect();
    [
        Part::from([("version".to_owned(), json!(shown.version))]),
        data.into_iter().map(|(resource, permissions)| (resource, Value::Array(permissions))).collect(),
        words(&shown.permissions.secrets),
        words(&shown.permissions.http),
        shown.actions.iter().map(|action| (action.name.clone(), json!(action))).collect(),
        shown.hooks.iter().map(|hook| (hook.name.clone(), json!(hook))).collect(),
        shown.subscriptions.iter().map(|group| (group.consumer.clone(), json!(group))).collect(),
        shown.webhooks.iter().map(|webhook| (webhook.name.clone(), json!(webhook))).collect(),
        shown.resources.iter().map(|resource| (resource.name.clone(), json!(resource))).collect(),
        words(&required),
        config(shown.config.as_ref()),
        // What takes effect, not what the manifest asks for.
        shown.reuse().map(|reuse| ("reuse".to_owned(), json!(reuse))).into_iter().collect(),
    ]
}

/// The properties of the configuration's schema. The rest of the schema is under an empty name.
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
        differences(&old, &new, &additions(&old, &new), true)
            .into_iter()
            .map(|one| (one.part.to_owned(), one.name, one.change.to_owned(), one.needs_consent))
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
            "instances": { "reuse": { "calls": 100, "seconds": 30 } },
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
            ("instances", "reuse", "added", true),
        ];
        let expected: Vec<_> = expected.map(|(part, name, change, asks)| (part.into(), name.into(), change.into(), asks)).into();
        assert_eq!(between(&old, &new), expected);
        assert!(between(&old, &old).is_empty());
    }

    #[test]
    fn what_was_before_is_for_readers_alone() {
        let (old, new) = (manifest(json!({ "hooks": [{ "name": "h" }] })), manifest(json!({})));
        let all = differences(&old, &new, &NewPermissions::default(), false);
        assert_eq!(
            json!(all),
            json!([{ "part": "hooks", "name": "h", "change": "removed", "before": null, "after": null, "needsConsent": false }])
        );
    }
}

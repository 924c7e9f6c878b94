//! During a build, adds the component's own description to its manifest, so that an author does not write it twice.

use blockbase_blocks::description_of;
use serde_json::{Map, Value};

/// The manifest of `block.json` with the component's additions. These are the handlers that its code declares, and the host interfaces
/// that it imports, in `requires.plugins`.
///
/// # Errors
/// A sentence for the author, if the component does not run or its description has an unknown form.
pub fn described(component: &[u8], mut manifest: Value) -> Result<Value, String> {
    let description = description_of(component)?;
    for plugin in description.plugins {
        require(&mut manifest, plugin)?;
    }
    if let Some(text) = description.text {
        let said: Map<String, Value> = serde_json::from_str(&text)
            .map_err(|error| format!("The description that the component returned is not a JSON object: {error}."))?;
        merge(&mut manifest, said)?;
    }
    Ok(manifest)
}

/// The array under a key. It is made if it does not exist.
fn list<'a>(holder: &'a mut Value, key: &str) -> Result<&'a mut Vec<Value>, String> {
    let members = holder.as_object_mut().ok_or_else(|| format!("The value around `{key}` in block.json is not an object."))?;
    let entry = members.entry(key).or_insert_with(|| Value::Array(Vec::new()));
    entry.as_array_mut().ok_or_else(|| format!("`{key}` in block.json is not an array."))
}

fn require(manifest: &mut Value, interface: &str) -> Result<(), String> {
    let members = manifest.as_object_mut().ok_or("block.json is not a JSON object.")?;
    let requires = members.entry("requires").or_insert_with(|| Value::Object(Map::new()));
    let plugins = list(requires, "plugins")?;
    if !plugins.iter().any(|plugin| plugin == interface) {
        plugins.push(Value::from(interface));
    }
    Ok(())
}

/// Adds the handlers from the code. The values of block.json take precedence. Keys that it leaves out come from the code.
fn merge(manifest: &mut Value, said: Map<String, Value>) -> Result<(), String> {
    // If no consumer group is named, its name is made from the names of the block and the handler.
    let block = manifest["name"].as_str().unwrap_or_default().to_owned();
    for (kind, name) in [("actions", "name"), ("hooks", "name"), ("subscriptions", "handler")] {
        let entries = said.get(kind).and_then(Value::as_array).into_iter().flatten();
        for entry in entries {
            let Some(described) = entry.as_object() else {
                return Err(format!("An entry of `{kind}` in the description of the component is not an object."));
            };
            let known = list(manifest, kind)?;
            let mut same = known.iter_mut().filter(|known| known[name] == entry[name]).peekable();
            if same.peek().is_none() {
                // If the code names no topics for a handler of events, block.json has to declare them, or the handler gets no events.
                if kind != "subscriptions" || entry.get("event").is_some() {
                    let mut entry = entry.clone();
                    if kind == "subscriptions" && entry.get("consumer").is_none() {
                        entry["consumer"] = Value::from(format!("{block}:{}", entry["handler"].as_str().unwrap_or_default()));
                    }
                    known.push(entry);
                }
                continue;
            }
            for known in same.filter_map(Value::as_object_mut) {
                for (key, value) in described {
                    if !known.contains_key(key) {
                        known.insert(key.clone(), value.clone());
                    }
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_author_wrote_stands_and_the_rest_is_added() {
        let mut manifest = json!({ "name": "a", "actions": [{ "name": "x", "description": "mine" }], "subscriptions": [{ "handler": "h", "event": "data.a.#" }] });
        let said = json!({
            "actions": [{ "name": "x", "description": "theirs", "input": { "type": "object" } }, { "name": "y" }],
            "hooks": [{ "name": "z" }],
            "subscriptions": [{ "handler": "h", "event": "data.#" }, { "handler": "silent" }, { "handler": "t", "event": "data.b.#" }],
        });
        merge(&mut manifest, said.as_object().expect("an object").clone()).expect("a merge");
        require(&mut manifest, "log").expect("a plugin");
        require(&mut manifest, "log").expect("a plugin");
        assert_eq!(
            manifest,
            json!({
                "name": "a",
                "actions": [{ "name": "x", "description": "mine", "input": { "type": "object" } }, { "name": "y" }],
                "subscriptions": [
                    { "handler": "h", "event": "data.a.#" },
                    { "handler": "t", "event": "data.b.#", "consumer": "a:t" },
                ],
                "hooks": [{ "name": "z" }],
                "requires": { "plugins": ["log"] },
            })
        );
    }
}

//! What a component says of itself, put into its manifest at the build, so that an author does not write it twice.

use std::sync::Arc;
use std::time::Duration;

use blockbase_outbound::{AddressPolicy, Client};
use serde_json::{Map, Value};
use wasmtime::Store;
use wasmtime::component::Component;

use crate::call::{CallState, Means};
use crate::engine::{self, Ticker};
use crate::host::INTERFACES;
use crate::lanes::Lanes;
use crate::limits::MemoryBudget;
use crate::runtime::linker;

const DESCRIBE: &str = "blockbase:sdk/describe@0.1.0";
/// Time that a component has to describe itself.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Memory that it has.
const MEMORY_BYTES_MAX: usize = 1 << 30;

/// The manifest of `block.json` with what the component adds: the handlers that it declares in its code, and in
/// `requires.plugins` the host interfaces that it imports.
///
/// # Errors
/// A sentence for the author: the component does not run, or describes itself in no known form.
pub fn described(component: &[u8], mut manifest: Value) -> Result<Value, String> {
    let engine = engine::compiling().map_err(|error| format!("{error:#}"))?;
    let component =
        Component::from_binary(&engine, component).map_err(|error| format!("The component does not compile: {error:#}."))?;
    let shape = component.component_type();
    for (import, _) in shape.imports(&engine) {
        let name = import.strip_prefix("blockbase:block/").and_then(|rest| rest.split_once('@')).map(|(name, _)| name);
        // The component's own view of HTTP comes with the same consent.
        let name = if import.starts_with("wasi:http/") { Some("http") } else { name };
        if let Some(name) = name.filter(|name| INTERFACES.contains(name)) {
            require(&mut manifest, name)?;
        }
    }
    if shape.exports(&engine).any(|(name, _)| name == DESCRIBE) {
        let text = within_time(describe(&engine, &component))?;
        let said: Map<String, Value> = serde_json::from_str(&text)
            .map_err(|error| format!("What the component says of itself is no JSON object: {error}."))?;
        merge(&mut manifest, said)?;
    }
    Ok(manifest)
}

fn within_time<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        tokio::time::timeout(TIMEOUT, work).await.map_err(|_| "The component does not end describing itself.".to_owned())?
    })
}

async fn describe(engine: &wasmtime::Engine, component: &Component) -> Result<String, String> {
    let explain = |error: wasmtime::Error| format!("The component cannot describe itself: {error:#}.");
    // What the server offers, and nothing made up for the rest: a component that asks for more is refused at its install as well.
    let linker = linker(engine).map_err(explain)?;
    let means = Means {
        client: Client::new(AddressPolicy { allow_private: false })?,
        lanes: Arc::new(Lanes::new().map_err(|error| error.to_string())?),
        memory_bytes_max: MEMORY_BYTES_MAX,
        memory: MemoryBudget::new(MEMORY_BYTES_MAX),
        timeout: TIMEOUT,
    };
    let mut store = Store::new(engine, CallState::new(None, "describe".to_owned(), means));
    store.limiter(|state| state);
    store.set_epoch_deadline(1);
    store.epoch_deadline_async_yield_and_update(1);
    let ticker = Ticker::start(engine).map_err(|error| error.to_string())?;
    let _ticking = ticker.keep();
    let instance = linker.instantiate_async(&mut store, component).await.map_err(explain)?;
    let interface = instance.get_export_index(&mut store, None, DESCRIBE);
    let function = interface.and_then(|interface| instance.get_export_index(&mut store, Some(&interface), "manifest"));
    let function = function.ok_or("The component's description has no function `manifest`.")?;
    let function = instance.get_typed_func::<(), (String,)>(&mut store, function).map_err(explain)?;
    let (text,) = function.call_async(&mut store, ()).await.map_err(explain)?;
    Ok(text)
}

/// The array under a key, made where there is none.
fn list<'a>(holder: &'a mut Value, key: &str) -> Result<&'a mut Vec<Value>, String> {
    let members = holder.as_object_mut().ok_or_else(|| format!("What holds `{key}` in block.json is no object."))?;
    let entry = members.entry(key).or_insert_with(|| Value::Array(Vec::new()));
    entry.as_array_mut().ok_or_else(|| format!("`{key}` in block.json is no array."))
}

fn require(manifest: &mut Value, interface: &str) -> Result<(), String> {
    let members = manifest.as_object_mut().ok_or("block.json holds no object.")?;
    let requires = members.entry("requires").or_insert_with(|| Value::Object(Map::new()));
    let plugins = list(requires, "plugins")?;
    if !plugins.iter().any(|plugin| plugin == interface) {
        plugins.push(Value::from(interface));
    }
    Ok(())
}

/// What block.json says of a name stands; keys that it leaves out come from the code.
fn merge(manifest: &mut Value, said: Map<String, Value>) -> Result<(), String> {
    // A consumer group is named after the block and its handler where nobody names it.
    let block = manifest["name"].as_str().unwrap_or_default().to_owned();
    for (kind, name) in [("actions", "name"), ("hooks", "name"), ("subscriptions", "handler")] {
        let entries = said.get(kind).and_then(Value::as_array).into_iter().flatten();
        for entry in entries {
            let Some(described) = entry.as_object() else {
                return Err(format!("An entry of the described `{kind}` is no object."));
            };
            let known = list(manifest, kind)?;
            let mut same = known.iter_mut().filter(|known| known[name] == entry[name]).peekable();
            if same.peek().is_none() {
                // A handler of events whose topics the code does not name is declared in block.json, or gets none.
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

//! The actions that installed blocks declare. Each is one operation, and its body has the input schema of the manifest.

use blockbase_app::ActionDeclaration;
use serde_json::{Value, json};

use crate::openapi::components::{Components, schema};
use crate::openapi::operation::{Caller, Operation, Paths};

pub(crate) fn describe(paths: &mut Paths, components: &mut Components, actions: &[(&str, &ActionDeclaration)]) {
    for (block, action) in actions {
        let name = &action.name;
        // Names of objects contain no dot, so this name never clashes with theirs.
        let component = format!("{block}.{name}.Input");
        let mut input = action.input.clone();
        settle(&mut input, &format!("#/components/schemas/{component}"));
        components.schemas.insert(component.clone(), input);
        let description = match action.description.is_empty() {
            true => format!("The action `{name}` of the block `{block}`."),
            false => action.description.clone(),
        };
        let operation = Operation::new(format!("actions.{block}.{name}"), "actions", format!("Call {name} of {block}"))
            .describe(description)
            .called_by(Caller::Granted)
            .json_body(schema(&component))
            .problems(&[404, 409, 504])
            .answers_data(200, "The handler's result.", json!({}));
        paths.add("post", format!("/api/v1/blocks/{block}/actions/{name}"), operation);
    }
}

/// Keywords of a schema whose values are data. `$ref` has no meaning in them.
const LITERALS: [&str; 5] = ["const", "enum", "default", "examples", "example"];

/// Adapts a schema to its new place in a document, so that its references still point to its own parts.
///
/// References by an anchor or with a base of their own are removed, because they cannot be kept. The schema in the document then
/// allows more values than the block accepts.
fn settle(value: &mut Value, root: &str) {
    match value {
        Value::Object(members) => {
            for key in ["$id", "$schema", "$anchor", "$dynamicAnchor"] {
                if members.get(key).is_some_and(Value::is_string) {
                    members.remove(key);
                }
            }
            if members.get("$dynamicRef").is_some_and(Value::is_string) {
                members.remove("$dynamicRef");
            }
            if let Some(Value::String(reference)) = members.get("$ref") {
                match reference.strip_prefix('#').filter(|pointer| pointer.is_empty() || pointer.starts_with('/')) {
                    Some(pointer) => {
                        let settled = format!("{root}{pointer}");
                        members.insert("$ref".to_owned(), json!(settled));
                    }
                    None => {
                        members.remove("$ref");
                    }
                }
            }
            members.iter_mut().filter(|(key, _)| !LITERALS.contains(&key.as_str())).for_each(|(_, member)| settle(member, root));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| settle(item, root)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_an_input_point_to_where_it_stands() {
        let mut input = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": { "a": { "$ref": "#/$defs/a" }, "b": { "$ref": "#b" }, "c": { "const": { "$ref": "#/x" } } },
            "$defs": { "a": { "items": { "$ref": "#" } } },
        });
        settle(&mut input, "#/components/schemas/x.y.Input");
        let expected = json!({
            "type": "object",
            "properties": {
                "a": { "$ref": "#/components/schemas/x.y.Input/$defs/a" },
                "b": {},
                "c": { "const": { "$ref": "#/x" } },
            },
            "$defs": { "a": { "items": { "$ref": "#/components/schemas/x.y.Input" } } },
        });
        assert_eq!(input, expected);
    }
}

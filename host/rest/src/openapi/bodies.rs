//! Schemas of bodies, derived from the structs that read them: their members, types and doc comments.
//!
//! A member that may be left out but not be null is an `Option` with `schemars(with = …)`, because serde alone cannot express it.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::answers::{generator, plain};

/// The schema of a body. It is inlined, because each body belongs to one operation.
pub(crate) fn body_of<T: JsonSchema>() -> Value {
    let mut schema = T::json_schema(&mut generator(SchemaSettings::draft2020_12().for_deserialize()));
    plain(&mut schema);
    RecursiveTransform(Input).transform(&mut schema);
    schema.into()
}

/// The schema of a body that changes a thing that `T` defines. A required member can be replaced. Any other member can also be
/// removed by null. The members in `fixed` cannot be changed.
pub(crate) fn changes_of<T: JsonSchema>(fixed: &[&str]) -> Value {
    let mut schema = body_of::<T>();
    let needed = schema["required"].take();
    let is_needed = |name: &str| needed.as_array().is_some_and(|needed| needed.iter().any(|known| known == name));
    if let Some(members) = schema["properties"].as_object_mut() {
        members.retain(|name, _| !fixed.contains(&name.as_str()));
        members.iter_mut().filter(|(name, _)| !is_needed(name)).for_each(|(_, member)| allow_null(member));
    }
    if let Some(keywords) = schema.as_object_mut() {
        keywords.remove("required");
        keywords.insert("description".to_owned(), json!("The members to change. Null removes one."));
    }
    schema
}

fn allow_null(member: &mut Value) {
    if member.get("$ref").is_some() {
        *member = json!({ "anyOf": [member.take(), { "type": "null" }] });
    } else if let Some(kind) = member.get_mut("type").filter(|kind| kind.is_string()) {
        *kind = json!([kind.take(), "null"]);
    }
}

/// Components of answers, and the components that replace them in bodies. Optional members of the latter may be null.
const INPUTS: [(&str, &str); 1] = [("#/components/schemas/SvcField", "#/components/schemas/SvcFieldInput")];

/// Replaces references to components of answers by references to those of bodies.
#[derive(Clone)]
struct Input;

impl Transform for Input {
    fn transform(&mut self, schema: &mut Schema) {
        let reference = schema.get("$ref").and_then(Value::as_str);
        if let Some((_, input)) = INPUTS.iter().find(|(answer, _)| reference == Some(answer)) {
            schema.insert("$ref".to_owned(), json!(input));
        }
    }
}

#[cfg(test)]
mod tests {
    use blockbase_app::OBJECT_MEMBERS_FIXED;
    use blockbase_app::schema::{Field, ObjectDefinition};

    use super::*;

    #[test]
    fn a_change_may_remove_what_a_definition_need_not_have() {
        let field = changes_of::<Field>(&[]);
        assert_eq!(field.get("required"), None);
        for (member, kind) in
            [("name", json!("string")), ("label", json!(["string", "null"])), ("indexed", json!(["boolean", "null"]))]
        {
            assert_eq!(field["properties"][member]["type"], kind, "{member}");
        }
        let object = changes_of::<ObjectDefinition>(&OBJECT_MEMBERS_FIXED);
        let members: Vec<&String> = object["properties"].as_object().expect("members").keys().collect();
        assert_eq!(members, ["label", "description", "constraints", "indexes"]);
    }

    #[test]
    fn a_part_of_a_body_is_what_bodies_have() {
        let object = body_of::<ObjectDefinition>();
        assert_eq!(object["properties"]["fields"]["items"], json!({ "$ref": "#/components/schemas/SvcFieldInput" }));
    }
}

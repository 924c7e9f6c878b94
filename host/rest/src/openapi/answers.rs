//! Schemas of answers, derived from the structs that `app` answers with: their members, types and doc comments.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

/// The member of a schema that contains the components to which the schema refers. [`take_components`] removes it.
const CARRIED: &str = "x-svc-components";

/// The schema of an answer: a reference to its component, unless the type is inlined.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let mut generator = generator(SchemaSettings::draft2020_12().for_serialize());
    let mut schema = generator.subschema_for::<T>();
    // The generator translates only components.
    plain(&mut schema);
    let components = generator.take_definitions(true);
    if !components.is_empty() {
        schema.insert(CARRIED.to_owned(), Value::Object(components));
    }
    schema.into()
}

/// Moves the components that the schemas in `value` contain to `components`.
pub(crate) fn take_components(value: &mut Value, components: &mut Map<String, Value>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::Object(carried)) = members.shift_remove(CARRIED) {
                components.extend(carried);
            }
            members.values_mut().for_each(|member| take_components(member, components));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| take_components(item, components)),
        _ => {}
    }
}

pub(super) fn generator(settings: SchemaSettings) -> SchemaGenerator {
    let mut settings = settings.with_transform(RecursiveTransform(Plain));
    settings.definitions_path = "/components/schemas".into();
    settings.into_generator()
}

/// Translates a schema that no generator has translated.
pub(super) fn plain(schema: &mut Schema) {
    RecursiveTransform(Plain).transform(schema);
}

/// Translates schemas that are generated from Rust types and comments into those of the document.
#[derive(Clone)]
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        match schema.get("format").and_then(Value::as_str) {
            // OpenAPI's format registry has `int64` only. `minimum` excludes negative numbers.
            Some("uint" | "uint64") => drop(schema.insert("format".to_owned(), "int64".into())),
            Some("uint8" | "uint16" | "uint32") => drop(schema.remove("format")),
            _ => {}
        }
        if let Some(description) = schema.get("description").and_then(Value::as_str) {
            // Line breaks of the source are not part of the text. Empty lines separate its paragraphs.
            let paragraphs: Vec<String> = description.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
            schema.insert("description".to_owned(), paragraphs.join("\n\n").into());
        }
        // Only bodies have defaults, for members that may be left out.
        schema.remove("default");
    }
}

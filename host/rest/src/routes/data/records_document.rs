//! The schemas of an object's records: as they are shown, and as bodies take them.

use blockbase_app::schema::{Object, Registry};
use serde_json::{Map, Value, json};

use crate::openapi::column;
use crate::openapi::column::Described;
use crate::openapi::components::{Components, schema};

/// A relation key with the type of its related records, and whether it brings one or a list.
pub(crate) struct Related<'a> {
    pub(crate) key: &'a str,
    pub(crate) type_name: String,
    pub(crate) is_single: bool,
}

/// The relation keys of an object whose related objects are among `readable`.
pub(crate) fn relations<'a>(registry: &'a Registry, object: &str, readable: impl Fn(&str) -> bool) -> Vec<Related<'a>> {
    let relations = registry.relations_of(object).iter().filter(|relation| readable(&relation.related));
    relations
        .map(|relation| Related {
            key: &relation.key,
            type_name: blockbase_app::schema::pascal_case(&relation.related),
            is_single: relation.shape.is_single(),
        })
        .collect()
}

/// Adds `<Type>`, `<Type>_Selected`, `<Type>CreateInput` and `<Type>UpdateInput`.
///
/// Type names hold no `_`, so the second is nobody else's; the other suffixes are kept free for every object.
pub(crate) fn describe(
    components: &mut Components,
    object: &Object,
    type_name: &str,
    relations: &[Related<'_>],
    is_visible: impl Fn(&str) -> bool,
) {
    let field_of = |name: &str| object.definition.fields.iter().find(|field| field.name == name);
    let mut shown = Map::new();
    let (mut created, mut updated) = (Map::new(), Map::new());
    let mut required = Vec::new();
    for column in &object.columns {
        let name = column.name.clone();
        let target = column.reference.as_ref().map(|reference| reference.target.as_str());
        let described = Described { column, field: field_of(&name), target: target.filter(|target| is_visible(target)) };
        shown.insert(name.clone(), column::shown(&described));
        if column.is_system {
            let ignored = match name == "id" {
                true => json!({ "description": "Ignored, unless `on_conflict` is `id`. Then it is the id of the record." }),
                false => schema("SvcIgnored"),
            };
            created.insert(name.clone(), ignored);
            updated.insert(name, schema("SvcIgnored"));
            continue;
        }
        if column.required && column.default.is_none() {
            required.push(name.clone());
        }
        created.insert(name.clone(), column::created(&described));
        updated.insert(name, column::updated(&described));
    }
    let columns: Vec<String> = shown.keys().cloned().collect();
    for related in relations {
        let one = schema(&related.type_name);
        let value = match related.is_single {
            true => json!({ "anyOf": [one, { "type": "null" }], "description": "Present with `expand`." }),
            false => json!({ "type": "array", "items": one, "description": "Present with `expand`." }),
        };
        shown.insert(related.key.to_owned(), value);
    }
    let about = object.definition.description.clone();
    let title = object.definition.label.clone().unwrap_or_else(|| object.name().to_owned());
    let mut record = json!({ "type": "object", "title": title, "properties": shown, "required": columns });
    if let Some(about) = about {
        record["description"] = json!(about);
    }
    let mut selected = record.clone();
    selected["required"] = json!(["id"]);
    selected["title"] = json!(format!("{title}, the selected fields"));
    selected["description"] = json!("A record of a list: every column, or those that `select` names.");
    let input = |what: &str, properties: Map<String, Value>, required: Vec<String>| {
        let mut input = json!({ "type": "object", "title": format!("{title}, {what}"), "properties": properties });
        if !required.is_empty() {
            input["required"] = json!(required);
        }
        input["additionalProperties"] = json!(false);
        input
    };
    for (suffix, schema) in [
        ("", record),
        ("_Selected", selected),
        ("CreateInput", input("to create", created, required)),
        ("UpdateInput", input("to change", updated, Vec::new())),
    ] {
        components.schemas.insert(format!("{type_name}{suffix}"), schema);
    }
}

//! The schemas of an object's records: in responses, and in bodies.

use blockbase_app::schema::{Column, Object, Registry, system};
use serde_json::{Map, Value, json};

use crate::openapi::column;
use crate::openapi::column::Described;
use crate::openapi::components::{Components, schema};

/// A relation key, the type of its related records, and whether it leads to one record or to a list.
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

/// The columns of an object, each with the schema that `describe` makes.
fn each_described<'o>(
    object: &'o Object,
    is_visible: &'o impl Fn(&str) -> bool,
    describe: impl Fn(&Described<'_>) -> Value + 'o,
) -> impl Iterator<Item = (String, Value)> + 'o {
    object.columns.iter().map(move |column| {
        let field = object.definition.fields.iter().find(|field| field.name == column.name);
        let target = column.reference.as_ref().map(|reference| reference.target.as_str());
        let described = Described { column, field, target: target.filter(|target| is_visible(target)) };
        (column.name.clone(), describe(&described))
    })
}

/// Adds `<Type>`, `<Type>_Selected`, `<Type>CreateInput` and `<Type>UpdateInput`: the schemas of a record that the caller reads,
/// of a record in a list with `select`, and of the bodies of a create and an update.
///
/// Type names contain no `_`, so no other type has the second name. The names with the other suffixes are reserved for every
/// object.
pub(crate) fn describe(
    components: &mut Components,
    (object, [to_create, to_change]): (&Object, [&Object; 2]),
    type_name: &str,
    relations: &[Related<'_>],
    is_visible: impl Fn(&str) -> bool,
) {
    let shown = each_described(object, &is_visible, column::shown);
    let mut shown: Map<String, Value> = shown.collect();
    let created = each_described(to_create, &is_visible, |described| match described.column.name.as_str() {
        system::ID => json!({ "description": "Ignored, unless `on_conflict` is `id`. Then it is the id of the record." }),
        _ if described.column.is_system => schema("SvcIgnored"),
        _ => column::created(described),
    });
    let created: Map<String, Value> = created.collect();
    let updated = each_described(to_change, &is_visible, |described| match described.column.is_system {
        true => schema("SvcIgnored"),
        false => column::updated(described),
    });
    let updated: Map<String, Value> = updated.collect();
    let is_needed = |column: &&Column| !column.is_system && column.required && column.default.is_none();
    let required = to_create.columns.iter().filter(is_needed).map(|column| column.name.clone()).collect();
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
    selected["description"] = json!("A record of a list, with all columns or with those that `select` names.");
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

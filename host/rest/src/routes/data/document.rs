//! The paths and schemas of one object's records.

use blockbase_app::Visible;
use blockbase_app::schema::{Object, RelationShape, pascal_case};
use serde_json::{Value, json};

use super::described::Described;
use super::{
    aggregate, bulk, create, delete, export, filters_document, get, links, list, query, records_document, update, where_document,
};
use crate::openapi::components::Components;
use crate::openapi::operation::Paths;

/// The object's tag. Documentation groups the operations of the object by it.
pub(crate) fn object_tag(object: &Object) -> Value {
    let definition = &object.definition;
    let about = definition.description.as_ref().or(definition.label.as_ref());
    let about = about.cloned().unwrap_or_else(|| format!("Records of `{}`.", object.name()));
    json!({ "name": tag(object), "description": about })
}

fn tag(object: &Object) -> String {
    format!("data.{}", object.name())
}

/// The paths and schemas of an object.
pub(crate) fn object(
    paths: &mut Paths,
    components: &mut Components,
    visible: &Visible,
    object: &Object,
    bulk_records_max: usize,
) {
    let name = object.name();
    let type_name = pascal_case(name);
    let readable = |related: &str| visible.objects.iter().any(|(known, readable)| known == related && *readable);
    let relations = records_document::relations(&visible.registry, name, readable);
    let keys: Vec<&str> = relations.iter().map(|related| related.key).collect();
    let is_visible = |other: &str| visible.objects.iter().any(|(known, _)| known == other);
    let (created, updated) = (visible.to_create(name), visible.to_change(name));
    let written = [created, updated].map(|written| written.map_or(object, |written| &**written));
    records_document::describe(components, (object, written), &type_name, &relations, is_visible);
    where_document::describe(components, object, &type_name, &relations);
    let base = format!("/api/v1/data/{name}");
    let described = Described { object, tag: tag(object), type_name, base, keys, bulk_records_max };
    let parameters = filters_document::of_list(components, object, &described.type_name, &described.keys);
    let body = where_document::query_body(&described.type_name, &parameters);
    let page = list::page(&described);
    list::describe(paths, &described, parameters, page.clone());
    query::describe(paths, &described, body, page);
    aggregate::describe(paths, components, &described);
    // Users are not changed as records.
    if !object.is_users() {
        create::describe(paths, &described);
    }
    let names = export::record_names(&visible.registry, name, readable);
    export::describe(paths, components, &described, &names);
    get::describe(paths, &described);
    if object.is_users() {
        return;
    }
    update::describe(paths, &described);
    delete::describe(paths, &described);
    bulk::describe(paths, &described);
    let linked = visible
        .registry
        .relations_of(name)
        .iter()
        .filter(|relation| matches!(relation.shape, RelationShape::Linked { .. }) && readable(&relation.related));
    for relation in linked {
        links::describe(paths, &described, &relation.key, &relation.related);
    }
}

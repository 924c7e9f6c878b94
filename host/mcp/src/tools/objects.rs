//! The tools that describe objects. One lists the objects that the caller sees, and one shows the definition of an object.

use blockbase_app::schema::{Column, Error, Object, Registry, RelationShape, Resource, Result};
use blockbase_app::{Action, App, Caller};
use serde_json::{Value, json};

/// The actions that an answer lists, in this order.
const ACTIONS: [Action; 4] = [Action::Create, Action::Read, Action::Update, Action::Delete];

fn actions(caller: &Caller, object: &str) -> Vec<&'static str> {
    ACTIONS.into_iter().filter(|action| caller.may_data(object, *action)).map(Action::name).collect()
}

/// `{ "data": [{ name, label?, description?, actions }] }`.
pub(super) fn list(app: &App, caller: &Caller) -> String {
    let visible = app.visible(caller);
    let objects = visible.objects.iter().filter_map(|(name, _)| visible.registry.object(name)).map(|object| {
        let mut listed = json!({ "name": object.name() });
        let definition = &object.definition;
        for (key, value) in [("label", &definition.label), ("description", &definition.description)] {
            if let Some(value) = value {
                listed[key] = json!(value);
            }
        }
        listed["actions"] = json!(actions(caller, object.name()));
        listed
    });
    json!({ "data": objects.collect::<Vec<Value>>() }).to_string()
}

/// `{ "data": { …the definition, columns, uniqueTargets, relations, expandKeys, actions } }`.
///
/// # Errors
/// `not_found`. Callers who may not know whether the object exists get the same error for every name.
pub(super) fn get(app: &App, caller: &Caller, name: &str) -> Result<String> {
    let visible = app.visible(caller);
    let is_visible = visible.objects.iter().any(|(known, _)| known == name);
    let object = visible.registry.object(name).filter(|_| is_visible);
    let Some(object) = object else {
        if !caller.holds(Resource::Objects, Action::Read) {
            caller.access(name, Action::Read)?;
        }
        return Err(Error::unknown_object(name));
    };
    let written: Vec<&Object> =
        [visible.to_create(name), visible.to_change(name)].into_iter().flatten().map(|known| &**known).collect();
    // The definition stays text, because its numbers would lose digits in a tree of values.
    let definition = serde_json::to_string(&object.definition).map_err(Error::internal)?;
    let is_known = |name: &str| visible.objects.iter().any(|(known, is_readable)| known == name && *is_readable);
    let relations = relations(&visible.registry, object, &is_known);
    let expand_keys: Value = relations.iter().map(|relation| relation["key"].clone()).collect();
    let added = json!({
        "columns": columns(object, &written, &is_known),
        "uniqueTargets": unique_targets(object),
        "expandKeys": expand_keys,
        "relations": relations,
        "actions": actions(caller, object.name()),
    });
    let added = added.to_string();
    let (Some(definition), Some(added)) = (definition.strip_suffix('}'), added.strip_prefix('{')) else {
        return Err(Error::internal("a definition is not a JSON object"));
    };
    Ok(format!("{{\"data\":{definition},{added}}}"))
}

/// The members of a record: the fields, the foreign keys, and the system columns. After them come columns that can be written but
/// not read.
fn columns(object: &Object, written: &[&Object], is_known: &dyn Fn(&str) -> bool) -> Value {
    let is_written = |column: &Column| written.iter().any(|written| written.column(&column.name).is_some());
    let mut only_written: Vec<&Column> = Vec::new();
    for column in written.iter().flat_map(|written| &written.columns) {
        if !column.is_system
            && object.column(&column.name).is_none()
            && only_written.iter().all(|known| known.name != column.name)
        {
            only_written.push(column);
        }
    }
    let column = |column: &Column| {
        let is_read_only = column.is_system || !is_written(column);
        let mut listed = json!({ "name": column.name, "type": column.kind.name(), "readOnly": is_read_only });
        if object.column(&column.name).is_none() {
            listed["writeOnly"] = json!(true);
        }
        if let Some(reference) = column.reference.as_ref().filter(|reference| is_known(&reference.target)) {
            listed["references"] = json!(reference.target);
        }
        listed
    };
    object.columns.iter().chain(only_written).map(column).collect()
}

/// The possible values of `on_conflict`.
fn unique_targets(object: &Object) -> Value {
    let single = object.columns.iter().filter(|column| column.unique).map(|column| vec![column.name.clone()]);
    single.chain(object.definition.constraints.unique_together.iter().cloned()).collect::<Vec<_>>().into()
}

/// `[{ key, object, isList, isLinked }]`, for objects whose records the caller may read. A linked relation is changed with
/// link_records, and any other relation with the foreign key.
fn relations(registry: &Registry, object: &Object, is_known: &dyn Fn(&str) -> bool) -> Vec<Value> {
    let known = registry.relations_of(object.name()).iter().filter(|relation| is_known(&relation.related));
    known
        .map(|relation| {
            let (is_list, is_linked) = match relation.shape {
                RelationShape::Forward { .. } => (false, false),
                RelationShape::Reverse { is_single, .. } => (!is_single, false),
                RelationShape::Linked { .. } => (true, true),
            };
            json!({ "key": relation.key, "object": relation.related, "isList": is_list, "isLinked": is_linked })
        })
        .collect()
}

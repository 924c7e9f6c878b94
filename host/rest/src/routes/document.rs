//! The document as a whole: the parts around the paths, and the components that the paths use.

use std::collections::HashSet;

use blockbase_app::{ActionDeclaration, Visible};
use serde_json::{Map, Value, json};

use crate::openapi::answers::take_components;
use crate::openapi::components;
use crate::openapi::operation::Paths;
use crate::routes::{accounts, auth, blocks, data, events, me, openapi, schema, service as of_service, surfaces, tasks};

/// The settings of the service that the document shows.
pub(crate) struct Service {
    pub(crate) require_auth: bool,
    pub(crate) cookie_name: &'static str,
    pub(crate) bulk_records_max: usize,
}

const DESCRIPTION: &str = "\
Data objects that are defined at run time, with accounts, permissions, events and blocks. This document follows the live schema: it \
shows the objects and actions that its caller may know of.

Every response has the header `x-request-id` with the id of the request in the server's log. Every error is \
`{ error, message, field?, issues? }` with a stable code in `error`. A path that does not exist gets 404 `not_found`. A method that a \
path does not have gets 405 `method_not_allowed` with the header `Allow`. Bodies are UTF-8, and their texts contain no NUL character. A \
key that appears twice in a body is refused.

Records are read with `GET`, and changed only with `PATCH`: there is no full replacement by `PUT`.";

/// Tags in the order in which documentation shows them.
const TAGS: [(&str, &str); 15] = [
    ("data", "The records of every object."),
    ("actions", "Actions that installed blocks declare."),
    ("schema", "Objects, fields and relationships, defined at run time."),
    ("events", "Events, their live stream, and their deliveries."),
    ("webhooks", "Signed events, sent to other services."),
    ("blocks", "Sandboxed extensions, installed at run time."),
    ("hooks", "Requests of other services to blocks."),
    ("graphql", "The same data as a graph, at one endpoint."),
    ("mcp", "Tools for agents, over the Model Context Protocol."),
    ("auth", "Sign-up, sign-in, guests and sessions."),
    ("roles", "Roles: named lists of permissions."),
    ("users", "Users, as administrators see them."),
    ("apiKeys", "Keys for programs, with the rights of one role."),
    ("tasks", "Tasks, which the service runs on a schedule."),
    ("service", "This document, the settings of the server, and its state."),
];

/// The document of the visible objects and actions.
pub(crate) fn build(visible: &Visible, service: &Service) -> Value {
    let actions = visible.actions.iter();
    let actions: Vec<_> =
        actions.filter_map(|(block, place)| Some((block.name(), block.manifest.actions.get(*place)?))).collect();
    build_with_actions(visible, &actions, service)
}

/// The document of the visible objects and of `actions`, each with the name of its block.
pub(crate) fn build_with_actions(visible: &Visible, actions: &[(&str, &ActionDeclaration)], service: &Service) -> Value {
    let mut paths = Paths::new(service.require_auth);
    let mut components = components::shared(service.cookie_name);
    for of_area in [
        data::filters_document::schemas(),
        data::where_document::schemas(),
        schema::schemas(),
        auth::sign::schemas(),
        accounts::roles::schemas(),
    ] {
        components.schemas.extend(of_area.as_object().cloned().unwrap_or_default());
    }
    let mut carried = Map::new();
    components.schemas.values_mut().for_each(|schema| take_components(schema, &mut carried));
    let mut tags: Vec<Value> = Vec::new();
    data::discover::describe(&mut paths);
    for (name, _) in &visible.objects {
        let Some(object) = visible.registry.object(name) else { continue };
        tags.push(data::document::object_tag(object));
        data::document::object(&mut paths, &mut components, visible, object, service.bulk_records_max);
    }
    data::batch::describe(&mut paths, service.bulk_records_max);
    blocks::actions_document::describe(&mut paths, &mut components, actions);
    schema::describe(&mut paths);
    openapi::describe(&mut paths);
    of_service::health::describe(&mut paths);
    me::describe_instance(&mut paths);
    of_service::settings::describe(&mut paths);
    of_service::audit::describe(&mut paths);
    blocks::describe(&mut paths);
    surfaces::graphql_document::describe(&mut paths);
    surfaces::mcp_document::describe(&mut paths);
    auth::describe(&mut paths);
    me::describe(&mut paths);
    accounts::describe(&mut paths);
    events::describe(&mut paths);
    tasks::describe(&mut paths);
    let (paths, of_answers) = paths.into_parts();
    components.schemas.extend(carried);
    components.schemas.extend(of_answers);
    let fixed = TAGS.iter().map(|(name, description)| json!({ "name": name, "description": description }));
    let tags: Vec<Value> = fixed.chain(tags).collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Blockbase",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "contact": { "name": "Blockbase" },
            "license": { "name": "Apache License 2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "The server that gave this document." }],
        "tags": tags,
        "paths": paths,
        "components": components.into_value(),
    });
    keep_referenced(&mut document);
    document
}

/// Removes components without a reference. A document with few objects needs few components.
fn keep_referenced(document: &mut Value) {
    let mut known = HashSet::new();
    let mut waiting = Vec::new();
    collect_references(&document["paths"], &mut waiting);
    while let Some(reference) = waiting.pop() {
        let Some(pointer) = reference.strip_prefix("#/components/") else { continue };
        let mut parts = pointer.split('/');
        let (Some(kind), Some(name)) = (parts.next(), parts.next()) else { continue };
        // A reference may also name a part of a component.
        if known.insert((kind.to_owned(), name.to_owned())) {
            collect_references(&document["components"][kind][name], &mut waiting);
        }
    }
    let Some(components) = document["components"].as_object_mut() else { return };
    for (kind, members) in components.iter_mut().filter(|(kind, _)| *kind != "securitySchemes") {
        if let Some(members) = members.as_object_mut() {
            members.retain(|name, _| known.contains(&(kind.clone(), name.clone())));
        }
    }
    components.retain(|_, members| members != &Value::Object(Map::new()));
}

fn collect_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                found.push(reference.clone());
            }
            members.values().for_each(|member| collect_references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        _ => {}
    }
}

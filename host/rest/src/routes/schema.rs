//! Objects, fields, relationships, and plans to change them.

pub(crate) mod change;
pub(crate) mod fields;
pub(crate) mod objects;
pub(crate) mod relationships;

use blockbase_app::OBJECT_MEMBERS_FIXED;
use blockbase_app::schema::{Field, ObjectDefinition, RelationshipDefinition};
use serde_json::{Value, json};

use crate::openapi::bodies::{body_of, changes_of};
use crate::openapi::operation::Paths;
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    objects::routes().merge(fields::routes()).merge(relationships::routes())
}

pub(crate) fn schemas() -> Value {
    json!({
        "SvcFieldInput": body_of::<Field>(),
        "SvcFieldChanges": changes_of::<Field>(&[]),
        "SvcObjectInput": body_of::<ObjectDefinition>(),
        "SvcObjectChanges": changes_of::<ObjectDefinition>(&OBJECT_MEMBERS_FIXED),
        "SvcRelationshipInput": body_of::<RelationshipDefinition>(),
    })
}

pub(crate) fn describe(paths: &mut Paths) {
    objects::describe(paths);
    fields::describe(paths);
    relationships::describe(paths);
    objects::describe_schema(paths);
}

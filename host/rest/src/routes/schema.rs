//! Objects, fields, relationships, and plans to change them.

pub(crate) mod change;
pub(crate) mod document;
pub(crate) mod fields;
pub(crate) mod objects;
pub(crate) mod relationships;

use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    objects::routes().merge(fields::routes()).merge(relationships::routes())
}

//! Schemas of members that may be left out of a definition.

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// An answer leaves such a member out if it has no value. A body may contain null instead.
pub(crate) fn optional<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    match generator.contract().is_deserialize() {
        true => generator.subschema_for::<Option<T>>(),
        false => generator.subschema_for::<T>(),
    }
}

//! Schemas of bodies, derived from the structs that read them: their members, types and doc comments.
//!
//! A member that may be left out and not be null is an `Option` with `schemars(with = …)`: serde alone cannot say it.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::answers::{generator, plain};

/// The schema of a body. It is written out: each body is of one operation.
pub(crate) fn body_of<T: JsonSchema>() -> Value {
    let mut schema = T::json_schema(&mut generator(SchemaSettings::draft2020_12().for_deserialize()));
    plain(&mut schema);
    schema.into()
}

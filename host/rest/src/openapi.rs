//! The building blocks of the OpenAPI document. The part of the document about an area is beside the area's routes.

pub(crate) mod answers;
pub(crate) mod bodies;
pub(crate) mod column;
pub(crate) mod components;
pub(crate) mod operation;
pub(crate) mod pattern;

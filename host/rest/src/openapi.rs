//! The parts that an OpenAPI document is made of. What it says of an area stands with the area's routes.

pub(crate) mod answers;
pub(crate) mod bodies;
pub(crate) mod column;
pub(crate) mod components;
pub(crate) mod operation;
pub(crate) mod pattern;

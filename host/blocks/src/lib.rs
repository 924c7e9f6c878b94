//! The sandbox of blocks: manifest checks, packed files, compilation, and calls.
//!
//! Calls run in instances, which are made from a compiled and linked component. An instance serves one call at a time. It is
//! dropped after its first call, unless the block asks for reuse. For everything that a guest requests, the host calls operations
//! of `app`. This crate must not know HTTP routes, tables, or how blocks are written and built.
//!
//! Its folders, from the lowest layer to the highest: `package` (the contents of a file), `engine` (limits guests and runs them),
//! `host` (the functions that guests may call), `runtime` (prepares blocks and calls them). A folder may only import from lower
//! layers.
#![deny(unsafe_code)]

mod engine;
mod host;
mod package;
mod runtime;

pub use engine::compile::{CompileLimits, compile_child};
pub use host::INTERFACES;
pub use package::manifest::parse_manifest;
pub use package::{MANIFEST_SECTION, check_component, manifest_of};
pub use runtime::description::{Description, description_of};
pub use runtime::{Runtime, RuntimeSettings};

//! The sandbox of blocks: manifest checks, packed files, compilation, and calls.
//!
//! A call runs in a separate instance. The instance is made from a compiled and linked component, and dropped afterwards. For
//! everything that a guest requests, the host calls operations of `app`. This crate must not know HTTP routes, tables, or how
//! blocks are written and built.
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

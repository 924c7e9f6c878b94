//! The sandbox of blocks: manifest checks, packed files, compilation, and calls.
//!
//! A call runs in an instance of its own. The instance is made from a compiled and linked component, and dropped afterwards. Everything
//! that a guest asks of its host goes to operations of `app`. This crate must not know HTTP routes, tables, or how blocks are written
//! and built.
//!
//! Its folders, the lowest first: `package` (what a file may hold), `engine` (what bounds guests and runs them), `host` (what
//! guests may ask for), `runtime` (blocks made ready, and their calls). A folder imports from lower ones only.
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

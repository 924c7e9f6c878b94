//! The sandbox of blocks: manifest checks, packed files, compilation, and calls.
//!
//! A call runs in an instance of its own, made from a compiled and linked component, and thrown away afterwards. Whatever a
//! guest asks of its host goes to operations of `app`. This crate must not know of HTTP routes, of tables, or
//! of how blocks are written and built.
#![deny(unsafe_code)]

mod bindings;
mod cache;
mod call;
mod compile;
mod description;
mod engine;
mod host;
mod lanes;
mod limits;
mod log_sink;
mod manifest;
mod origins;
mod package;
mod places;
mod runtime;
mod schema;

pub use compile::{CompileLimits, compile_child};
pub use description::{Description, description_of};
pub use host::INTERFACES;
pub use manifest::parse_manifest;
pub use package::{MANIFEST_SECTION, check_component, manifest_of};
pub use runtime::{Runtime, RuntimeSettings};

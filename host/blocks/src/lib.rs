//! Blocks: manifest checks, packages, compilation, and calls in a sandbox.
//!
//! A call runs in an instance of its own, made from a compiled and linked component, and thrown away afterwards. Whatever a
//! guest asks of its host goes to operations of `app`. This crate must not know of HTTP routes or of tables.
#![deny(unsafe_code)]

mod bindings;
mod cache;
mod call;
mod compile;
mod describe;
mod engine;
mod host;
mod interface;
mod lanes;
mod limits;
mod log_sink;
mod manifest;
mod origins;
mod package;
mod places;
mod runtime;
mod scaffold;
mod schema;
mod toolchain;

pub use compile::{CompileLimits, compile_child};
pub use describe::described;
pub use interface::{Interface, interface_of};
pub use manifest::parse_manifest;
pub use package::{PackError, componentize, manifest_of, pack};
pub use runtime::{Runtime, RuntimeSettings};
pub use scaffold::new_block;
pub use toolchain::{BuildOptions, BuiltBlock, Language, build};

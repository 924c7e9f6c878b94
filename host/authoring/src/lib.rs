//! The tools behind `blockbase block`: new blocks, builds in each language, manifests with additions from the code, packed files.
//!
//! Only the command line uses them. The crate `blocks` has the rules of manifests and packed files, and runs what was built. It does not
//! know this crate. This crate must not know a running service or the engine.
//!
//! It is a crate of its own, because a change here rebuilds in 14 seconds (not 84). It puts the SDKs and the interface into the binary,
//! so an author's SDK always fits the server.
#![forbid(unsafe_code)]

mod describe;
mod interface;
mod language;
mod pack;
mod scaffold;
mod toolchain;

pub use describe::described;
pub use interface::{Interface, interface_of};
pub use language::Language;
pub use pack::{PackError, componentize, pack};
pub use scaffold::new_block;
pub use toolchain::{BuildOptions, BuiltBlock, build};

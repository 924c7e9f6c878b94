//! The tools behind `blockbase block`: new blocks, builds in each language, manifests filled from code, packed files.
//!
//! Only the command line uses them. `blocks` says what a manifest and a packed file may be and runs what was built; it does not
//! know of this crate. This crate must not know of a running service or of the engine.
#![forbid(unsafe_code)]

mod describe;
mod interface;
mod pack;
mod scaffold;
mod toolchain;

pub use describe::described;
pub use interface::{Interface, interface_of};
pub use pack::{PackError, componentize, pack};
pub use scaffold::new_block;
pub use toolchain::{BuildOptions, BuiltBlock, Language, build};

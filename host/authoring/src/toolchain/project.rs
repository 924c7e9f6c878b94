//! The sources of a block, and the built block.

use std::path::PathBuf;

/// A block's folder, prepared for its compiler.
#[derive(Debug)]
pub(crate) struct Project {
    /// The absolute path of the folder with `block.json` and the sources.
    pub(super) directory: PathBuf,
    /// `.blockbase` in it, for the output of builds. It does not belong in version control.
    pub(super) work: PathBuf,
    /// The SDK of the language, unpacked.
    pub(super) sdk: PathBuf,
    /// A folder of WIT. Its world `blockbase:guest/block` imports the interfaces of `requires.plugins`, and exports everything
    /// that a block can export.
    pub(super) wit: PathBuf,
}

/// The options of a build.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildOptions {
    /// Run the install scripts of npm packages.
    pub allow_scripts: bool,
}

/// The file that a build has made. It is not packed yet.
#[derive(Debug)]
pub struct BuiltBlock {
    /// A component, or a core module that contains its component type.
    pub wasm: PathBuf,
    pub toolchain: String,
}

//! Blocks written in Go.

use super::{BuiltBlock, Project};

/// # Errors
/// A tool that is lacking, or sources that do not compile.
pub(super) fn build(project: &Project) -> Result<BuiltBlock, String> {
    Err(format!("{} is written in a language that this server cannot build yet.", project.directory.display()))
}

//! `block build`: builds a block with the tools of the machine, in the block's language.

mod c;
mod go;
mod javascript;
mod project;
mod python;
mod rust;
mod tools;

use std::path::Path;

use serde_json::Value;

use crate::language::Language;
use crate::scaffold;

use project::Project;
pub use project::{BuildOptions, BuiltBlock};

/// Builds the block in `directory` for release. The output of the tools goes to standard error.
///
/// # Errors
/// If the language is unknown, a tool is missing, or the sources do not compile.
pub fn build(directory: &Path, manifest: &Value, options: BuildOptions) -> Result<BuiltBlock, String> {
    let language = Language::of(directory)?;
    let directory = std::path::absolute(directory).map_err(|error| error.to_string())?;
    let work = directory.join(".blockbase");
    let project = Project { sdk: work.join("sdk"), wit: work.join("wit"), work, directory };
    scaffold::prepare(language, &project.sdk, &project.wit, &plugins(manifest))?;
    match language {
        Language::Rust => rust::build(&project),
        Language::JavaScript => javascript::build(&project, options),
        Language::Python => python::build(&project),
        Language::Go => go::build(&project),
        Language::C => c::build(&project),
    }
}

fn plugins(manifest: &Value) -> Vec<String> {
    let plugins = manifest["requires"]["plugins"].as_array();
    plugins.into_iter().flatten().filter_map(|plugin| plugin.as_str().map(str::to_owned)).collect()
}

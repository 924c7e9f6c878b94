//! `block new`, `build`, `pack`, `inspect`: the commands that need no server.

use std::path::{Path, PathBuf};

use blockbase_app::Manifest;
use blockbase_authoring::BuildOptions;

use super::Problem;
use super::terminal::{print_json, print_line};

/// The languages of `block new`.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum Language {
    Rust,
    /// JavaScript or TypeScript
    #[value(alias = "javascript", alias = "typescript", alias = "ts")]
    Js,
    Python,
    Go,
    C,
}

impl From<Language> for blockbase_authoring::Language {
    fn from(language: Language) -> Self {
        match language {
            Language::Rust => blockbase_authoring::Language::Rust,
            Language::Js => blockbase_authoring::Language::JavaScript,
            Language::Python => blockbase_authoring::Language::Python,
            Language::Go => blockbase_authoring::Language::Go,
            Language::C => blockbase_authoring::Language::C,
        }
    }
}

pub(super) fn new(name: &str, language: Language, directory: Option<PathBuf>) -> Result<(), Problem> {
    let directory = directory.unwrap_or_else(|| PathBuf::from(name));
    blockbase_authoring::new_block(language.into(), name, &directory)?;
    print_line(&format!("{} is made. Next: blockbase block build {}", directory.display(), directory.display()));
    Ok(())
}

/// A block that was built from its sources and packed, but not yet written to a file.
pub(super) struct Built {
    pub(super) file: Vec<u8>,
    pub(super) name: String,
    pub(super) toolchain: String,
}

/// Builds and packs the block in a directory.
pub(super) fn built(directory: &Path, options: BuildOptions) -> Result<Built, Problem> {
    // The manifest is checked first, so that its errors are reported before the compiler runs.
    let draft = read_text(&directory.join("block.json"))?;
    let name = blockbase_blocks::parse_manifest(&draft).map_err(|error| error.message)?.name;
    let draft = serde_json::from_str(&draft).map_err(|error| error.to_string())?;
    let built = blockbase_authoring::build(directory, &draft, options)?;
    let component = blockbase_authoring::componentize(&read(&built.wasm)?).map_err(|error| error.to_string())?;
    let manifest = blockbase_authoring::described(&component, draft)?;
    let file = blockbase_authoring::pack(&component, &manifest.to_string()).map_err(|error| error.to_string())?;
    Ok(Built { file, name, toolchain: built.toolchain })
}

pub(super) fn build(directory: &Path, out: Option<PathBuf>, options: BuildOptions) -> Result<(), Problem> {
    let Built { file, name, toolchain } = built(directory, options)?;
    let out = out.unwrap_or_else(|| directory.join(format!("{name}.wasm")));
    write(&out, &file)?;
    print_line(&format!("{} ({} bytes, built with {toolchain})", out.display(), file.len()));
    Ok(())
}

pub(super) fn pack(wasm: &Path, manifest: &Path, out: &Path) -> Result<(), Problem> {
    let packed = blockbase_authoring::pack(&read(wasm)?, &read_text(manifest)?).map_err(|error| error.to_string())?;
    write(out, &packed)
}

pub(super) fn inspect(file: &Path) -> Result<(), Problem> {
    let manifest = manifest(&read(file)?)?;
    print_json(&serde_json::to_value(&manifest).map_err(|error| error.to_string())?)
}

/// The manifest of a packed file.
pub(super) fn manifest(file: &[u8]) -> Result<Manifest, Problem> {
    blockbase_blocks::manifest_of(file).map_err(|error| Problem::Failed(error.message))
}

/// Writes a file completely or not at all. A process that reads it meanwhile sees the earlier file.
fn write(out: &Path, bytes: &[u8]) -> Result<(), Problem> {
    let part = out.with_extension(format!("{}.part", std::process::id()));
    let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, out)).inspect_err(|_| {
        let _ = std::fs::remove_file(&part);
    });
    written.map_err(|error| Problem::Failed(format!("{} cannot be written: {error}.", out.display())))
}

pub(super) fn read(file: &Path) -> Result<Vec<u8>, Problem> {
    std::fs::read(file).map_err(|error| Problem::Failed(format!("{} cannot be read: {error}.", file.display())))
}

pub(super) fn read_text(file: &Path) -> Result<String, Problem> {
    String::from_utf8(read(file)?).map_err(|_| Problem::Failed(format!("{} is not UTF-8.", file.display())))
}

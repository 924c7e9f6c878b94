//! `block build`: builds a block with the tools of the machine, in the block's language.

mod c;
mod go;
mod javascript;
mod python;
mod rust;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{pack, scaffold};

/// The languages that have an SDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Rust,
    /// JavaScript and TypeScript.
    JavaScript,
    Python,
    Go,
    C,
}

impl Language {
    pub const ALL: [Language; 5] = [Language::Rust, Language::JavaScript, Language::Python, Language::Go, Language::C];

    /// The folder of the language's SDK.
    pub fn folder(self) -> &'static str {
        match self {
            Language::Rust => "rust",
            Language::JavaScript => "js",
            Language::Python => "python",
            Language::Go => "go",
            Language::C => "c",
        }
    }

    /// The file by which the language of a block's folder is recognized.
    fn mark(self) -> &'static str {
        match self {
            Language::Rust => "Cargo.toml",
            Language::JavaScript => "package.json",
            Language::Python => "block.py",
            Language::Go => "go.mod",
            Language::C => "block.c",
        }
    }

    fn of(directory: &Path) -> Result<Language, String> {
        Language::ALL.into_iter().find(|language| directory.join(language.mark()).is_file()).ok_or_else(|| {
            let marks: Vec<&str> = Language::ALL.into_iter().map(Language::mark).collect();
            format!("{} holds none of {}, so its language is not known.", directory.display(), marks.join(", "))
        })
    }
}

/// A block's folder, prepared for its compiler.
#[derive(Debug)]
pub(crate) struct Project {
    /// The absolute path of the folder with `block.json` and the sources.
    directory: PathBuf,
    /// `.blockbase` in it, for the output of builds. It does not belong in version control.
    work: PathBuf,
    /// The SDK of the language, unpacked.
    sdk: PathBuf,
    /// A folder of WIT. Its world `blockbase:guest/block` imports the interfaces of `requires.plugins`, and exports everything
    /// that a block can export.
    wit: PathBuf,
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

/// The program names of the linker for WebAssembly.
const LINKERS: [&str; 6] = ["wasm-ld", "wasm-ld-21", "wasm-ld-20", "wasm-ld-19", "wasm-ld-18", "wasm-ld-17"];

/// Writes a copy of a linked core module that has the component type of a block.
fn typed(core: &Path) -> Result<PathBuf, String> {
    let module = std::fs::read(core).map_err(|error| format!("{} cannot be read: {error}.", core.display()))?;
    let module = pack::with_sdk_world(&module).map_err(|error| error.to_string())?;
    let wasm = core.with_file_name("block.wasm");
    std::fs::write(&wasm, module).map_err(|error| format!("{} cannot be written: {error}.", wasm.display()))?;
    Ok(wasm)
}

/// The standard output of a command that succeeded.
fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs a tool. Its standard output goes to standard error, because it is for people.
fn run(command: &mut Command, what: &str) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()
        .map_err(|error| format!("{program} cannot be started: {error}."))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{what} failed: {program} ended with {status}.")),
    }
}

/// The path of a program on the PATH.
fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file())
}

//! The command line. Exit 0: done; 1: failed; 2: usage or configuration.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::VARIABLES;
use crate::serve::{self, Failure};

/// The hidden command that compiles one component; the server runs itself with it.
pub(crate) const COMPILE_COMMAND: &str = "compile-component";

#[derive(Parser)]
#[command(
    name = "blockbase",
    version,
    about = "A backend in one binary: data objects at run time, events, and sandboxed WebAssembly blocks.",
    after_help = "Example:\n  blockbase serve            # SQLite in ./svc-data, on http://127.0.0.1:4000"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server
    #[command(after_help = serve_help())]
    Serve,
    /// Build, pack and look at blocks
    #[command(subcommand)]
    Block(BlockCommand),
    /// Compile a component from standard input to standard output
    #[command(name = COMPILE_COMMAND, hide = true)]
    CompileComponent { memory_bytes: u64, seconds: u64 },
}

#[derive(Subcommand)]
enum BlockCommand {
    /// Make a new block from a template
    #[command(after_help = "Example:\n  blockbase block new hello --language python      # makes the folder hello")]
    New {
        name: String,
        /// The language to write it in
        #[arg(short, long, default_value = "rust")]
        language: Language,
        /// Where to make it [default: a folder of the block's name]
        directory: Option<PathBuf>,
    },
    /// Build the block in a directory for WebAssembly and pack it
    #[command(after_help = "Example:\n  blockbase block build examples/tasks      # writes examples/tasks/tasks.wasm")]
    Build {
        /// Directory with block.json and the sources
        #[arg(default_value = ".")]
        directory: PathBuf,
        /// File to write [default: the name of the block with .wasm, in the directory]
        #[arg(short, long)]
        out: Option<PathBuf>,
    },
    /// Pack a component or core module with its manifest into one file
    #[command(after_help = "Example:\n  blockbase block pack core.wasm --manifest block.json --out tasks.wasm")]
    Pack {
        /// Component, or core module that carries its component type
        wasm: PathBuf,
        /// The manifest
        #[arg(short, long, default_value = "block.json")]
        manifest: PathBuf,
        /// File to write
        #[arg(short, long)]
        out: PathBuf,
    },
    /// Show the manifest of a packed file as JSON
    #[command(after_help = "Example:\n  blockbase block inspect tasks.wasm")]
    Inspect { file: PathBuf },
}

/// The languages of `block new`.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Language {
    Rust,
    /// JavaScript or TypeScript
    #[value(alias = "javascript", alias = "typescript", alias = "ts")]
    Js,
    Python,
    Go,
    C,
}

impl From<Language> for blockbase_blocks::Language {
    fn from(language: Language) -> Self {
        match language {
            Language::Rust => blockbase_blocks::Language::Rust,
            Language::Js => blockbase_blocks::Language::JavaScript,
            Language::Python => blockbase_blocks::Language::Python,
            Language::Go => blockbase_blocks::Language::Go,
            Language::C => blockbase_blocks::Language::C,
        }
    }
}

fn serve_help() -> String {
    let width = VARIABLES.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut help = "Environment:\n".to_owned();
    for (name, line) in VARIABLES {
        help.push_str(&format!("  {name:width$}  {line}\n"));
    }
    help.push_str("\nExample:\n  SVC_LISTEN=127.0.0.1:8080 blockbase serve");
    help
}

/// Prints a line for the user, who may have closed the pipe.
pub(crate) fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

fn print_error(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "blockbase: {line}");
}

/// Runs what the command line asks for.
pub(crate) fn run() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Serve => serve::serve(),
        Command::Block(command) => block(command).map_err(Failure::Boot),
        Command::CompileComponent { memory_bytes, seconds } => {
            // The parent reads the first line of standard error.
            return match blockbase_blocks::compile_child(memory_bytes, seconds) {
                Ok(()) => ExitCode::SUCCESS,
                Err(line) => {
                    let _ = writeln!(std::io::stderr().lock(), "{line}");
                    ExitCode::from(1)
                }
            };
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Configuration(line)) => {
            print_error(&line);
            ExitCode::from(2)
        }
        Err(Failure::Boot(line)) => {
            print_error(&line);
            ExitCode::from(1)
        }
    }
}

fn block(command: BlockCommand) -> Result<(), String> {
    match command {
        BlockCommand::New { name, language, directory } => {
            let directory = directory.unwrap_or_else(|| PathBuf::from(&name));
            blockbase_blocks::new_block(language.into(), &name, &directory)?;
            print_line(&format!("{} is made. Next: blockbase block build {}", directory.display(), directory.display()));
            Ok(())
        }
        BlockCommand::Build { directory, out } => build(&directory, out),
        BlockCommand::Pack { wasm, manifest, out } => pack(&read(&wasm)?, &read_text(&manifest)?, &out).map(|_| ()),
        BlockCommand::Inspect { file } => {
            let manifest = blockbase_blocks::manifest_of(&read(&file)?).map_err(|error| error.message)?;
            print_line(&serde_json::to_string_pretty(&manifest).map_err(|error| error.to_string())?);
            Ok(())
        }
    }
}

fn build(directory: &Path, out: Option<PathBuf>) -> Result<(), String> {
    let manifest = directory.join("block.json");
    // Whatever is wrong with the manifest is said before the compiler runs.
    let draft = read_text(&manifest)?;
    let name = blockbase_blocks::parse_manifest(&draft).map_err(|error| error.message)?.name;
    let draft = serde_json::from_str(&draft).map_err(|error| error.to_string())?;
    let built = blockbase_blocks::build(directory, &draft)?;
    let out = out.unwrap_or_else(|| directory.join(format!("{name}.wasm")));
    let component = blockbase_blocks::componentize(&read(&built.wasm)?).map_err(|error| error.to_string())?;
    let manifest = blockbase_blocks::described(&component, draft)?;
    let bytes = pack(&component, &manifest.to_string(), &out)?;
    print_line(&format!("{} ({bytes} bytes, built with {})", out.display(), built.toolchain));
    Ok(())
}

fn pack(wasm: &[u8], manifest: &str, out: &Path) -> Result<usize, String> {
    let packed = blockbase_blocks::pack(wasm, manifest).map_err(|error| error.to_string())?;
    write_whole(out, &packed).map_err(|error| format!("{} cannot be written: {error}.", out.display()))?;
    Ok(packed.len())
}

/// Writes a file whole or not at all: whoever reads it meanwhile sees the one before.
fn write_whole(out: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let part = out.with_extension(format!("{}.part", std::process::id()));
    std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, out)).inspect_err(|_| {
        let _ = std::fs::remove_file(&part);
    })
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{} cannot be read: {error}.", file.display()))
}

fn read_text(file: &Path) -> Result<String, String> {
    String::from_utf8(read(file)?).map_err(|_| format!("{} is not UTF-8.", file.display()))
}

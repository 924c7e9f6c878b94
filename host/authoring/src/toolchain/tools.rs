//! Runs the tools of the machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::pack;

/// The program names of the linker for WebAssembly.
pub(super) const LINKERS: [&str; 6] = ["wasm-ld", "wasm-ld-21", "wasm-ld-20", "wasm-ld-19", "wasm-ld-18", "wasm-ld-17"];

/// The size of the stack that a block in Rust or C has in its memory, in bytes. The stack comes first in memory, so that an overflow
/// traps. rustc gives 1 MiB by itself. Each call begins with a fresh memory, and a smaller one is written in less time.
const STACK_BYTES: u32 = 256 * 1024;

/// The linker's option for the size of the stack. If there are several, the linker takes the last one.
pub(super) fn stack_option() -> String {
    format!("-zstack-size={STACK_BYTES}")
}

/// Writes a copy of a linked core module that has the component type of a block.
pub(super) fn typed(core: &Path) -> Result<PathBuf, String> {
    let module = std::fs::read(core).map_err(|error| format!("{} cannot be read: {error}.", core.display()))?;
    let module = pack::with_sdk_world(&module).map_err(|error| error.to_string())?;
    let wasm = core.with_file_name("block.wasm");
    std::fs::write(&wasm, module).map_err(|error| format!("{} cannot be written: {error}.", wasm.display()))?;
    Ok(wasm)
}

/// The standard output of a command that succeeded.
pub(super) fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs a tool. Its standard output goes to standard error, because it is for people.
pub(super) fn run(command: &mut Command, what: &str) -> Result<(), String> {
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
pub(super) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file())
}

//! Blocks written in Rust: built with a target of rustup, or with the distribution's compiler and the source of the standard library.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::project::{BuiltBlock, Project};
use super::tools::{LINKERS, on_path, output, run, stack_option};

/// A way to build Rust for WebAssembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RustToolchain {
    /// rustup's target `wasm32-wasip2`, which makes components by itself.
    Wasip2,
    /// rustup's target `wasm32-unknown-unknown`.
    Unknown,
    /// The distribution's compiler, which builds the standard library from its source.
    Distribution { linker: &'static str },
}

impl RustToolchain {
    fn name(self) -> &'static str {
        match self {
            RustToolchain::Wasip2 => "rustc with the target wasm32-wasip2",
            RustToolchain::Unknown => "rustc with the target wasm32-unknown-unknown",
            RustToolchain::Distribution { .. } => "the distribution's rustc with the standard library's source",
        }
    }

    fn target(self) -> &'static str {
        match self {
            RustToolchain::Wasip2 => "wasm32-wasip2",
            _ => "wasm32-unknown-unknown",
        }
    }
}

/// The distribution's compiler and the source of its standard library.
const DISTRIBUTION_CARGO: &str = "/usr/bin/cargo";
const DISTRIBUTION_RUSTC: &str = "/usr/bin/rustc";

/// The advice for a machine that cannot build Rust for WebAssembly.
const INSTALL: &str = "No Rust compiler for WebAssembly was found. With rustup: `rustup target add wasm32-wasip2`. \
     On Debian or Ubuntu: `apt-get install --no-install-recommends rustc-web cargo-web rust-web-src lld-19` \
     (or rustc, cargo, rust-src and lld).";

fn find() -> Result<RustToolchain, String> {
    if let Some(sysroot) = output(Command::new("rustc").args(["--print", "sysroot"])) {
        let has = |target: &str| Path::new(&sysroot).join("lib/rustlib").join(target).join("lib").is_dir();
        if has("wasm32-wasip2") {
            return Ok(RustToolchain::Wasip2);
        }
        if has("wasm32-unknown-unknown") {
            return Ok(RustToolchain::Unknown);
        }
    }
    let distribution = output(Command::new(DISTRIBUTION_RUSTC).args(["--print", "sysroot"]))
        .filter(|sysroot| Path::new(sysroot).join("lib/rustlib/src/rust/library/std").is_dir())
        .filter(|_| Path::new(DISTRIBUTION_CARGO).is_file());
    let linker = LINKERS.into_iter().find(|linker| on_path(linker).is_some());
    match (distribution, linker) {
        (Some(_), Some(linker)) => Ok(RustToolchain::Distribution { linker }),
        _ => Err(INSTALL.to_owned()),
    }
}

/// # Errors
/// If no toolchain was found, or if the block does not compile.
pub(super) fn build(project: &Project) -> Result<BuiltBlock, String> {
    let directory = &project.directory;
    let toolchain = find()?;
    let mut cargo = match toolchain {
        RustToolchain::Distribution { linker } => {
            let mut cargo = Command::new(DISTRIBUTION_CARGO);
            let path = std::env::var_os("PATH").unwrap_or_default();
            let mut paths = vec![PathBuf::from("/usr/bin")];
            paths.extend(std::env::split_paths(&path));
            let path = std::env::join_paths(paths).map_err(|error| error.to_string())?;
            // The standard library can only be built with an unstable flag. A stable compiler accepts the flag with this variable.
            cargo
                .env("PATH", path)
                .env("RUSTC", DISTRIBUTION_RUSTC)
                .env("RUSTC_BOOTSTRAP", "1")
                .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)
                .env_remove("RUSTUP_TOOLCHAIN")
                .env_remove("CARGO")
                .env_remove("RUSTC_WRAPPER")
                .args(["rustc", "-Z", "build-std=std,panic_abort"]);
            cargo
        }
        _ => {
            let mut cargo = Command::new("cargo");
            cargo.arg("rustc");
            cargo
        }
    };
    let target_directory = target_directory(directory, toolchain)?;
    cargo.args(["--release", "--lib", "--target", toolchain.target()]);
    cargo.current_dir(directory).env("CARGO_TARGET_DIR", &target_directory);
    // Cargo writes the options of the block's build script after these, so it can name another size.
    cargo.args(["--", "-C", &format!("link-arg={}", stack_option())]);
    run(&mut cargo, &format!("The build with {}", toolchain.name()))?;
    let name = crate_name(directory)?;
    let wasm = target_directory.join(toolchain.target()).join("release").join(format!("{}.wasm", name.replace('-', "_")));
    match wasm.is_file() {
        true => Ok(BuiltBlock { wasm, toolchain: toolchain.name().to_owned() }),
        false => Err(format!("The build made no {}. Does Cargo.toml say `crate-type = [\"cdylib\"]`?", wasm.display())),
    }
}

/// A separate folder for each compiler. It is inside the folder that the user's setting names. Without this setting, it is inside
/// the block's `target`.
fn target_directory(directory: &Path, toolchain: RustToolchain) -> Result<PathBuf, String> {
    let base = match std::env::var_os("CARGO_TARGET_DIR").filter(|value| !value.is_empty()) {
        Some(base) => std::path::absolute(base).map_err(|error| error.to_string())?.join("blocks"),
        None => std::path::absolute(directory).map_err(|error| error.to_string())?.join("target"),
    };
    Ok(match toolchain {
        RustToolchain::Distribution { .. } => base.join("distribution"),
        _ => base,
    })
}

/// The `name` under `[lib]`. If there is none, the `name` under `[package]`.
fn crate_name(directory: &Path) -> Result<String, String> {
    let file = directory.join("Cargo.toml");
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{} cannot be read: {error}.", file.display()))?;
    let mut section = "";
    let mut package = None;
    let mut library = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if let Some((key, value)) = line.split_once('=')
            && key.trim() == "name"
        {
            let value = value.trim().trim_matches('"').to_owned();
            match section {
                "[package]" => package = Some(value),
                "[lib]" => library = Some(value),
                _ => {}
            }
        }
    }
    library.or(package).ok_or_else(|| format!("{} names no package.", file.display()))
}

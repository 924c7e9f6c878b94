//! Programs with packages of a registry that tests run. A file pins the versions of the packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{lock, target_directory};

/// A command in `directory`. Spaces separate its words.
pub fn command_in(words: &str, directory: &Path) -> Command {
    let mut words = words.split(' ');
    let name = words.next().expect("a program");
    // If the program is in the directory, the command uses its path there.
    let program = if name.contains('/') { directory.join(name) } else { PathBuf::from(name) };
    let mut command = Command::new(program);
    command.args(words).current_dir(directory);
    command
}

/// Writes the files into a folder of cargo's target folder, and runs the steps that install the packages, once for each content of the first
/// file, which pins them.
pub fn installed(name: &str, files: &[(&str, &str)], steps: &[&str]) -> PathBuf {
    // Only one installation runs at a time, because several tests may need the same packages.
    let _installing = lock(name);
    let directory = target_directory().join(name);
    std::fs::create_dir_all(&directory).expect("a directory");
    let installed = directory.join("installed");
    let pins = files[0].1;
    let is_installed = std::fs::read_to_string(&installed).is_ok_and(|known| known == pins);
    for (name, text) in files {
        let file = directory.join(name);
        // Equal files are not written again, because a running program may be reading them.
        if !std::fs::read_to_string(&file).is_ok_and(|known| known == *text) {
            std::fs::write(file, text).expect("a file");
        }
    }
    if !is_installed {
        for step in steps {
            let done = command_in(step, &directory).output().expect("npm (Node 20 or newer), python3 with venv");
            assert!(done.status.success(), "{step}: {}", String::from_utf8_lossy(&done.stderr));
        }
        std::fs::write(installed, pins).expect("a file");
    }
    directory
}

/// The steps that install the packages of `requirements.txt` into an environment `venv`.
pub const PIP_STEPS: [&str; 2] = [
    "python3 -m venv --clear venv",
    "venv/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: -r requirements.txt",
];

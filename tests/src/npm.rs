//! Programs from npm's registry that tests run. A lock file pins their versions.

use std::path::PathBuf;
use std::process::Command;

use crate::{lock, target_directory};

/// Writes the files of a package, including `package-lock.json`, into its own folder of cargo's target folder. The packages in it
/// are installed once for each lock file.
pub fn npm_package(name: &str, files: &[(&str, &str)]) -> PathBuf {
    // Only one installation runs at a time, because several tests may need the same package.
    let _installing = lock(name);
    let directory = target_directory().join(name);
    std::fs::create_dir_all(&directory).expect("a directory");
    for (file, text) in files {
        let place = directory.join(file);
        // Equal files are not written again, because a running program may be reading them.
        if !std::fs::read_to_string(&place).is_ok_and(|known| known == *text) {
            std::fs::write(place, text).expect("a file");
        }
    }
    let (_, lock) = files.iter().find(|(file, _)| *file == "package-lock.json").expect("a lock file");
    let installed = directory.join("installed-lock.json");
    if !std::fs::read_to_string(&installed).is_ok_and(|known| known == *lock) {
        let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        let done = Command::new("npm").args(arguments).current_dir(&directory).output().expect("npm (Node 20 or newer)");
        assert!(done.status.success(), "npm ci: {}", String::from_utf8_lossy(&done.stderr));
        std::fs::write(installed, lock).expect("a file");
    }
    directory
}

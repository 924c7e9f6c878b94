//! Builds the measured blocks. A block is built again when anything has changed that it is made of, so that no run measures a
//! block of an older SDK.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of the built blocks.
const BUILT: &str = "target/bench-guests";
/// What builds leave beside the sources.
const LEFT_BY_BUILDS: [&str; 5] = [".blockbase", "__pycache__", "node_modules", "package-lock.json", "target"];

/// The sources of a block.
pub(super) struct Sources<'a> {
    pub(super) folder: &'a Path,
    /// The folder of the SDK, if the sources name it by its path. They are built where they are. The others use the SDK inside
    /// the server's binary. They are built in a copy, because their builds write files beside the sources.
    pub(super) sdk: Option<&'a Path>,
}

pub(super) struct Builds<'a> {
    /// The server's binary, whose command line builds.
    binary: &'a Path,
    /// The digest of the binary. It contains the SDKs, the interface, and the options of the compilers.
    digest: DefaultHasher,
}

impl<'a> Builds<'a> {
    pub(super) fn by(binary: &'a Path) -> Builds<'a> {
        std::fs::create_dir_all(BUILT).unwrap();
        let mut digest = DefaultHasher::new();
        std::fs::read(binary).expect("the server's binary").hash(&mut digest);
        Builds { binary, digest }
    }

    /// The packed block of these sources: an earlier one if it is made of the same, or else a new one. `None` if it cannot be
    /// built here.
    pub(super) fn block(&self, name: &str, sources: &Sources<'_>) -> Option<PathBuf> {
        let file = Path::new(BUILT).join(format!("{name}.wasm"));
        let made_of = file.with_extension("digest");
        let digest = self.digest(sources);
        if file.is_file() && std::fs::read_to_string(&made_of).is_ok_and(|known| known == digest) {
            return Some(file);
        }
        // If the build ends early, the file has no digest, and the next run builds it again.
        let _ = std::fs::remove_file(&made_of);
        let folder = match sources.sdk {
            Some(_) => sources.folder.to_owned(),
            None => copied(sources.folder, &Path::new(BUILT).join(sources.folder.file_name().unwrap_or_default())),
        };
        if !self.build(&folder, &file) {
            return None;
        }
        std::fs::write(&made_of, digest).unwrap();
        Some(file)
    }

    /// The digest of all that a block is made of. It may differ with another version of Rust, which only causes one more build.
    fn digest(&self, sources: &Sources<'_>) -> String {
        let mut digest = self.digest.clone();
        for folder in [Some(sources.folder), sources.sdk].into_iter().flatten() {
            add_files(folder, &mut digest);
        }
        format!("{:016x}", digest.finish())
    }

    fn build(&self, folder: &Path, file: &Path) -> bool {
        eprintln!("building {}", folder.display());
        let mut command = Command::new(self.binary);
        command.args(["block", "build"]).arg(folder).arg("--out").arg(file).stdin(Stdio::null()).stdout(std::io::stderr());
        command.status().is_ok_and(|status| status.success())
    }
}

/// Copies the sources. The folder of the copy keeps what earlier builds of the same sources have left in it.
fn copied(folder: &Path, copy: &Path) -> PathBuf {
    let digest = |folder: &Path| {
        let mut digest = DefaultHasher::new();
        add_files(folder, &mut digest);
        digest.finish()
    };
    if digest(folder) != digest(copy) {
        // Nothing may stay of other sources: no file that was removed, and no package that they named.
        let _ = std::fs::remove_dir_all(copy);
    }
    std::fs::create_dir_all(copy).unwrap();
    let done = Command::new("cp").arg("-R").arg(folder.join(".")).arg(copy).status();
    assert!(done.is_ok_and(|status| status.success()), "the sources in {}", folder.display());
    copy.to_owned()
}

/// Adds the names and the contents of all sources in a folder to a digest.
fn add_files(folder: &Path, digest: &mut DefaultHasher) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_source(path)).collect();
    paths.sort();
    paths.len().hash(digest);
    for path in paths {
        path.file_name().hash(digest);
        if path.is_dir() {
            add_files(&path, digest);
        } else {
            std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).hash(digest);
        }
    }
}

fn is_source(path: &Path) -> bool {
    let is_left = path.file_name().is_some_and(|name| LEFT_BY_BUILDS.iter().any(|left| name == OsStr::new(left)));
    !is_left && path.extension() != Some(OsStr::new("wasm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_all_sources_and_of_nothing_that_builds_leave() {
        let directory = tempfile::tempdir().unwrap();
        let (block, sdk) = (directory.path().join("block"), directory.path().join("sdk"));
        let write = |path: PathBuf, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(block.join("src/lib.rs"), "a block");
        write(sdk.join("src/lib.rs"), "an SDK");
        let digest = |binary: &[u8], sdk: Option<&Path>| {
            let mut digest = DefaultHasher::new();
            binary.hash(&mut digest);
            Builds { binary: Path::new("blockbase"), digest }.digest(&Sources { folder: &block, sdk })
        };
        let first = digest(b"one", Some(sdk.as_path()));
        assert_eq!(first, digest(b"one", Some(sdk.as_path())));
        assert_ne!(first, digest(b"two", Some(sdk.as_path())), "another binary");
        assert_ne!(first, digest(b"one", None), "without the SDK's folder");
        write(block.join("target/release/block.wasm"), "built");
        write(block.join("node_modules/tool/index.js"), "installed");
        write(block.join("block.wasm"), "packed");
        assert_eq!(first, digest(b"one", Some(sdk.as_path())), "a build has left files");
        write(sdk.join("src/lib.rs"), "a newer SDK");
        let second = digest(b"one", Some(sdk.as_path()));
        assert_ne!(first, second, "another SDK");
        write(block.join("src/more.rs"), "");
        assert_ne!(second, digest(b"one", Some(sdk.as_path())), "one more source");
    }

    #[test]
    fn a_copy_keeps_what_builds_leave_until_the_sources_change() {
        let directory = tempfile::tempdir().unwrap();
        let (folder, copy) = (directory.path().join("folder"), directory.path().join("copy"));
        std::fs::create_dir(&folder).unwrap();
        for name in ["block.js", "old.js"] {
            std::fs::write(folder.join(name), name).unwrap();
        }
        assert_eq!(copied(&folder, &copy), copy);
        std::fs::create_dir(copy.join("node_modules")).unwrap();
        copied(&folder, &copy);
        assert!(copy.join("node_modules").is_dir() && copy.join("old.js").is_file());
        std::fs::remove_file(folder.join("old.js")).unwrap();
        copied(&folder, &copy);
        assert!(!copy.join("node_modules").exists() && !copy.join("old.js").exists() && copy.join("block.js").is_file());
    }
}

//! Lists the files of the SDKs and of the interface, so that the binary can include them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Folders and files that builds and tests leave in an SDK's folder.
const LEFT_OUT: [&str; 9] =
    ["target", "node_modules", "__pycache__", ".blockbase", ".venv", "dist", "tests", "Cargo.lock", ".gitignore"];

fn main() {
    // The variable is read at run time. With `env!`, a script that was compiled in another checkout would list that checkout's
    // files.
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let root = root.canonicalize().expect("the checkout");
    let mut files = Vec::new();
    for folder in ["sdk", "wit"] {
        walk(&root.join(folder), &mut files);
    }
    files.sort();
    let mut list = "&[\n".to_owned();
    for file in files {
        let name = file.strip_prefix(&root).expect("a file of the checkout").to_string_lossy().replace('\\', "/");
        writeln!(list, "  ({name:?}, include_bytes!({:?})),", file.display().to_string()).expect("a string takes all");
    }
    list.push_str("]\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("embedded.rs");
    std::fs::write(out, list).expect("the list is written");
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if LEFT_OUT.iter().any(|left_out| name == *left_out) || name.to_string_lossy().ends_with(".wasm") {
            continue;
        }
        match path.is_dir() {
            true => walk(&path, files),
            false => files.push(path),
        }
    }
}

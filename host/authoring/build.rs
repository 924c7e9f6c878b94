//! Lists the files of the SDKs and of the interface, so that the binary can include them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Folders and files that builds and tests leave in an SDK's folder.
const LEFT_OUT: [&str; 9] =
    ["target", "node_modules", "__pycache__", ".blockbase", ".venv", "dist", "tests", "Cargo.lock", ".gitignore"];

/// The checkout, from the package. All paths start at the package, the folder in which cargo runs this script. With absolute
/// paths, two checkouts that share a target folder could include the files of each other.
const ROOT: &str = "../..";

fn main() {
    let mut files = Vec::new();
    for folder in ["sdk", "wit"] {
        walk(&Path::new(ROOT).join(folder), &mut files);
    }
    files.sort();
    let mut list = "&[\n".to_owned();
    for file in files {
        let name = file.strip_prefix(ROOT).expect("a file of the checkout").to_string_lossy().replace('\\', "/");
        let path = format!("/{ROOT}/{name}");
        writeln!(list, "  ({name:?}, include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {path:?}))),")
            .expect("a string takes all");
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

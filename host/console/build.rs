//! Lists the built files of the console, so that the binary can include them.

use std::fmt::Write as _;
use std::path::PathBuf;

fn main() {
    // All paths start at the package, the folder in which cargo runs this script. With absolute paths, two checkouts that share a
    // target folder could include the files of each other.
    println!("cargo::rerun-if-changed=assets");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir("assets").expect("the folder assets").flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "gz"));
    files.sort();
    let mut list = "&[\n".to_owned();
    for file in files {
        let name = file.file_stem().expect("a name").to_string_lossy();
        let path = format!("/assets/{}", file.file_name().expect("a name").to_string_lossy());
        writeln!(list, "  ({name:?}, include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {path:?}))),")
            .expect("a string takes all");
    }
    list.push_str("]\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("assets.rs");
    std::fs::write(out, list).expect("the list is written");
}

//! Lists the built files of the console, so that the binary can include them.

use std::fmt::Write as _;
use std::path::PathBuf;

fn main() {
    // The variable is read at run time. With `env!`, a script that was compiled in another checkout would list that checkout's
    // files.
    let assets = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("assets");
    println!("cargo::rerun-if-changed={}", assets.display());
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&assets).expect("the folder assets").flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "gz"));
    files.sort();
    let mut list = "&[\n".to_owned();
    for file in files {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        writeln!(list, "  ({name:?}, include_bytes!({:?})),", file.display().to_string()).expect("a string takes all");
    }
    list.push_str("]\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("assets.rs");
    std::fs::write(out, list).expect("the list is written");
}

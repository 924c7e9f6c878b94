//! The blocks of this repository. The real command line builds each once per run.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::made_once;
use crate::server::{blockbase, target_directory};

/// The folder of the target directory that blocks share, so that their common dependencies are built once.
pub(crate) const GUESTS: &str = "guests";

/// Cargo's folder for blocks that tests build themselves. They share the dependencies of the guests.
pub fn guests_directory() -> PathBuf {
    target_directory().join(GUESTS)
}

/// The root of the checkout.
pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// The packed file of `examples/<name>`.
pub async fn example_block(name: &'static str) -> Vec<u8> {
    built("examples", name).await
}

/// The packed file of `tests/guests/<name>`, a block that only tests use.
pub async fn test_block(name: &'static str) -> Vec<u8> {
    built("tests/guests", name).await
}

/// The packed file of `blocks/<name>`.
pub async fn shipped_block(name: &'static str) -> Vec<u8> {
    built("blocks", name).await
}

async fn built(folder: &'static str, name: &'static str) -> Vec<u8> {
    tokio::task::spawn_blocking(move || made_once(&format!("{folder}/{name}"), || build_block(blockbase(), GUESTS, folder, name)))
        .await
        .expect("a built block")
}

/// The folder and the name of each Rust block that tests install.
pub(crate) fn block_sources() -> Vec<(&'static str, String)> {
    let mut sources = Vec::new();
    for folder in ["examples", "tests/guests", "blocks"] {
        for entry in std::fs::read_dir(checkout().join(folder)).expect("a folder of blocks") {
            let path = entry.expect("a folder of a block").path();
            if path.join("Cargo.toml").is_file() {
                sources.push((folder, path.file_name().expect("a name").to_string_lossy().into_owned()));
            }
        }
    }
    sources.sort();
    sources
}

/// The packed file of a block. Cargo builds it in this folder of the target directory.
pub(crate) fn build_block(blockbase: &Path, target: &str, folder: &str, name: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().join("block.wasm");
    let output = Command::new(blockbase)
        .args(["block", "build"])
        .arg(checkout().join(folder).join(name))
        .arg("--out")
        .arg(&out)
        .env("CARGO_TARGET_DIR", target_directory().join(target))
        .output()
        .expect("blockbase block build");
    assert!(output.status.success(), "{folder}/{name}: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(out).expect("a packed block")
}

/// Packs a component again, with another manifest.
///
/// # Errors
/// The error of the command line.
pub async fn pack(wasm: Vec<u8>, manifest: serde_json::Value) -> Result<Vec<u8>, String> {
    tokio::task::spawn_blocking(move || {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("in.wasm"), wasm).expect("a file");
        std::fs::write(path("block.json"), manifest.to_string()).expect("a file");
        let output = Command::new(blockbase())
            .args(["block", "pack"])
            .arg(path("in.wasm"))
            .arg("--manifest")
            .arg(path("block.json"))
            .arg("--out")
            .arg(path("out.wasm"))
            .output()
            .expect("blockbase block pack");
        match output.status.success() {
            true => Ok(std::fs::read(path("out.wasm")).expect("a packed block")),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    })
    .await
    .expect("a pack that ends")
}

/// The manifest of a packed file.
pub async fn inspect(wasm: Vec<u8>) -> serde_json::Value {
    tokio::task::spawn_blocking(move || {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), wasm).expect("a file");
        let output =
            Command::new(blockbase()).args(["block", "inspect"]).arg(file.path()).output().expect("blockbase block inspect");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    })
    .await
    .expect("a manifest")
}

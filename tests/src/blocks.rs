//! The blocks of this repository, built once a test process by the real command line.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};

use crate::server::{blockbase, target_directory};

/// Packed files by folder and name.
type Built = Mutex<HashMap<(&'static str, &'static str), Vec<u8>>>;

/// The root of the checkout.
pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// The packed file of `examples/<name>`.
pub async fn example_block(name: &'static str) -> Vec<u8> {
    built("examples", name).await
}

/// The packed file of `tests/guests/<name>`, a block for tests alone.
pub async fn test_block(name: &'static str) -> Vec<u8> {
    built("tests/guests", name).await
}

/// The packed file of `blocks/<name>`.
pub async fn shipped_block(name: &'static str) -> Vec<u8> {
    built("blocks", name).await
}

async fn built(folder: &'static str, name: &'static str) -> Vec<u8> {
    static BUILT: LazyLock<Built> = LazyLock::new(Built::default);
    tokio::task::spawn_blocking(move || {
        let mut built = BUILT.lock().expect("no poison");
        built.entry((folder, name)).or_insert_with(|| build(&checkout().join(folder).join(name))).clone()
    })
    .await
    .expect("a built block")
}

fn build(source: &Path) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().join("block.wasm");
    let output = Command::new(blockbase())
        .args(["block", "build"])
        .arg(source)
        .arg("--out")
        .arg(&out)
        // One target directory for all, so that the standard library is built once.
        .env("CARGO_TARGET_DIR", target_directory().join("guests"))
        .output()
        .expect("blockbase block build");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(out).expect("a packed block")
}

/// Packs a component anew with another manifest.
///
/// # Errors
/// What the command line says.
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

//! Compiled components on disk, so that a restart compiles nothing. The server loads only files that it wrote itself. Each file
//! contains a MAC that was made with the master secret. The MAC covers the code, its digest and the engine.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

const MAC_BYTES: usize = 32;

pub(crate) struct CompileCache {
    directory: PathBuf,
    key: Hmac<Sha256>,
    /// The engine's version and settings. The cache does not read code for another engine.
    engine: String,
}

/// A stable hash of everything that the engine's code depends on, as the engine reports it.
#[derive(Default)]
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

impl CompileCache {
    /// # Errors
    /// A sentence for the operator.
    pub(crate) fn open(directory: &Path, secret: &[u8], engine: &Engine) -> Result<CompileCache, String> {
        std::fs::create_dir_all(directory)
            .map_err(|error| format!("The directory {} cannot be made: {error}.", directory.display()))?;
        let mut hasher = Sha256Hasher::default();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Ok(CompileCache {
            directory: directory.to_owned(),
            key: Hmac::new_from_slice(secret).map_err(|error| error.to_string())?,
            engine: format!("{:016x}", hasher.finish()),
        })
    }

    fn file(&self, digest: &str) -> PathBuf {
        self.directory.join(format!("{}-{}.cwasm", digest.replace(':', "-"), self.engine))
    }

    fn mac(&self, digest: &str, code: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.key.clone();
        for part in [b"compiled block".as_slice(), digest.as_bytes(), self.engine.as_bytes(), code] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac
    }

    /// The compiled component with a digest, if this server wrote it for this engine.
    pub(crate) fn load(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let bytes = std::fs::read(self.file(digest)).ok()?;
        let (mac, code) = bytes.split_at_checked(MAC_BYTES)?;
        self.mac(digest, code).verify_slice(mac).ok()?;
        deserialize(engine, code).ok()
    }

    /// Drops the files of other blocks, of other engines, and of writes that did not finish.
    pub(crate) fn retain(&self, digests: &HashSet<String>) {
        let whole = digests.iter().map(|digest| self.file(digest));
        let wanted: HashSet<PathBuf> = whole.flat_map(|file| [partial(&file), file]).collect();
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().filter_map(Result::ok);
        for file in entries.map(|entry| entry.path()).filter(|file| !wanted.contains(file)) {
            // The removal can fail, because the file is still being written or another refresh has removed it. This needs no log line.
            let _ = std::fs::remove_file(file);
        }
    }

    /// Loads the compiler's output and stores it on disk. If the cache cannot be written, the server is slower but works
    /// correctly.
    pub(crate) fn keep(&self, engine: &Engine, digest: &str, code: &[u8]) -> wasmtime::Result<Component> {
        let file = self.file(digest);
        let component = deserialize(engine, code)?;
        let mac = self.mac(digest, code).finalize().into_bytes();
        // The file appears complete or not at all, so a reader never sees a part of it.
        let partial = partial(&file);
        let kept = std::fs::File::create(&partial)
            .and_then(|mut out| out.write_all(&mac).and_then(|()| out.write_all(code)))
            .and_then(|()| std::fs::rename(&partial, &file));
        if let Err(error) = kept {
            tracing::warn!(error.cause = %error, "a compiled block could not be kept");
        }
        Ok(component)
    }
}

/// The path to which a file is written until it is complete.
fn partial(file: &Path) -> PathBuf {
    file.with_extension(format!("{}.partial", std::process::id()))
}

/// Loads machine code.
///
/// The bytes must come from this server's own compiler, or have a valid MAC of this server.
#[expect(unsafe_code, reason = "the code was made or signed by this server")]
fn deserialize(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: `Component::deserialize` demands unchanged bytes from `precompile_component`. `keep` gets them from the compiling child
    // over a pipe. `load` has verified their MAC, whose key never leaves the server.
    unsafe { Component::deserialize(engine, code) }
}

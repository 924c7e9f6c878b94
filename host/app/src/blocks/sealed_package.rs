//! Packed files as the database stores them.
//!
//! A manifest may declare values of headers, which are often a receiver's credentials. A file with such a manifest is sealed as a whole.
//! When the file is needed, it is opened byte for byte, so that its digest stays the same. Other files are stored unchanged.

use blockbase_auth::{SecretBox, Unsealed};
use blockbase_schema::{Code, Error, Result};
use blockbase_store::{ReadCost, Service};
use bytes::Bytes;

use crate::App;
use crate::state::manifest::Manifest;

/// The beginning of a sealed file. A packed file begins with the magic bytes of WebAssembly instead.
const SEALED: &[u8] = b"svc-sealed:";

/// The purpose for which a file is encrypted.
fn purpose(digest: &str) -> String {
    format!("block-file:{digest}")
}

fn sealed(secrets: &SecretBox, digest: &str, file: &[u8]) -> Result<Vec<u8>> {
    let sealed = secrets.seal_bytes(&purpose(digest), file).map_err(Error::internal)?;
    Ok([SEALED, &sealed].concat())
}

impl App {
    /// The form in which a packed file is stored.
    pub(super) async fn file_to_store(&self, manifest: &Manifest, digest: &str, file: Bytes) -> Result<Bytes> {
        if !manifest.has_header_values() {
            return Ok(file);
        }
        let (secrets, digest) = (self.secrets.clone(), digest.to_owned());
        let seal = move || sealed(&secrets, &digest, &file).map(Bytes::from);
        tokio::task::spawn_blocking(seal).await.map_err(Error::internal)?
    }

    /// The packed file of a stored version. `None` if the version is not stored.
    ///
    /// # Errors
    /// `unavailable` if it was sealed with another master secret.
    pub(super) async fn stored_file(&self, block: &str, version: &str, digest: &str) -> Result<Option<Vec<u8>>> {
        let (key, wanted) = (block.to_owned(), version.to_owned());
        let stored = self
            .store
            .read_as_service(ReadCost::Scan, move |connection| {
                Box::pin(async move { Ok(connection.block_component(&key, &wanted).await?) })
            })
            .await?;
        let stored = match stored {
            Some(stored) if stored.starts_with(SEALED) => stored,
            plain => return Ok(plain),
        };
        let (secrets, purpose) = (self.secrets.clone(), purpose(digest));
        let open = move || secrets.open_bytes(&purpose, &stored[SEALED.len()..]);
        tokio::task::spawn_blocking(open).await.map_err(Error::internal)?.map(Some).map_err(|problem| {
            let why = match problem {
                Unsealed::OtherKey => "was stored under another SVC_SECRET",
                // Another file may have replaced the version a moment ago.
                Unsealed::Broken => "cannot be read, or was replaced meanwhile",
            };
            let message = format!("The file of version {version} of the block `{block}` {why}. Try again, or install it again.");
            Error::new(Code::Unavailable, message)
        })
    }

    /// Seals the files that an earlier version of the server stored unsealed. Does nothing if all are sealed already.
    pub(crate) async fn seal_stored_files(&self) -> Result<()> {
        let versions = self
            .store
            .read_as_service(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.block_versions().await?) }))
            .await?;
        let mut has_sealed = false;
        for (block, version, digest, manifest) in versions {
            if !serde_json::from_str::<Manifest>(&manifest).is_ok_and(|manifest| manifest.has_header_values()) {
                continue;
            }
            let secrets = self.secrets.clone();
            has_sealed |= self
                .store
                .write_in_reserve(Service, move |connection| {
                    Box::pin(async move {
                        let stored = connection.block_component(&block, &version).await?;
                        let Some(plain) = stored.filter(|stored| !stored.starts_with(SEALED)) else { return Ok(false) };
                        let sealed = sealed(&secrets, &digest, &plain)?;
                        Ok(connection.set_block_component(&block, (&version, &digest), sealed).await?)
                    })
                })
                .await?;
        }
        // The database's log still contains the unsealed files.
        if has_sealed { self.store.forget_deleted().await } else { Ok(()) }
    }
}

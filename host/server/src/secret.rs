//! The master secret. It comes from the configuration, or is generated once and stored in the data directory.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

/// The number of random bytes of a generated secret, which are 256 bits. The file has them in hexadecimal.
const GENERATED_BYTES: usize = 32;

/// A secret from a file.
pub(crate) struct LoadedSecret {
    pub(crate) secret: String,
    /// Whether this call made the file.
    pub(crate) is_new: bool,
}

/// The secret in the file. It is made if the file does not exist. Only the owner can read the file.
pub(crate) fn load_or_generate(file: &Path) -> Result<LoadedSecret, String> {
    let explain = |error: std::io::Error| format!("The secret in {} cannot be used: {error}.", file.display());
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(file) {
        Ok(mut created) => {
            let mut bytes = [0_u8; GENERATED_BYTES];
            getrandom::fill(&mut bytes).map_err(|error| format!("The operating system did not give random bytes: {error}."))?;
            let secret: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            created.write_all(secret.as_bytes()).and_then(|()| created.sync_all()).map_err(explain)?;
            Ok(LoadedSecret { secret, is_new: true })
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let mut secret = String::new();
            std::fs::File::open(file).and_then(|mut file| file.read_to_string(&mut secret)).map_err(explain)?;
            let secret = secret.trim().to_owned();
            match secret.len() >= GENERATED_BYTES {
                true => Ok(LoadedSecret { secret, is_new: false }),
                false => Err(format!(
                    "The secret in {} is too short. A boot may have been interrupted. Delete the file to make a new secret. All sessions then end.",
                    file.display()
                )),
            }
        }
        Err(error) => Err(explain(error)),
    }
}

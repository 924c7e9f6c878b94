//! The data directory: made if it is not there, and one process at a time on it.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// The directory; the lock lasts as long as this lives, and the system lets go of it when the process ends however it does.
pub(crate) struct DataDir {
    path: PathBuf,
    _lock: Option<File>,
}

impl DataDir {
    /// Opens the directory. `exclusive` on SQLite, where two processes on one file would each believe to be the only writer.
    pub(crate) fn open(path: &Path, exclusive: bool) -> Result<DataDir, String> {
        let explain =
            |error: std::io::Error| format!("The data directory {} (SVC_DATA_DIR) cannot be used: {error}.", path.display());
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        // One that is there already keeps the mode that its owner gave it.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path).map_err(explain)?;
        let lock = match exclusive {
            false => None,
            true => {
                let file =
                    OpenOptions::new().create(true).truncate(false).write(true).open(path.join("svc.lock")).map_err(explain)?;
                match file.try_lock() {
                    Ok(()) => Some(file),
                    Err(TryLockError::WouldBlock) => {
                        return Err(format!(
                            "Another blockbase runs on the data directory {}. Stop it, or give this one another SVC_DATA_DIR.",
                            path.display()
                        ));
                    }
                    Err(TryLockError::Error(error)) => return Err(explain(error)),
                }
            }
        };
        Ok(DataDir { path: path.to_owned(), _lock: lock })
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

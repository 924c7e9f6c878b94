//! The data directory: made if it is not there, and one process at a time on it.

use std::fs::{File, OpenOptions, TryLockError};
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
        std::fs::create_dir_all(path).map_err(explain)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Best effort: a directory of another owner keeps the mode that its owner gave it.
            let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700));
        }
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

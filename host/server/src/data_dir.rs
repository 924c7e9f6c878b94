//! The data directory. It is made if it does not exist. Other users of the machine cannot access it, and it is locked by one
//! process.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// The directory. The lock lasts as long as this value. The system releases it when the process ends in any way.
pub(crate) struct DataDir {
    path: PathBuf,
    _lock: Option<File>,
}

/// The reason why the directory cannot be used.
pub(crate) enum Unusable {
    /// Other users of the machine may write to it. Only the operator can decide what to do.
    OpenToOthers(String),
    Other(String),
}

impl DataDir {
    /// Opens the directory. With SQLite, `exclusive` is set, because two processes with the same file would each assume that they
    /// are the only writer.
    ///
    /// From now on, only the owner can read the files that this process makes.
    pub(crate) fn open(path: &Path, exclusive: bool) -> Result<DataDir, Unusable> {
        let explain = |error: std::io::Error| {
            Unusable::Other(format!("The data directory {} (SVC_DATA_DIR) cannot be used: {error}.", path.display()))
        };
        #[cfg(unix)]
        modes::own_files_alone();
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, modes::DIRECTORY);
        builder.create(path).map_err(explain)?;
        #[cfg(unix)]
        modes::close(path)?;
        let lock = match exclusive {
            false => None,
            true => {
                let file =
                    OpenOptions::new().create(true).truncate(false).write(true).open(path.join("svc.lock")).map_err(explain)?;
                match file.try_lock() {
                    Ok(()) => Some(file),
                    Err(TryLockError::WouldBlock) => {
                        return Err(Unusable::Other(format!(
                            "Another blockbase runs on the data directory {}. Stop it, or give this one another SVC_DATA_DIR.",
                            path.display()
                        )));
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

#[cfg(unix)]
mod modes {
    //! Permissions of directories and files. They do not depend on the umask, or on who made the files.

    use std::fs::{Metadata, Permissions, set_permissions, symlink_metadata};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    use super::Unusable;

    pub(super) const DIRECTORY: u32 = 0o700;
    const FILE: u32 = 0o600;
    /// The write bits of the group and of others.
    const OTHERS_WRITE: u32 = 0o022;
    /// The maximum depth of the service's own files, for example `svc-data/blocks/…`.
    const DEPTH_MAX: usize = 4;

    /// Removes all rights of other users from files that this process makes from now on.
    pub(super) fn own_files_alone() {
        rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    }

    /// Refuses a directory that others may write to. If others may only read it, it removes that right.
    pub(super) fn close(path: &Path) -> Result<(), Unusable> {
        let explain = |error: std::io::Error| {
            Unusable::Other(format!("The data directory {} (SVC_DATA_DIR) cannot be used: {error}.", path.display()))
        };
        let found = std::fs::metadata(path).map_err(explain)?;
        let mode = found.permissions().mode() & 0o7777;
        if mode & OTHERS_WRITE != 0 {
            // Another user may have put their own database or secret there.
            return Err(Unusable::OpenToOthers(format!(
                "The data directory {0} (SVC_DATA_DIR) can be written to by other users of this machine (mode {mode:04o}). \
                 Look whether all that is in it is yours, then run `chmod 700 {0}`.",
                path.display()
            )));
        }
        narrow(path, &found, DIRECTORY).map_err(|error| {
            Unusable::OpenToOthers(format!(
                "The data directory {} (SVC_DATA_DIR) can be read by other users of this machine (mode {mode:04o}), and this \
                 process may not change that: {error}. Give the directory to the user that it runs as.",
                path.display()
            ))
        })?;
        close_below(path, &[found.uid(), rustix::process::geteuid().as_raw()], DEPTH_MAX).map_err(explain)
    }

    /// Removes the rights of others from entries that belong to one of `owners`. It does not change entries of other users, such
    /// as `lost+found` of a volume, which belongs to root. It does not change links either, because they may lead to files that
    /// do not belong to the service.
    fn close_below(directory: &Path, owners: &[u32], depth: usize) -> std::io::Result<()> {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            let Ok(found) = symlink_metadata(&path) else { continue };
            if !owners.contains(&found.uid()) {
                continue;
            }
            if found.is_dir() && depth > 0 {
                narrow(&path, &found, DIRECTORY)?;
                close_below(&path, owners, depth - 1)?;
            } else if found.is_file() {
                narrow(&path, &found, FILE)?;
            }
        }
        Ok(())
    }

    fn narrow(path: &Path, found: &Metadata, mode: u32) -> std::io::Result<()> {
        match found.permissions().mode() & 0o777 == mode {
            true => Ok(()),
            false => set_permissions(path, Permissions::from_mode(mode)),
        }
    }
}

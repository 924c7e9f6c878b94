//! Measures the free room on the file system of the database. Below a limit, ordinary writes are refused, so that writes that
//! free room still work.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// If there is less room than this, writes are refused. The room is on the file system, or free within the file.
const ROOM_BYTES_MIN: u64 = 64 * 1024 * 1024;
/// The room that the file system itself needs, because the write-ahead log cannot use free pages of the file.
const LOG_BYTES_MIN: u64 = 16 * 1024 * 1024;
/// How long a measured value is used.
const KEPT: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(crate) struct Space(Mutex<Option<(Instant, bool)>>);

impl Space {
    /// Whether there is room on the file system of `file`, or within the file. `free_in_file` returns the number of free bytes in
    /// the file.
    pub(crate) fn has_room(&self, file: &Path, free_in_file: impl FnOnce() -> u64) -> bool {
        let mut known = self.0.lock();
        if let Some((at, has_room)) = *known
            && at.elapsed() < KEPT
        {
            return has_room;
        }
        let has_room = match rustix::fs::statvfs(file) {
            Ok(system) => is_enough(system.f_bavail.saturating_mul(system.f_frsize), free_in_file),
            // Not every file system reports its free room. Then the engine reports a full disk.
            Err(_) => true,
        };
        if known.is_some_and(|(_, before)| before != has_room) || (known.is_none() && !has_room) {
            match has_room {
                true => tracing::info!("there is room in the data directory again; writes are taken"),
                false => {
                    tracing::error!("less than 64 MiB are free in the data directory; writes are refused until there is room")
                }
            }
        }
        *known = Some((Instant::now(), has_room));
        has_room
    }
}

/// The directory for SQLite's temporary files, for example those of sorts, within the directory of the database.
const SORT_DIRECTORY: &str = "sort";
/// The prefix of the names of these files. Such a name exists only for a moment, because SQLite opens a file and then removes its
/// name.
const SORT_FILE_PREFIX: &str = "etilqs_";

/// The directory for the sorts of readers.
#[derive(Debug)]
pub(crate) struct SortRoom(PathBuf);

impl SortRoom {
    /// Makes the directory beside the database `file`, and removes files that a killed process left in it.
    pub(crate) fn new(file: &Path) -> std::io::Result<SortRoom> {
        let directory = std::path::absolute(file)?.with_file_name(SORT_DIRECTORY);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(SORT_FILE_PREFIX.as_bytes())) {
                match std::fs::remove_file(path) {
                    // The file belonged to another process, which has just removed the name.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    removed => removed?,
                }
            }
        }
        Ok(SortRoom(directory))
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.0
    }

    /// Whether a sort leaves enough room for writes. A sort cannot use free pages of the database.
    pub(crate) fn has_room(&self) -> bool {
        // Not every file system reports its free room. Then the engine reports a full disk.
        rustix::fs::statvfs(&self.0).map_or(true, |system| system.f_bavail.saturating_mul(system.f_frsize) >= ROOM_BYTES_MIN)
    }
}

/// Whether `free` bytes of the file system are enough, together with those that are free within the file.
fn is_enough(free: u64, free_in_file: impl FnOnce() -> u64) -> bool {
    free >= ROOM_BYTES_MIN || (free >= LOG_BYTES_MIN && free.saturating_add(free_in_file()) >= ROOM_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_pages_of_the_file_count_while_the_log_has_room() {
        assert!(is_enough(ROOM_BYTES_MIN, || 0));
        assert!(!is_enough(ROOM_BYTES_MIN - 1, || 0));
        assert!(is_enough(LOG_BYTES_MIN, || ROOM_BYTES_MIN - LOG_BYTES_MIN));
        assert!(!is_enough(LOG_BYTES_MIN, || ROOM_BYTES_MIN - LOG_BYTES_MIN - 1));
        assert!(!is_enough(LOG_BYTES_MIN - 1, || u64::MAX));
        assert!(is_enough(LOG_BYTES_MIN, || u64::MAX));
    }

    #[test]
    fn the_directory_of_sorts_is_made_and_cleaned() {
        let place = std::env::temp_dir().join(format!("blockbase-sorts-{}", uuid::Uuid::new_v4()));
        let file = place.join("svc.db");
        std::fs::create_dir_all(place.join(SORT_DIRECTORY)).expect("a directory");
        let left = place.join(SORT_DIRECTORY).join("etilqs_0123");
        let other = place.join(SORT_DIRECTORY).join("other");
        std::fs::write(&left, "rows").expect("a file");
        std::fs::write(&other, "not SQLite's").expect("a file");
        let room = SortRoom::new(&file).expect("a directory");
        assert_eq!(room.directory(), place.join(SORT_DIRECTORY));
        assert!(!left.exists() && other.exists());
        std::fs::remove_dir_all(&place).expect("the directory goes");
        assert!(SortRoom::new(&file).is_ok(), "it is made");
        std::fs::remove_dir_all(&place).expect("the directory goes");
    }

    #[test]
    fn an_answer_counts_for_a_while() {
        let (space, file) = (Space::default(), Path::new("/no such file"));
        *space.0.lock() = Some((Instant::now(), false));
        assert!(!space.has_room(file, || 0));
        *space.0.lock() = Instant::now().checked_sub(KEPT).map(|at| (at, false));
        assert!(space.has_room(file, || 0), "the engine has the last word where nothing is known");
    }
}

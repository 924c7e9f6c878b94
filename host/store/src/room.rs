//! The disk space of the database.

/// The disk space that the database uses and has, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The size of the database. On SQLite, this is the file and its write-ahead log.
    pub size_bytes: i64,
    /// The free space of the file system, if it is known. Only on SQLite.
    pub free_bytes: Option<i64>,
    pub total_bytes: Option<i64>,
    /// Whether the database accepts writes, as far as this process knows.
    pub is_enough: bool,
}

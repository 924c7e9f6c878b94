//! A connection of the driver, with the settings of this server.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection as Driver, OpenFlags};

use super::functions;
use super::meter::{Meter, STEPS_A_REPORT};

/// The number of prepared statements that each connection keeps.
const STATEMENTS_KEPT: usize = 256;
/// The page cache of one reader, in KiB.
const READER_CACHE_KIB: i64 = 4 * 1024;
/// The page cache of the writer, in KiB.
const WRITER_CACHE_KIB: i64 = 16 * 1024;
/// The number of bytes of the file that a connection maps. It is SQLite's maximum. Mapped reads come from the system's cache,
/// which all connections share. docs/benchmarks.md shows the cost of a smaller value.
const MAPPED_BYTES: i64 = 2 * 1024 * 1024 * 1024 - 64 * 1024;
/// How long a connection waits for a lock of a foreign process, such as a backup or a shell.
pub(crate) const BUSY_WAIT: Duration = Duration::from_secs(5);

/// A connection of the driver, and the meter of its reads.
pub(crate) struct Session {
    driver: Driver,
    pub(crate) meter: Arc<Meter>,
}

impl Session {
    pub(crate) fn open(file: &Path, is_writer: bool) -> rusqlite::Result<Session> {
        let meter: Arc<Meter> = Arc::default();
        let driver = open_driver(file, is_writer, &meter)?;
        let of_connection = Arc::clone(&meter);
        driver.progress_handler(STEPS_A_REPORT, Some(move || of_connection.step(STEPS_A_REPORT).is_err()))?;
        Ok(Session { driver, meter })
    }
}

impl Deref for Session {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        &self.driver
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Driver {
        &mut self.driver
    }
}

fn open_driver(file: &Path, is_writer: bool, meter: &Arc<Meter>) -> rusqlite::Result<Driver> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if is_writer {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let driver = Driver::open_with_flags(file, flags)?;
    driver.busy_timeout(BUSY_WAIT)?;
    driver.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    driver.pragma_update(None, "journal_mode", "WAL")?;
    driver.pragma_update(None, "synchronous", "FULL")?;
    driver.pragma_update(None, "foreign_keys", true)?;
    driver.pragma_update(None, "trusted_schema", false)?;
    // Deleted content is overwritten with zeros, so that nobody can read it from the file.
    driver.pragma_update(None, "secure_delete", true)?;
    // A reader may sort the whole database, so its sorts use files, which limits its memory. SQLite makes a file only if the
    // cache is too small. The size of the writer's temporary data is limited, because one call may change only a limited amount.
    driver.pragma_update(None, "temp_store", if is_writer { "MEMORY" } else { "FILE" })?;
    driver.pragma_update(None, "mmap_size", MAPPED_BYTES)?;
    driver.pragma_update(None, "cache_size", if is_writer { -WRITER_CACHE_KIB } else { -READER_CACHE_KIB })?;
    driver.pragma_update(None, "query_only", !is_writer)?;
    // Without this, a value that is bound to LIMIT makes the prepared statement invalid, so that every list is parsed and planned
    // again.
    driver.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    functions::register(&driver, meter)?;
    Ok(driver)
}

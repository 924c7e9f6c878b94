//! Everything that the test processes of one run share: a folder, files that are made once, and locks between processes.
//!
//! `with-fixtures` makes the folder, and names it in the environment. A test that runs without it makes everything itself.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use crate::blocks::{GUESTS, block_sources, build_block};
use crate::server::target_directory;

/// The variable with the folder of the run.
const DIRECTORY: &str = "BLOCKBASE_TEST_RUN";
/// The variable with the binary that all tests run.
const BINARY: &str = "BLOCKBASE_TEST_BINARY";
/// The variable with the port of the Postgres that all tests share.
const POSTGRES_PORT: &str = "BLOCKBASE_TEST_POSTGRES_PORT";
/// The file in the run's folder with the id of the process that began the run.
const PROCESS: &str = "process";
/// The variable that the long command sets.
const LONG: &str = "BLOCKBASE_TEST_LONG";

/// Folders of the target directory in which blocks are built. The first one is also used for single builds.
const BUILD_LANES: [&str; 2] = [GUESTS, "guests-2"];

/// Whether the long command runs. Then tests with many rounds or seeds run all of them.
pub fn is_long() -> bool {
    std::env::var_os(LONG).is_some()
}

/// Everything that the test processes of one run share.
pub struct Fixtures {
    /// The folder for files that are made once.
    directory: PathBuf,
    binary: PathBuf,
    postgres_port: u16,
}

impl Fixtures {
    /// Fixtures in this folder, made by this process.
    pub fn new(directory: &Path, binary: PathBuf, postgres_port: u16) -> Fixtures {
        std::fs::write(directory.join(PROCESS), std::process::id().to_string()).expect("a file");
        Fixtures { directory: directory.to_owned(), binary, postgres_port }
    }

    /// The variables that tell a test process about the fixtures.
    pub fn environment(&self) -> [(&'static str, OsString); 3] {
        let port = self.postgres_port.to_string().into();
        [(DIRECTORY, self.directory.clone().into()), (BINARY, self.binary.clone().into()), (POSTGRES_PORT, port)]
    }

    /// Builds all blocks of this repository that tests need. Returns their number.
    pub fn build_blocks(&self) -> usize {
        let sources = block_sources();
        // One build uses one core, so several builds run at once. Each has its own folder, because cargo locks the folder.
        std::thread::scope(|scope| {
            for (lane, target) in BUILD_LANES.iter().enumerate() {
                let blocks = sources.iter().skip(lane).step_by(BUILD_LANES.len());
                scope.spawn(move || {
                    for (folder, name) in blocks {
                        made_in(&self.directory, &format!("{folder}/{name}"), || build_block(&self.binary, target, folder, name));
                    }
                });
            }
        });
        sources.len()
    }
}

fn run_directory() -> Option<&'static Path> {
    static RUN: LazyLock<Option<PathBuf>> = LazyLock::new(|| std::env::var_os(DIRECTORY).map(PathBuf::from));
    RUN.as_deref()
}

/// The binary of this run, if the run has one.
pub(crate) fn binary() -> Option<PathBuf> {
    std::env::var_os(BINARY).map(PathBuf::from)
}

/// The port of this run's Postgres, if the run has one.
pub(crate) fn postgres_port() -> Option<u16> {
    std::env::var(POSTGRES_PORT).ok()?.parse().ok()
}

/// An exclusive lock with this name among all processes that build into the same target directory. When this is dropped, the lock
/// is released.
///
/// It blocks the thread.
pub fn lock(name: &str) -> File {
    let directory = target_directory().join("test-locks");
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = File::create(directory.join(name)).expect("a file");
    file.lock().expect("a lock");
    file
}

/// The result of `make`, which runs once for each run and name. It blocks the thread.
pub fn made_once(name: &str, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    type Made = Mutex<HashMap<String, Arc<OnceLock<Vec<u8>>>>>;
    static MADE: LazyLock<Made> = LazyLock::new(Made::default);
    let place = Arc::clone(MADE.lock().expect("no poison").entry(name.to_owned()).or_default());
    let shared = || match run_directory() {
        Some(directory) => made_in(directory, name, make),
        None => make(),
    };
    place.get_or_init(shared).clone()
}

fn made_in(directory: &Path, name: &str, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let place = |ending: &str| directory.join(format!("{}{ending}", name.replace('/', "-")));
    let lock = File::create(place(".lock")).expect("a file");
    lock.lock().expect("a lock");
    if let Ok(made) = std::fs::read(place(".made")) {
        return made;
    }
    let made = make();
    // If a process is killed while it writes, no incomplete file may have the final name.
    std::fs::write(place(".part"), &made).expect("a file");
    std::fs::rename(place(".part"), place(".made")).expect("a file");
    made
}

/// The id of the process that began the run. Two runs at the same time have different ids.
pub(crate) fn run_number() -> u32 {
    let begun_by = run_directory().and_then(|directory| std::fs::read_to_string(directory.join(PROCESS)).ok());
    begun_by.and_then(|text| text.parse().ok()).unwrap_or_else(std::process::id)
}

/// The next number of a counter that all processes of the run share, from 0.
pub(crate) fn next_number(name: &'static str) -> u32 {
    static ALONE: LazyLock<Mutex<HashMap<&'static str, u32>>> = LazyLock::new(Mutex::default);
    let Some(directory) = run_directory() else {
        let mut counters = ALONE.lock().expect("no poison");
        let next = counters.entry(name).or_default();
        *next += 1;
        return *next - 1;
    };
    let path = directory.join(format!("{name}.counter"));
    let mut file = File::options().create(true).truncate(false).read(true).write(true).open(path).expect("a file");
    file.lock().expect("a lock");
    let mut text = String::new();
    file.read_to_string(&mut text).expect("a number");
    let number = text.parse().unwrap_or(0);
    file.rewind().expect("a file");
    write!(file, "{}", number + 1).expect("a file");
    number
}

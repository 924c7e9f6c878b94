//! What the test processes of one run share: the run's folder, what is made in it once, and locks between processes.
//!
//! `with-fixtures` makes the folder and names it in the environment. A test that is started without it makes everything for itself.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use crate::blocks::{GUESTS, block_sources, build_block};
use crate::server::target_directory;

/// Names the folder of the run.
const DIRECTORY: &str = "BLOCKBASE_TEST_RUN";
/// Names the binary that all tests run.
const BINARY: &str = "BLOCKBASE_TEST_BINARY";
/// Names the port of the Postgres that all tests share.
const POSTGRES_PORT: &str = "BLOCKBASE_TEST_POSTGRES_PORT";
/// In the folder of the run: the process that began it.
const PROCESS: &str = "process";
/// Set by the long command.
const LONG: &str = "BLOCKBASE_TEST_LONG";

/// Folders of the target directory that blocks are built in. The first one serves single builds, too.
const BUILD_LANES: [&str; 2] = [GUESTS, "guests-2"];

/// Whether the long command runs: tests of many rounds or seeds then take all of them.
pub fn is_long() -> bool {
    std::env::var_os(LONG).is_some()
}

/// What all test processes of one run share.
pub struct Fixtures {
    /// The folder for things that are made once.
    directory: PathBuf,
    binary: PathBuf,
    postgres_port: u16,
}

impl Fixtures {
    /// In this folder, by this process.
    pub fn new(directory: &Path, binary: PathBuf, postgres_port: u16) -> Fixtures {
        std::fs::write(directory.join(PROCESS), std::process::id().to_string()).expect("a file");
        Fixtures { directory: directory.to_owned(), binary, postgres_port }
    }

    /// The variables by which a test process knows of them.
    pub fn environment(&self) -> [(&'static str, OsString); 3] {
        let port = self.postgres_port.to_string().into();
        [(DIRECTORY, self.directory.clone().into()), (BINARY, self.binary.clone().into()), (POSTGRES_PORT, port)]
    }

    /// Builds all blocks of this repository, for tests that need one. How many there are.
    pub fn build_blocks(&self) -> usize {
        let sources = block_sources();
        // One build keeps one core busy, so several run at once, each in a folder of its own: cargo lets only one into a folder.
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

/// The binary of this run, where it has one.
pub(crate) fn binary() -> Option<PathBuf> {
    std::env::var_os(BINARY).map(PathBuf::from)
}

/// The port of this run's Postgres, where it has one.
pub(crate) fn postgres_port() -> Option<u16> {
    std::env::var(POSTGRES_PORT).ok()?.parse().ok()
}

/// An exclusive lock by this name among everything that builds into the same target directory, until it is dropped.
///
/// Blocks the thread.
pub fn lock(name: &str) -> File {
    let directory = target_directory().join("test-locks");
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = File::create(directory.join(name)).expect("a file");
    file.lock().expect("a lock");
    file
}

/// What `make` makes, made once a run and name. Blocks the thread.
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
    // A process that is killed while it writes must not leave half a file under the name.
    std::fs::write(place(".part"), &made).expect("a file");
    std::fs::rename(place(".part"), place(".made")).expect("a file");
    made
}

/// A number that differs between two runs at the same time: the process that began the run.
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

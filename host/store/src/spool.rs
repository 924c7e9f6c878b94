//! Carries bytes from a snapshot of the database to a client that may be slower.
//!
//! The speed of a client must not determine how long a snapshot lasts. So the code that reads the database does not wait for the
//! client while there is room: a little room in memory, and more in a file without a name. The database waits only when both are
//! full.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

/// The number of bytes that wait in memory before further bytes go to the file.
const MEMORY_BYTES_MAX: usize = 1024 * 1024;
/// The maximum number of bytes of one spool's file.
const FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// The maximum number of bytes of all spools' files together.
const FILES_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
/// The number of bytes by which a file grows at a time. Each step checks the disk once.
const STEP_BYTES: u64 = 8 * 1024 * 1024;
/// The number of bytes on the disk that spools leave free for everything else.
const DISK_BYTES_LEFT: u64 = 1024 * 1024 * 1024;
/// The number of bytes that are read from the file at once.
const READ_BYTES: u64 = 256 * 1024;
/// How long a writer sleeps before it checks again whether a client still wants its bytes.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The disk space that all spools share.
#[derive(Debug)]
pub struct SpoolRoom {
    directory: PathBuf,
    used: AtomicU64,
    file_bytes_max: u64,
    files_bytes_max: u64,
}

impl SpoolRoom {
    /// The files are in `directory`. They have no name there, so a crash leaves nothing behind.
    pub fn new(directory: PathBuf) -> Arc<SpoolRoom> {
        let (file_bytes_max, files_bytes_max) = (FILE_BYTES_MAX, FILES_BYTES_MAX);
        Arc::new(SpoolRoom { directory, used: AtomicU64::new(0), file_bytes_max, files_bytes_max })
    }

    fn file(&self) -> std::io::Result<File> {
        let path = self.directory.join(format!(".export-{}", uuid::Uuid::new_v4()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    }

    /// Takes one more step of disk space, if there is enough.
    fn grow(&self) -> bool {
        let free = rustix::fs::statvfs(&self.directory).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        let within = |used: u64| (used + STEP_BYTES <= self.files_bytes_max).then_some(used + STEP_BYTES);
        free >= DISK_BYTES_LEFT && self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, within).is_ok()
    }

    fn shrink(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::AcqRel);
    }
}

/// The end of the queue into which bytes are put.
#[derive(Clone)]
pub struct Spool(Arc<Shared>);

/// The end of the queue from which the client takes bytes.
pub struct SpoolReader(Arc<Shared>);

/// Some bytes are missing. Code that passes the bytes on must not end the response as if it were complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rows could not be read to their end")]
pub struct Incomplete;

/// No client wants the bytes any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unwanted;

struct Shared {
    room: Arc<SpoolRoom>,
    state: Mutex<State>,
    /// Notified when there are bytes to take, or the end is known.
    something: Notify,
    /// Notified when there is room again, or the client wants no more bytes. `freed` is for a writer on a separate thread,
    /// `freed_async` for a writer on the runtime.
    freed: Condvar,
    freed_async: Notify,
    /// Notified when the reader is gone.
    closed: Notify,
}

#[derive(Default)]
struct State {
    /// These bytes come before everything in the file.
    memory: VecDeque<Bytes>,
    memory_bytes: usize,
    file: Option<Arc<File>>,
    /// The number of bytes on the disk that the file may use.
    file_bytes: u64,
    /// The numbers of bytes that were written to the file and read from it so far. The file is a ring.
    written: u64,
    read: u64,
    end: Option<Result<(), Incomplete>>,
    is_closed: bool,
    /// The time since when the client has left available bytes untaken. `None` if there are no such bytes.
    waiting_since: Option<Instant>,
}

/// The result of putting bytes.
enum Put {
    Done,
    Full,
    Unwanted,
}

/// A new spool.
pub fn spool(room: Arc<SpoolRoom>) -> (Spool, SpoolReader) {
    let shared = Arc::new(Shared {
        room,
        state: Mutex::default(),
        something: Notify::new(),
        freed: Condvar::new(),
        freed_async: Notify::new(),
        closed: Notify::new(),
    });
    (Spool(Arc::clone(&shared)), SpoolReader(shared))
}

impl State {
    fn is_unwanted(&self) -> bool {
        self.is_closed || self.end.is_some()
    }

    fn fits_in_memory(&self) -> bool {
        self.written == self.read && self.memory_bytes < MEMORY_BYTES_MAX
    }

    fn note_something(&mut self) {
        self.waiting_since.get_or_insert_with(Instant::now);
    }

    fn note_taken(&mut self) {
        let is_empty = self.memory.is_empty() && self.written == self.read;
        self.waiting_since = (!is_empty).then(Instant::now);
    }
}

impl Shared {
    /// Puts bytes into memory if they fit.
    fn put_in_memory(&self, bytes: &Bytes) -> Put {
        let mut state = self.state.lock();
        if state.is_unwanted() {
            return Put::Unwanted;
        }
        if !state.fits_in_memory() {
            return Put::Full;
        }
        state.memory_bytes += bytes.len();
        state.memory.push_back(bytes.clone());
        state.note_something();
        drop(state);
        self.something.notify_one();
        Put::Done
    }

    /// Puts bytes into memory or into the file. Only one writer may call it at a time.
    fn put(&self, bytes: &Bytes) -> Put {
        match self.put_in_memory(bytes) {
            Put::Full => {}
            done => return done,
        }
        let length = bytes.len() as u64;
        let (file, written) = {
            let mut state = self.state.lock();
            if state.written == state.read && state.written > 0 {
                // The client has caught up, so the file is truncated and its space is freed.
                let kept = state.file.as_ref().is_some_and(|file| file.set_len(0).is_ok());
                if kept {
                    self.room.shrink(std::mem::take(&mut state.file_bytes));
                    (state.written, state.read) = (0, 0);
                }
            }
            if state.written - state.read + length > self.room.file_bytes_max {
                return Put::Full;
            }
            let needed = (state.written + length).min(self.room.file_bytes_max);
            while state.file_bytes < needed {
                if !self.room.grow() {
                    return Put::Full;
                }
                state.file_bytes += STEP_BYTES;
            }
            if state.file.is_none() {
                match self.room.file() {
                    Ok(file) => state.file = Some(Arc::new(file)),
                    Err(error) => {
                        tracing::warn!(error.cause = %error, "no file can be made for an export; it waits for its client");
                        return Put::Full;
                    }
                }
            }
            let Some(file) = &state.file else { return Put::Full };
            (Arc::clone(file), state.written)
        };
        // The reader takes no bytes from this position until `written` is raised.
        let place = written % self.room.file_bytes_max;
        let before_end = usize::try_from(self.room.file_bytes_max - place).unwrap_or(usize::MAX).min(bytes.len());
        let (head, tail) = bytes.split_at(before_end);
        if file.write_all_at(head, place).and_then(|()| file.write_all_at(tail, 0)).is_err() {
            // The disk is full. The client has to take the existing bytes first.
            return Put::Full;
        }
        let mut state = self.state.lock();
        state.written += length;
        state.note_something();
        drop(state);
        self.something.notify_one();
        Put::Done
    }

    fn tell_writers(&self) {
        self.freed.notify_all();
        self.freed_async.notify_one();
    }
}

impl Spool {
    /// Puts bytes, on a thread that may wait.
    pub(crate) fn put_blocking(&self, bytes: Bytes) -> Result<(), Unwanted> {
        loop {
            match self.0.put(&bytes) {
                Put::Done => return Ok(()),
                Put::Unwanted => return Err(Unwanted),
                Put::Full => {
                    let mut state = self.0.state.lock();
                    if !state.is_unwanted() {
                        self.0.freed.wait_for(&mut state, LOOK_AGAIN);
                    }
                }
            }
        }
    }

    /// Puts bytes, on a thread of the runtime. Another thread writes the file.
    pub(crate) async fn put(&self, bytes: Bytes) -> Result<(), Unwanted> {
        loop {
            let put = match self.0.put_in_memory(&bytes) {
                Put::Full => {
                    let (shared, bytes) = (Arc::clone(&self.0), bytes.clone());
                    tokio::task::spawn_blocking(move || shared.put(&bytes)).await.unwrap_or(Put::Unwanted)
                }
                put => put,
            };
            match put {
                Put::Done => return Ok(()),
                Put::Unwanted => return Err(Unwanted),
                Put::Full => {
                    let _ = tokio::time::timeout(LOOK_AGAIN, self.0.freed_async.notified()).await;
                }
            }
        }
    }

    /// Ends the spool: either all bytes were put into it, or the rest does not come. An incomplete end is final.
    pub fn end(&self, end: Result<(), Incomplete>) {
        let mut state = self.0.state.lock();
        if state.end != Some(Err(Incomplete)) {
            state.end = Some(end);
        }
        if end.is_err() {
            // The client learns at once that the data is incomplete, and gets no more of it.
            (state.memory, state.memory_bytes) = (VecDeque::new(), 0);
            state.read = state.written;
        }
        drop(state);
        self.0.something.notify_one();
        self.0.tell_writers();
    }

    /// How long the client has left available bytes untaken.
    pub fn stalled_for(&self) -> Duration {
        self.0.state.lock().waiting_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Waits until the client has received everything or has disconnected.
    pub async fn closed(&self) {
        loop {
            let closed = self.0.closed.notified();
            if self.0.state.lock().is_closed {
                return;
            }
            closed.await;
        }
    }
}

impl SpoolReader {
    /// Waits until there are bytes to take or the end is known. Fails if the end is incomplete.
    pub async fn first(&self) -> Result<(), Incomplete> {
        loop {
            let something = self.0.something.notified();
            {
                let state = self.0.state.lock();
                match state.end {
                    Some(end) => return end,
                    None if !state.memory.is_empty() => return Ok(()),
                    None => {}
                }
            }
            something.await;
        }
    }

    /// The next bytes. `None` at the end.
    ///
    /// # Errors
    /// If some bytes are missing. No further bytes follow.
    pub async fn next(&mut self) -> Option<Result<Bytes, Incomplete>> {
        loop {
            let something = self.0.something.notified();
            let (file, place, length) = {
                let mut state = self.0.state.lock();
                if let Some(bytes) = state.memory.pop_front() {
                    state.memory_bytes -= bytes.len();
                    state.note_taken();
                    drop(state);
                    self.0.tell_writers();
                    return Some(Ok(bytes));
                }
                match (&state.file, state.written - state.read, state.end) {
                    (_, 0, Some(Ok(()))) => return None,
                    (_, 0, Some(Err(incomplete))) => return Some(Err(incomplete)),
                    (Some(file), waiting @ 1.., _) => {
                        let place = state.read % self.0.room.file_bytes_max;
                        (Some(Arc::clone(file)), place, waiting.min(READ_BYTES).min(self.0.room.file_bytes_max - place))
                    }
                    _ => (None, 0, 0),
                }
            };
            let Some(file) = file else {
                something.await;
                continue;
            };
            let read = tokio::task::spawn_blocking(move || {
                let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
                file.read_exact_at(&mut bytes, place).map(|()| bytes)
            });
            let Ok(Ok(bytes)) = read.await else {
                tracing::warn!("the file of an export cannot be read");
                return Some(Err(Incomplete));
            };
            let mut state = self.0.state.lock();
            // The spool ended meanwhile, and its bytes were dropped.
            if let Some(Err(incomplete)) = state.end {
                return Some(Err(incomplete));
            }
            state.read += length;
            state.note_taken();
            drop(state);
            self.0.tell_writers();
            return Some(Ok(bytes.into()));
        }
    }
}

impl Drop for SpoolReader {
    fn drop(&mut self) {
        self.0.state.lock().is_closed = true;
        self.0.tell_writers();
        // `notify_one` also wakes a task that waits later.
        self.0.closed.notify_one();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.room.shrink(self.state.get_mut().file_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(file_bytes_max: u64, files_bytes_max: u64) -> Arc<SpoolRoom> {
        Arc::new(SpoolRoom { directory: std::env::temp_dir(), used: AtomicU64::new(0), file_bytes_max, files_bytes_max })
    }

    /// Bytes that depend on their position, so that the test notices a lost or repeated byte.
    fn chunk(number: usize, length: usize) -> Bytes {
        (0..length).map(|place| ((number * 31 + place) % 251) as u8).collect::<Vec<_>>().into()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn bytes_come_in_order_through_memory_and_a_file_that_goes_round() {
        const CHUNKS: usize = 400;
        const LENGTH: usize = 64 * 1024 - 7;
        for is_blocking in [true, false] {
            // A ring of 3 MiB for 25 MiB of data. So the writer has to wait many times, and chunks cross the end of the ring.
            let room = room(3 * 1024 * 1024, FILES_BYTES_MAX);
            let (spool, mut reader) = spool(Arc::clone(&room));
            let writer = spool.clone();
            let writing = match is_blocking {
                true => tokio::task::spawn_blocking(move || {
                    (0..CHUNKS).for_each(|number| writer.put_blocking(chunk(number, LENGTH)).expect("wanted"));
                    writer.end(Ok(()));
                }),
                false => tokio::spawn(async move {
                    for number in 0..CHUNKS {
                        writer.put(chunk(number, LENGTH)).await.expect("wanted");
                    }
                    writer.end(Ok(()));
                }),
            };
            let mut taken = Vec::new();
            while let Some(bytes) = reader.next().await {
                taken.extend_from_slice(&bytes.expect("bytes"));
                if taken.len() % 5 == 0 {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
            writing.await.expect("written");
            let expected: Vec<u8> = (0..CHUNKS).flat_map(|number| chunk(number, LENGTH)).collect();
            assert!(taken == expected, "{} bytes of {}", taken.len(), expected.len());
            assert!(room.used.load(Ordering::Acquire) <= STEP_BYTES);
            drop((spool, reader));
            assert_eq!(room.used.load(Ordering::Acquire), 0, "the room is given back");
        }
    }

    #[tokio::test]
    async fn a_writer_waits_where_there_is_no_room_and_stops_where_nobody_is_left() {
        let room = room(FILE_BYTES_MAX, 0);
        let (spool, mut reader) = spool(room);
        let full = MEMORY_BYTES_MAX / 1024;
        for number in 0..full {
            spool.put(chunk(number, 1024)).await.expect("room");
        }
        let waiting = spool.clone();
        let waiting = tokio::spawn(async move { waiting.put(chunk(full, 1024)).await });
        while spool.stalled_for() < 3 * LOOK_AGAIN {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        assert!(!waiting.is_finished(), "neither memory nor disk has room");
        let stalled_for = spool.stalled_for();
        assert_eq!(reader.next().await.expect("bytes").expect("bytes"), chunk(0, 1024));
        assert!(spool.stalled_for() < stalled_for);
        assert_eq!(waiting.await.expect("no panic"), Ok(()));
        let blocked = spool.clone();
        let blocked = tokio::task::spawn_blocking(move || blocked.put_blocking(chunk(0, 1024)));
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(reader);
        assert_eq!(blocked.await.expect("no panic"), Err(Unwanted));
        assert_eq!(spool.put(chunk(0, 1)).await, Err(Unwanted));
        spool.closed().await;
    }

    #[tokio::test]
    async fn what_ends_early_is_never_taken_for_whole() {
        let (spool, mut reader) = spool(room(FILE_BYTES_MAX, FILES_BYTES_MAX));
        spool.put(chunk(0, 10)).await.expect("room");
        reader.first().await.expect("something is there");
        spool.end(Err(Incomplete));
        spool.end(Ok(()));
        assert_eq!(reader.first().await, Err(Incomplete));
        assert_eq!(reader.next().await, Some(Err(Incomplete)));
        assert_eq!(spool.put(chunk(0, 10)).await, Err(Unwanted));
    }

    #[tokio::test]
    async fn an_end_without_bytes_is_an_end() {
        let (spool, mut reader) = spool(room(FILE_BYTES_MAX, FILES_BYTES_MAX));
        spool.end(Ok(()));
        reader.first().await.expect("a good end");
        assert_eq!(reader.next().await, None);
    }
}

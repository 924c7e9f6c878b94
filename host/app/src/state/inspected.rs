//! The compiled code of files that were inspected a short time ago.

use std::any::Any;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long the compiled code of an inspected file is kept, so that a following install does not compile it again.
pub(crate) const KEPT: Duration = Duration::from_secs(600);
/// The maximum number of files whose code is kept at the same time.
const KEPT_MAX: usize = 4;

/// The compiled code of inspected files, the oldest first.
#[derive(Default)]
pub(crate) struct Inspected(Mutex<VecDeque<(Instant, Box<dyn Any + Send + Sync>)>>);

impl Inspected {
    pub(crate) fn keep(&self, kept: Box<dyn Any + Send + Sync>) {
        let mut all = self.0.lock();
        all.push_back((Instant::now() + KEPT, kept));
        while all.len() > KEPT_MAX {
            all.pop_front();
        }
    }

    pub(crate) fn forget_old(&self) {
        let now = Instant::now();
        self.0.lock().retain(|(until, _)| *until > now);
    }
}

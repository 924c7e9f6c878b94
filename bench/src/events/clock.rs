//! The times at which numbered writes were sent and answered, and at which their events arrived.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::load::{exchange, request};
use crate::report::grouped;
use crate::side::Side;

/// The beginning of the mark in a record's title. The mark identifies the record's event.
const MARK: &[u8] = b"mark-";
const MARK_DIGITS: usize = 8;

/// A title that contains the mark of a write.
pub(crate) fn marked(number: usize) -> String {
    format!("mark-{number:0MARK_DIGITS$} and then a title of usual length")
}

/// Finds the writes whose marks are in these bytes. If the same mark comes several times in a row, it counts once.
pub(crate) fn marks(bytes: &[u8], mut found: impl FnMut(usize)) {
    let (mut rest, mut last) = (bytes, None);
    while let Some(start) = rest.windows(MARK.len()).position(|window| window == MARK) {
        rest = &rest[start + MARK.len()..];
        let digits = rest.get(..MARK_DIGITS).and_then(|digits| std::str::from_utf8(digits).ok());
        let Some(number) = digits.and_then(|digits| digits.parse().ok()) else { continue };
        if last != Some(number) {
            found(number);
            last = Some(number);
        }
    }
}

/// Measures microseconds from a starting point.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock(Instant::now())
    }

    pub(crate) fn now(self) -> u32 {
        u32::try_from(self.0.elapsed().as_micros()).expect("a run of less than an hour")
    }
}

/// An instant for each write. Only the first noted instant of a write counts.
pub(crate) struct Instants {
    clock: Clock,
    all: Vec<AtomicU32>,
}

const NONE: u32 = u32::MAX;

impl Instants {
    pub(crate) fn new(clock: Clock, count: usize) -> Arc<Instants> {
        Arc::new(Instants { clock, all: (0..count).map(|_| AtomicU32::new(NONE)).collect() })
    }

    /// Stores the present time for this write.
    pub(crate) fn note(&self, number: usize) {
        if let Some(instant) = self.all.get(number) {
            let _ = instant.compare_exchange(NONE, self.clock.now(), Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self, number: usize) -> Option<u32> {
        let instant = self.all.get(number)?.load(Ordering::Relaxed);
        (instant != NONE).then_some(instant)
    }

    /// The number of writes without an instant.
    pub(crate) fn missing(&self) -> usize {
        self.all.iter().filter(|instant| instant.load(Ordering::Relaxed) == NONE).count()
    }

    /// The times from `earlier` to these instants, beginning with the write number `from`. A negative time counts as zero.
    pub(crate) fn after(&self, earlier: &Instants, from: usize) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).unwrap();
        for number in from..self.all.len() {
            if let (Some(now), Some(then)) = (self.get(number), earlier.get(number)) {
                histogram.record(u64::from(now.saturating_sub(then))).unwrap();
            }
        }
        histogram
    }
}

/// The p50 and the p99, as cells of a table.
pub(crate) fn percentiles(histogram: &Histogram<u64>) -> [String; 2] {
    [0.5, 0.99].map(|quantile| match histogram.is_empty() {
        true => String::new(),
        false => grouped(histogram.value_at_quantile(quantile) as f64),
    })
}

/// Writes that have marks and times.
#[derive(Clone)]
pub(crate) struct Writes {
    pub(crate) side: Side,
    pub(crate) sent: Arc<Instants>,
    pub(crate) answered: Arc<Instants>,
}

impl Writes {
    pub(crate) fn new(side: &Side, clock: Clock, count: usize) -> Writes {
        Writes { side: side.clone(), sent: Instants::new(clock, count), answered: Instants::new(clock, count) }
    }

    /// Sends one write and waits for the response.
    pub(crate) async fn send(&self, stream: &mut tokio::net::TcpStream, buffer: &mut Vec<u8>, number: usize) {
        let body = format!(r#"{{"title":"{}","priority":{}}}"#, marked(number), number % 100);
        let bytes = request("POST", self.side.items, self.side.token.as_deref(), Some(&body));
        self.sent.note(number);
        let (status, _) = exchange(stream, &bytes, buffer).await;
        self.answered.note(number);
        assert_eq!(status, 201, "{}", String::from_utf8_lossy(buffer));
    }
}

//! Measures how much longer a read on one connection may take. All code that takes long checks the meter: the engine's steps,
//! long functions, and the rendering of rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use blockbase_telemetry::processor_time;
use parking_lot::Mutex;

use super::space::SortRoom;

/// How often the engine reports its steps.
pub(crate) const STEPS_A_REPORT: i32 = 1_000;
/// The number of steps of SQLite's virtual machine that a read of unknown cost may take on the calling thread. They take about a
/// millisecond.
const BUDGET_STEPS: i64 = 50_000;
/// The number of bytes that such a read may process in functions and render. This takes about a millisecond, too.
const BUDGET_BYTES: i64 = 512 * 1024;
/// How many bytes of rows are added up before the meter counts them. So small rows do not take its lock each time.
const BYTES_A_REPORT: usize = 4 * 1024;
/// A limit for costs that neither steps nor bytes measure, such as values that are copied out of the file. See [`BudgetTime`].
const BUDGET_TIME: Duration = Duration::from_millis(10);
/// How long a scan may take. A statement on Postgres has the same limit.
const SCAN_TIME_MAX: Duration = Duration::from_secs(60);
/// How long the writer may search again for the rows of a write. All other writes wait meanwhile.
const LOOK_TIME_MAX: Duration = Duration::from_secs(1);
/// How often a sorting scan checks the free disk space.
const LOOK_AT_DISK: Duration = Duration::from_millis(20);

/// The meter that a connection shares with the functions registered on it.
#[derive(Default)]
pub(crate) struct Meter(Mutex<Limit>);

#[derive(Default)]
enum Limit {
    /// No limit. The read is known to be short, or the connection is the writer's.
    #[default]
    None,
    /// A read on a thread of the runtime.
    Budget { steps: i64, bytes: i64, time: BudgetTime, is_spent: bool },
    /// A read on a thread that may block. It ends when nobody waits for it any more.
    Scan {
        abandoned: Arc<AtomicBool>,
        log_ends_it: Option<Arc<AtomicBool>>,
        end: Instant,
        sort_room: Option<Arc<SortRoom>>,
        sort: Sort,
    },
}

/// The time that a read has on a thread of the runtime: half of [`BUDGET_TIME`] by the clock, and then the other half in processor
/// time of the thread.
///
/// On a busy machine much time passes by the clock while a read does not run, so the clock alone does not end it. But the processor
/// time costs a system call, and most reads end before they need it.
#[derive(Clone, Copy)]
enum BudgetTime {
    /// The time by the clock.
    Clock { end: Instant },
    /// The processor time of the thread.
    Processor { end: Duration },
}

impl BudgetTime {
    fn is_over(&mut self) -> bool {
        match *self {
            BudgetTime::Clock { end } => {
                if Instant::now() > end {
                    *self = BudgetTime::Processor { end: processor_time() + BUDGET_TIME / 2 };
                }
                false
            }
            BudgetTime::Processor { end } => processor_time() > end,
        }
    }
}

/// Whether a statement of a scan sorts in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    No,
    /// The statement sorts. The value is the time of the last check of the disk.
    Yes(Instant),
    /// The disk has no room for a larger sort.
    Full,
}

/// The error for a read that has to end here.
pub(crate) struct Spent;

/// The bytes of the rows of one statement. The meter counts them at every [`BYTES_A_REPORT`] bytes, and the rest at the end.
pub(crate) struct RowBytes<'m> {
    meter: &'m Meter,
    uncounted: usize,
}

impl<'m> RowBytes<'m> {
    pub(crate) fn new(meter: &'m Meter) -> RowBytes<'m> {
        RowBytes { meter, uncounted: 0 }
    }

    /// Adds the bytes of a row.
    pub(crate) fn add(&mut self, number: usize) -> Result<(), Spent> {
        self.uncounted = self.uncounted.saturating_add(number);
        if self.uncounted < BYTES_A_REPORT { Ok(()) } else { self.count() }
    }

    /// Counts the rest after the last row.
    pub(crate) fn end(mut self) -> Result<(), Spent> {
        self.count()
    }

    fn count(&mut self) -> Result<(), Spent> {
        self.meter.bytes(std::mem::take(&mut self.uncounted))
    }
}

impl Meter {
    /// Begins a read that may run on the calling thread within the budget.
    pub(crate) fn begin_budget(&self) {
        let time = BudgetTime::Clock { end: Instant::now() + BUDGET_TIME / 2 };
        *self.0.lock() = Limit::Budget { steps: BUDGET_STEPS, bytes: BUDGET_BYTES, time, is_spent: false };
    }

    /// Begins a read that runs until `abandoned` or the log's flag is set. With `sort_room`, it may sort only while there is
    /// room.
    pub(crate) fn begin_scan(
        &self,
        abandoned: Arc<AtomicBool>,
        log_ends_it: Option<Arc<AtomicBool>>,
        sort_room: Option<Arc<SortRoom>>,
    ) {
        let end = Instant::now() + SCAN_TIME_MAX;
        *self.0.lock() = Limit::Scan { abandoned, log_ends_it, end, sort_room, sort: Sort::No };
    }

    /// Begins a search for the rows of a write.
    pub(crate) fn begin_look(&self) {
        self.begin_look_until(Instant::now() + LOOK_TIME_MAX);
    }

    fn begin_look_until(&self, end: Instant) {
        *self.0.lock() = Limit::Scan { abandoned: Arc::default(), log_ends_it: None, end, sort_room: None, sort: Sort::No };
    }

    /// Begins a read that may take up to `time_max`.
    pub(crate) fn begin_snapshot(&self, abandoned: Arc<AtomicBool>, sort_room: Arc<SortRoom>, time_max: Duration) {
        let end = Instant::now() + time_max;
        *self.0.lock() = Limit::Scan { abandoned, log_ends_it: None, end, sort_room: Some(sort_room), sort: Sort::No };
    }

    /// Whether the running read is a scan whose sorts may be large.
    pub(crate) fn watches_sorts(&self) -> bool {
        matches!(*self.0.lock(), Limit::Scan { sort_room: Some(_), .. })
    }

    /// Begins a statement of a scan. Returns whether there is room for its sorts.
    pub(crate) fn begin_statement(&self, sorts: bool) -> bool {
        let Limit::Scan { sort_room: Some(sort_room), sort, .. } = &mut *self.0.lock() else { return true };
        *sort = match sorts {
            true if sort_room.has_room() => Sort::Yes(Instant::now()),
            true => Sort::Full,
            false => Sort::No,
        };
        *sort != Sort::Full
    }

    /// Whether the statement ended because the disk is full.
    pub(crate) fn is_out_of_room(&self) -> bool {
        matches!(*self.0.lock(), Limit::Scan { sort: Sort::Full, .. })
    }

    /// Ends a read. Returns whether it exceeded its budget.
    pub(crate) fn end(&self) -> bool {
        matches!(std::mem::take(&mut *self.0.lock()), Limit::Budget { is_spent: true, .. })
    }

    /// Counts steps of the engine.
    pub(crate) fn step(&self, number: i32) -> Result<(), Spent> {
        self.spend(i64::from(number), 0)
    }

    /// Counts processed bytes. Code that processes many bytes calls this at intervals.
    pub(crate) fn bytes(&self, number: usize) -> Result<(), Spent> {
        self.spend(0, i64::try_from(number).unwrap_or(i64::MAX))
    }

    fn spend(&self, stepped: i64, touched: i64) -> Result<(), Spent> {
        let goes_on = match &mut *self.0.lock() {
            Limit::None => true,
            Limit::Budget { steps, bytes, time, is_spent } => {
                *steps -= stepped;
                *bytes -= touched;
                *is_spent |= *steps <= 0 || *bytes < 0 || (stepped > 0 && time.is_over());
                !*is_spent
            }
            Limit::Scan { abandoned, log_ends_it, end, sort_room, sort } => {
                if let Sort::Yes(looked_at) = *sort
                    && looked_at.elapsed() >= LOOK_AT_DISK
                    && let Some(sort_room) = sort_room
                {
                    *sort = if sort_room.has_room() { Sort::Yes(Instant::now()) } else { Sort::Full };
                }
                let is_raised = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
                let is_ended = is_raised(abandoned) || log_ends_it.as_ref().is_some_and(is_raised);
                *sort != Sort::Full && !is_ended && Instant::now() <= *end
            }
        };
        if goes_on { Ok(()) } else { Err(Spent) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_ends_by_steps_and_by_bytes() {
        let meter = Meter::default();
        assert!(meter.bytes(usize::MAX).is_ok() && !meter.end(), "nothing is watched");
        meter.begin_budget();
        assert!(meter.step(STEPS_A_REPORT).is_ok() && meter.bytes(1000).is_ok());
        assert!(!meter.end());
        meter.begin_budget();
        assert!((0..100).any(|_| meter.step(STEPS_A_REPORT).is_err()));
        assert!(meter.end());
        meter.begin_budget();
        assert!(meter.bytes(1 << 20).is_err() && meter.end());
    }

    #[test]
    fn the_bytes_of_rows_are_counted_together() {
        let (meter, budget) = (Meter::default(), usize::try_from(BUDGET_BYTES).expect("bytes"));
        meter.begin_budget();
        let (mut rows, mut read) = (RowBytes::new(&meter), 0);
        while rows.add(100).is_ok() {
            read += 100;
        }
        assert!(read + 100 > budget && read <= budget + BYTES_A_REPORT, "{read}");
        assert!(meter.end());
        // All bytes of the budget may be used, and the rest at the end counts too.
        for (rest, is_spent) in [(0, false), (1, true)] {
            meter.begin_budget();
            let mut rows = RowBytes::new(&meter);
            assert!(rows.add(budget).is_ok() && rows.add(rest).is_ok());
            assert_eq!((rows.end().is_err(), meter.end()), (is_spent, is_spent));
        }
        // A scan that nobody waits for ends with the next report.
        meter.begin_scan(Arc::new(AtomicBool::new(true)), None, None);
        let mut rows = RowBytes::new(&meter);
        assert!(rows.add(BYTES_A_REPORT - 1).is_ok() && rows.add(1).is_err());
    }

    #[test]
    fn a_budget_ends_by_processor_time() {
        let (meter, begun) = (Meter::default(), processor_time());
        meter.begin_budget();
        let mut steps = 0;
        while meter.step(1).is_ok() {
            steps += 1;
            let until = processor_time() + Duration::from_micros(10);
            while processor_time() < until {}
        }
        assert!(steps < BUDGET_STEPS - 1, "the steps are not spent");
        assert!(processor_time() - begun > BUDGET_TIME / 2 && meter.end());
    }

    #[test]
    fn a_scan_ends_when_nobody_waits() {
        let (meter, abandoned) = (Meter::default(), Arc::new(AtomicBool::new(false)));
        meter.begin_scan(Arc::clone(&abandoned), None, None);
        assert!(meter.bytes(usize::MAX).is_ok());
        abandoned.store(true, Ordering::Relaxed);
        assert!(meter.bytes(1).is_err() && meter.step(1).is_err());
        assert!(!meter.end(), "it had no budget to spend");
    }

    #[test]
    fn a_look_of_the_writer_ends_in_time() {
        let meter = Meter::default();
        meter.begin_look_until(Instant::now());
        assert!((0..1_000_000).any(|_| meter.step(1).is_err()) && !meter.end());
        assert!(meter.step(i32::MAX).is_ok(), "afterwards nothing is watched");
    }

    #[test]
    fn a_scan_ends_when_the_log_has_to_be_cut() {
        let (meter, ends) = (Meter::default(), Arc::new(AtomicBool::new(false)));
        meter.begin_scan(Arc::default(), Some(Arc::clone(&ends)), None);
        assert!(meter.step(1).is_ok());
        ends.store(true, Ordering::Relaxed);
        assert!(meter.step(1).is_err());
    }
}

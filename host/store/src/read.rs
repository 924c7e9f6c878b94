//! The description of a read.

use std::time::Duration;

use blockbase_quota::QuotaOwner;

/// The cost of a read. It decides where SQLite runs the read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadCost {
    /// A few rows, found with an index. They are read on the calling thread.
    Rows,
    /// Possibly a scan. It runs on the blocking pool, a bounded number at a time.
    Scan,
}

/// The cost of a caller's read, as far as its plan shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// The read may be small. It begins at once, and needs a permit if it turns out to be a scan.
    Unknown,
    /// The read looks through many rows or texts, so it needs a permit to begin.
    Scan,
}

/// A read by a caller.
#[derive(Clone, Debug)]
pub struct Read {
    /// The version of the schema that its statements were planned on.
    pub schema: i64,
    pub cost: Cost,
    /// For a read with several statements that have to see the same moment: the tables that they read. `None` for a single
    /// statement. SQLite does not need it, because all statements of a read see the same moment.
    pub tables_of_one_moment: Option<Vec<String>>,
}

/// A read of one snapshot, which may take long.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The caller whose connections it uses.
    pub owner: QuotaOwner,
    /// The version of the schema that its statements were planned on.
    pub schema: i64,
    /// The tables that its statements read.
    pub tables: Vec<String>,
    /// How long the snapshot may stay open.
    pub time_max: Duration,
}

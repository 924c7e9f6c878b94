//! This process as one of those that serve the database.

/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A running process of the server.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) id: String,
    /// Milliseconds since the epoch.
    pub(crate) started_at: i64,
}

//! The failures of commands.

/// The reason why a command failed, as one or more lines for the user.
#[derive(Debug)]
pub(super) enum Problem {
    /// The command or the configuration is wrong. The exit code is 2.
    Usage(String),
    /// The command failed. The exit code is 1.
    Failed(String),
}

impl From<String> for Problem {
    fn from(line: String) -> Problem {
        Problem::Failed(line)
    }
}

//! Lines on standard output.

use std::io::Write;

/// Prints a line. The user may have closed the pipe, so errors are ignored.
pub(crate) fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

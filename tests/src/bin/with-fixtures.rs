//! Runs a command with everything that all tests share: one Postgres, the current binary, and the built blocks of this repository.
//!
//! ```text
//! with-fixtures COMMAND [ARGUMENT…]
//! ```
//!
//! Everything ends with the command, and this program returns its exit code. The blocks are built before the command starts, so that no
//! test spends its time on that.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a program of the command line")]

use std::process::{Command, ExitCode};
use std::time::Instant;

use blockbase_tests::{Cluster, Fixtures};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("Usage: with-fixtures COMMAND [ARGUMENT...]");
        return ExitCode::from(2);
    };
    let directory = tempfile::tempdir().expect("a directory");
    let own = std::env::current_exe().expect("a path");
    let binary = directory.path().join("blockbase");
    // The binary is copied, because cargo may build another one meanwhile.
    std::fs::copy(own.with_file_name("blockbase"), &binary).expect("a binary beside this program");

    let begun = Instant::now();
    let cluster = Cluster::start();
    let fixtures = Fixtures::new(directory.path(), binary, cluster.port());
    let built = fixtures.build_blocks();
    println!("Postgres runs, and {built} blocks are built: {} s", begun.elapsed().as_secs());

    let status = Command::new(&program).args(arguments).envs(fixtures.environment()).status();
    drop(cluster);
    match status {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("{}: {error}", program.display());
            ExitCode::FAILURE
        }
    }
}

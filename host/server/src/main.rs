//! The binary: command line, configuration, wiring, shutdown.
//!
//! Here the floors are joined; nothing is decided that an operation could decide.
#![forbid(unsafe_code)]

mod cli;
mod config;
mod connection;
mod data_dir;
mod secret;
mod serve;
mod telemetry;
mod variables;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run()
}

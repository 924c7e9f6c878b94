//! The binary: command line, configuration, wiring, shutdown.
//!
//! This crate connects the other crates. It makes no decision that an operation could make.
#![forbid(unsafe_code)]

mod cli;
mod config;
mod connection;
mod data_dir;
#[cfg(unix)]
mod operator_socket;
mod output;
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

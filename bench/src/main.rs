//! The benchmark: this server and a hand-written floor, both release builds, in one run, on the same number of rows.
//!
//! `cargo run --release -p blockbase-bench` builds nothing else: build the server first (`cargo build --release`), and a
//! block for the call workload (`blockbase block build examples/echo`). Numbers move with the machine; the ratio is what counts.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and one that cannot go on has failed")]

mod floor;
mod load;
mod server;
mod workloads;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The server's binary
    #[arg(long, default_value = "target/release/blockbase")]
    binary: PathBuf,
    /// The packed echo block
    #[arg(long, default_value = "examples/echo/echo.wasm")]
    block: PathBuf,
    /// Rows in the table
    #[arg(long, default_value_t = 100_000)]
    rows: u32,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Connections
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Only workloads whose name contains this
    #[arg(long, default_value = "")]
    only: String,
}

#[derive(Subcommand)]
enum Command {
    /// The floor, as a process of its own
    #[command(hide = true)]
    Floor { file: PathBuf },
}

fn main() {
    let arguments = Arguments::parse();
    match arguments.command {
        Some(Command::Floor { file }) => floor::serve(&file),
        None => workloads::run(&workloads::Options {
            binary: arguments.binary,
            block: arguments.block,
            rows: arguments.rows,
            seconds: arguments.seconds,
            connections: arguments.connections,
            only: arguments.only,
        }),
    }
}

//! The benchmark. It compares this server with a hand-written server (the floor). Both are release builds, and run on the same
//! rows in one run.
//!
//! `cargo run --release -p blockbase-bench` builds nothing else. Build the server first (`cargo build --release`), and a block for the
//! call workload (`blockbase block build examples/echo`). The numbers depend on the machine, so only the ratio matters.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and one that cannot go on has failed")]

mod blocks;
mod conditions;
mod events;
mod identity;
mod lists;
mod policies;
mod run;
mod shares;
mod surfaces;

mod cluster;
mod fill;
mod floor;
mod load;
mod machine;
mod report;
mod server;
mod side;
mod turns;
mod workloads;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Options,
}

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    shared: SharedOptions,
    /// The packed echo block
    #[arg(long, default_value = "examples/echo/echo.wasm")]
    block: PathBuf,
    /// Rows in the table: each count is a round of its own, on fresh databases
    #[arg(long, value_delimiter = ',', default_value = "10000,100000,1000000")]
    rows: Vec<u32>,
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

/// The options that every benchmark has.
#[derive(clap::Args)]
pub(crate) struct SharedOptions {
    /// The server's binary
    #[arg(long, default_value = "target/release/blockbase")]
    binary: PathBuf,
    /// The database below the servers
    #[arg(long, value_enum, default_value_t = Engines::Sqlite)]
    engine: Engines,
    /// Prints the tables as Markdown
    #[arg(long)]
    markdown: bool,
}

impl SharedOptions {
    /// Prints a table of one engine below its title.
    fn print(&self, engine: run::Engine, title: &str, table: &report::Table) {
        let mark = if self.markdown { "### " } else { "" };
        println!("{mark}{}, {title}\n\n{}", engine.name(), table.text(self.markdown));
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Engines {
    Sqlite,
    Postgres,
    Both,
}

impl Engines {
    fn each(self) -> &'static [run::Engine] {
        match self {
            Engines::Sqlite => &[run::Engine::Sqlite],
            Engines::Postgres => &[run::Engine::Postgres],
            Engines::Both => &[run::Engine::Sqlite, run::Engine::Postgres],
        }
    }
}

#[derive(Subcommand)]
enum Command {
    /// The floor, as a process of its own
    #[command(hide = true)]
    Floor {
        /// A `postgres://` URL, or SQLite's file
        database: String,
    },
    /// The floor of conditions, as a process of its own
    #[command(hide = true)]
    ConditionsFloor {
        /// A `postgres://` URL, or the server's file of SQLite
        database: String,
        /// The table of links
        links: String,
    },
    /// The floor of groups, as a process of its own
    #[command(hide = true)]
    ListsFloor {
        /// A `postgres://` URL, or the server's file of SQLite
        database: String,
    },
    /// What knowing the caller costs: enforcement, sign-ins, the identity verdict
    Identity(identity::Options),
    /// What events cost and how soon they arrive: latency, throughput, streams, a backlog
    Events(events::Options),
    /// What blocks cost: calls, pauses, records, memory, installs, many that idle or are called in turn, some that spin
    Blocks(blocks::Options),
    /// What GraphQL and MCP cost beside REST, and the GraphQL schema of many objects
    Surfaces(surfaces::Options),
    /// What conditions through relations cost, beside SQL written by hand on the same database
    Conditions(conditions::Options),
    /// What groups cost beside SQL written by hand, late pages by cursors beside first ones, batches beside bulk creates
    Lists(lists::Options),
    /// What row policies through relations and many roles cost: rows, open streams, GraphQL schemas, the start
    Policies(policies::Options),
    /// What one caller can take from everybody else, before and now: memory, time, places
    Shares(shares::Options),
}

fn main() {
    let arguments = Arguments::parse();
    // A floor says only its address, on which the benchmark waits.
    let is_floor =
        matches!(arguments.command, Some(Command::Floor { .. } | Command::ConditionsFloor { .. } | Command::ListsFloor { .. }));
    if !is_floor {
        println!("{}\n", machine::description());
    }
    match arguments.command {
        Some(Command::Floor { database }) => floor::serve(&database),
        Some(Command::ConditionsFloor { database, links }) => conditions::floor::serve(&database, &links),
        Some(Command::ListsFloor { database }) => lists::floor::serve(&database),
        Some(Command::Identity(options)) => identity::run(&options),
        Some(Command::Events(options)) => events::run(&options),
        Some(Command::Blocks(options)) => blocks::run(&options),
        Some(Command::Surfaces(options)) => surfaces::run(&options),
        Some(Command::Conditions(options)) => conditions::run(&options),
        Some(Command::Lists(options)) => lists::run(&options),
        Some(Command::Policies(options)) => policies::run(&options),
        Some(Command::Shares(options)) => shares::run(&options),
        None => run::run(arguments.options),
    }
}

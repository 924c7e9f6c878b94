//! The cost of row policies through a relation, and of many roles.
//!
//! A role for each team may use the tasks of the team's projects. A caller of such a role is compared with a caller of the policy
//! `own` and with a caller without a policy, on the same rows. Then each role has many open streams, and each event belongs to one
//! team. Then each stream has another user, and all users have one role, whose policy names its reader. At last, each role knows
//! other fields.

mod rows;
mod schemas;
mod streams;
mod teams;

use clap::ValueEnum;

use crate::SharedOptions;
use crate::cluster::Cluster;
use crate::report::Table;
use crate::run::Engine;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    shared: SharedOptions,
    /// Tasks
    #[arg(long, default_value_t = 1_000_000)]
    rows: u32,
    /// Roles, each for one team. The readers are in as many teams
    #[arg(long, default_value_t = 100)]
    roles: usize,
    /// Objects of 25 fields in the GraphQL schemas. Each role lacks one of the fields
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=900))]
    objects: u16,
    /// Streams open at a time, comma-separated; the server allows 10,000
    #[arg(long, value_delimiter = ',', default_value = "1000,10000")]
    streams: Vec<usize>,
    /// Milliseconds from one event to the next while streams are open
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    interval_ms: u64,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Connections that read and write
    #[arg(long, default_value_t = 2)]
    connections: usize,
    /// Only these parts, comma-separated
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Lists, records and writes under a policy
    Rows,
    /// Events for the open streams of all roles
    Streams,
    /// Events for streams of as many users, all under one policy that names its reader. The users sign up first, which takes long
    Readers,
    /// GraphQL schemas, and the start of the server
    Schemas,
}

pub(crate) fn run(options: &Options) {
    assert!(options.roles > 0, "the benchmark needs roles");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for engine in options.shared.engine.each() {
        let cluster = (*engine == Engine::Postgres).then(Cluster::start);
        for part in Part::value_variants().iter().filter(|part| options.only.is_empty() || options.only.contains(part)) {
            for (title, table) in runtime.block_on(measure(*part, options, cluster.as_ref())) {
                options.shared.print(*engine, &title, &table);
            }
        }
    }
}

/// The tables of a part, with their titles.
async fn measure(part: Part, options: &Options, cluster: Option<&Cluster>) -> Vec<(String, Table)> {
    match part {
        Part::Rows => vec![rows::measure(options, cluster).await],
        Part::Streams | Part::Readers => {
            let callers = if part == Part::Readers { streams::Callers::Readers } else { streams::Callers::Roles };
            let mut tables = Vec::new();
            for streams in &options.streams {
                tables.push(streams::measure(options, cluster, callers, *streams).await);
            }
            tables
        }
        Part::Schemas => vec![schemas::measure(options, cluster).await],
    }
}

//! The cost and the latency of events: the time to handlers and streams, the throughput of one handler, many streams, streams that
//! resume, the cost for writes, and a large backlog.
//!
//! Each part has its own servers and databases. The receiver of webhooks and the readers of streams are in this process, so that one
//! clock measures when a write was sent and when its event arrived.

mod backlog;
pub(crate) mod clock;
mod cost;
pub(crate) mod database;
mod latency;
mod receiver;
mod resume;
pub(crate) mod streams;
pub(crate) mod subject;
mod throughput;

pub(crate) use database::Database;

use crate::SharedOptions;
use crate::cluster::Cluster;
use crate::report::Table;
use crate::run::Engine;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    shared: SharedOptions,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 8)]
    seconds: u64,
    /// Connections that write
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Writes a second while latency is measured
    #[arg(long, default_value_t = 1000)]
    rate: u32,
    /// Events that go through a handler
    #[arg(long, default_value_t = 100_000)]
    events: u32,
    /// Streams open at a time; the server allows 10,000
    #[arg(long, default_value_t = 10_000)]
    clients: usize,
    /// Milliseconds from one event to the next while many streams are open
    #[arg(long, default_value_t = 100)]
    interval_ms: u64,
    /// Deliveries that wait when a server starts
    #[arg(long, default_value_t = 1_000_000)]
    backlog: u32,
    /// The built-in handler that the backlog is for
    #[arg(long, value_enum, default_value_t = BuiltIn::LogEvent)]
    handler: BuiltIn,
    /// Only the part of this name: latency, throughput, streams, resume, cost or backlog
    #[arg(long, default_value = "")]
    only: String,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum BuiltIn {
    #[value(name = "log_event")]
    LogEvent,
    #[value(name = "persist_event")]
    PersistEvent,
}

const PARTS: [&str; 6] = ["latency", "throughput", "streams", "resume", "cost", "backlog"];

pub(crate) fn run(options: &Options) {
    let parts: Vec<&str> = PARTS.into_iter().filter(|part| part.contains(&options.only)).collect();
    assert!(!parts.is_empty(), "the parts are {}", PARTS.join(", "));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for engine in options.shared.engine.each() {
        let cluster = (*engine == Engine::Postgres).then(Cluster::start);
        for part in &parts {
            eprintln!("{}, {part}", engine.name());
            for (title, table) in runtime.block_on(measure(part, options, cluster.as_ref())) {
                options.shared.print(*engine, &title, &table);
            }
        }
    }
}

/// The tables of a part, with their titles.
async fn measure(part: &str, options: &Options, cluster: Option<&Cluster>) -> Vec<(String, Table)> {
    match part {
        "latency" => latency::measure(options, cluster).await,
        "throughput" => throughput::measure(options, cluster).await,
        "streams" => streams::measure(options, cluster).await,
        "resume" => resume::measure(options, cluster).await,
        "cost" => cost::measure(options, cluster).await,
        _ => backlog::measure(options, cluster).await,
    }
}
